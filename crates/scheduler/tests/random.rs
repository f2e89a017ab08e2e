//! Random lives of a scheduler, against a device that remembers what was written where.
//!
//! The device keeps for every slot of every page a hash of the namespace and of the whole prefix that ends there. Whatever
//! the scheduler plans, every sequence must find exactly its own prefix of its own namespace in its pages: sharing, copying,
//! eviction, cancellation and failed steps included.

use std::collections::{BTreeMap, HashMap};

use random::Random;
use scheduler::{
    Config, Namespace, PAGE_TOKENS, Refusal, Request, SavedPage, Scheduler, SequenceId, Step, TenantId, Work,
    WorkflowId,
};

#[derive(Clone)]
struct Expected {
    namespace: Namespace,
    tokens: Vec<u32>,
    draft: Vec<u32>,
    prompt_len: usize,
    max_output: usize,
}

impl Expected {
    /// What the tokens would be if the first draft tokens were accepted.
    fn drafted(&self, count: usize) -> Vec<u32> {
        [&self.tokens, &self.draft[..count]].concat()
    }
}

/// What the first token of a namespace continues.
fn empty(namespace: Namespace) -> u64 {
    extend(0, 1_000_000_000 + namespace.0 as u32)
}

fn any_namespace(random: &mut Random) -> Namespace {
    Namespace(random.below(3) as u64)
}

struct Device {
    slots: Vec<[u64; PAGE_TOKENS]>,
}

fn extend(prefix: u64, token: u32) -> u64 {
    (prefix ^ u64::from(token)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23) | 1
}

impl Device {
    fn copy(&mut self, step: &Step) {
        for copy in &step.copies {
            self.slots[copy.to.0 as usize] = self.slots[copy.from.0 as usize];
        }
    }

    /// Writes all rows, then checks that every row sees its own past.
    fn forward(&mut self, step: &Step, expected: &HashMap<SequenceId, Expected>) {
        self.copy(step);
        for work in &step.work {
            let sequence = &expected[&work.sequence];
            let tokens = sequence.drafted(work.drafted);
            assert_eq!(work.tokens, tokens[work.start..work.start + work.tokens.len()]);
            let mut prefix =
                tokens[..work.start].iter().fold(empty(sequence.namespace), |prefix, token| extend(prefix, *token));
            for (position, token) in (work.start..).zip(&work.tokens) {
                prefix = extend(prefix, *token);
                self.slots[work.pages[position / PAGE_TOKENS].0 as usize][position % PAGE_TOKENS] = prefix;
            }
        }
        for work in &step.work {
            let sequence = &expected[&work.sequence];
            let mut prefix = empty(sequence.namespace);
            let end = work.start + work.tokens.len();
            for (position, token) in sequence.drafted(work.drafted)[..end].iter().enumerate() {
                prefix = extend(prefix, *token);
                let found = self.slots[work.pages[position / PAGE_TOKENS].0 as usize][position % PAGE_TOKENS];
                assert_eq!(found, prefix, "{:?} reads a foreign key at {position}", work.sequence);
            }
        }
    }

    /// A step that failed half way: its rows are garbage.
    fn fail(&mut self, step: &Step) {
        self.copy(step);
        for work in &step.work {
            for position in work.start..work.start + work.tokens.len() {
                self.slots[work.pages[position / PAGE_TOKENS].0 as usize][position % PAGE_TOKENS] = 0;
            }
        }
    }
}

/// Prompts that share trunks of random length, cut at random places.
fn prompt(random: &mut Random) -> Vec<u32> {
    let trunk = random.below(3) as u32;
    let shared = random.below(150);
    let own = 1 + random.below(60);
    let variant = random.below(4) as u32;
    let trunk = (0..shared as u32).map(|i| 1000 * trunk + i / 3);
    trunk.chain((0..own as u32).map(|i| 90_000 + 100 * variant + i / 7)).collect()
}

/// Requests that wait at most.
const MAX_WAITING: usize = 8;

fn live(seed: u64, operations: usize) {
    let mut random = Random::new(seed);
    let pages = 8 + random.below(40);
    let max_running = 1 + random.below(6);
    let step_tokens = max_running + random.below(100);
    let mut scheduler = Scheduler::new(Config { pages, step_tokens, max_running });
    let mut device = Device { slots: vec![[0; PAGE_TOKENS]; pages] };
    let mut expected: HashMap<SequenceId, Expected> = HashMap::new();
    let mut next_id = 0;
    for _ in 0..operations {
        match random.below(12) {
            0..=2 if scheduler.queue().1 < MAX_WAITING => {
                next_id += 1;
                let id = SequenceId(next_id);
                let tokens = prompt(&mut random);
                let max_output = random.below(70);
                let priority = random.below(3) as u8;
                let namespace = any_namespace(&mut random);
                let request = Request {
                    id,
                    tenant: TenantId(namespace.0),
                    namespace,
                    pinned: false,
                    stable_tokens: random.below(tokens.len() + 1),
                    workflow: [None, Some(WorkflowId(random.below(3) as u64))][random.below(2)],
                    prompt: tokens.clone(),
                    max_output_tokens: max_output,
                    priority,
                };
                let needed = (tokens.len() + max_output).div_ceil(PAGE_TOKENS);
                match scheduler.submit(request) {
                    Ok(()) => {
                        let prompt_len = tokens.len();
                        let draft = Vec::new();
                        expected.insert(id, Expected { namespace, tokens, draft, prompt_len, max_output });
                    }
                    Err(Refusal::NeverFits { .. }) => assert!(needed > pages),
                    Err(Refusal::EmptyPrompt) => unreachable!(),
                }
            }
            3 => {
                let mut ids: Vec<SequenceId> = expected.keys().copied().collect();
                ids.sort_unstable();
                if !ids.is_empty() {
                    let id = ids[random.below(ids.len())];
                    scheduler.finish(id);
                    expected.remove(&id);
                }
            }
            4 => {
                let step = scheduler.step(1 + random.below(200));
                // The forward pass fails, or a copy before it.
                let failed = step.copies.first().filter(|_| random.below(2) == 0);
                device.fail(&step);
                step.work.iter().for_each(|work| scheduler.abandon(work));
                if let Some(copy) = failed {
                    device.slots[copy.to.0 as usize] = [0; PAGE_TOKENS];
                    scheduler.finish(copy.sequence);
                    expected.remove(&copy.sequence);
                }
            }
            5 => match random.below(2) {
                0 => scheduler.close_workflow(WorkflowId(random.below(3) as u64)),
                _ => restore_what_was_saved(&mut scheduler, &mut device, any_namespace(&mut random)),
            },
            _ => run_step(&mut scheduler, &mut device, &mut expected, &mut random),
        }
        scheduler.check_integrity().unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
    }
    // All remaining requests end.
    for _ in 0..100_000 {
        if expected.is_empty() {
            break;
        }
        run_step(&mut scheduler, &mut device, &mut expected, &mut random);
    }
    assert!(expected.is_empty(), "seed {seed}: {} sequences starve", expected.len());
    assert!(scheduler.is_idle());
    let (free, idle, used) = scheduler.pages();
    assert_eq!((free + idle, used), (pages, 0), "seed {seed}");
}

/// What a second scheduler saves goes into the first, whose device receives the contents.
fn restore_what_was_saved(scheduler: &mut Scheduler, device: &mut Device, namespace: Namespace) {
    let (pages, _): (Vec<_>, Vec<_>) = scheduler.new_prefixes(namespace, WorkflowId(0)).into_iter().unzip();
    let mut saved = pages.clone();
    // One that is cached continues with one that is not, and one has no parent.
    saved.push(SavedPage { parent: pages.len().checked_sub(1), tokens: vec![77_777; PAGE_TOKENS] });
    saved.push(SavedPage { parent: Some(1_000_000), tokens: vec![88_888; PAGE_TOKENS] });
    let restored: Result<usize, ()> = scheduler.restore(namespace, &saved, |index, page| {
        assert_eq!(index, pages.len(), "only what was not there is filled");
        let mut chain = Vec::new();
        let mut at = Some(index);
        while let Some(index) = at {
            chain.push(index);
            at = saved[index].parent;
        }
        let mut prefix = empty(namespace);
        for index in chain.into_iter().rev() {
            for (offset, token) in saved[index].tokens.iter().enumerate() {
                prefix = extend(prefix, *token);
                device.slots[page.0 as usize][offset] = prefix;
            }
        }
        Ok(())
    });
    assert!(restored.unwrap() <= 1);
}

fn run_step(
    scheduler: &mut Scheduler,
    device: &mut Device,
    expected: &mut HashMap<SequenceId, Expected>,
    random: &mut Random,
) {
    let mut step = scheduler.step(1 + random.below(200));
    for _ in 0..32 {
        if !step.work.is_empty() || expected.is_empty() {
            break;
        }
        step = scheduler.step(1 + random.below(200));
    }
    assert!(!step.work.is_empty() || expected.is_empty(), "requests wait, but nothing runs");
    device.forward(&step, expected);
    step.work.iter().for_each(|work| scheduler.commit(work));
    for work in step.work.iter().filter(|work| work.wants_logits) {
        write_on(work, scheduler, expected, random);
        scheduler.check_integrity().unwrap();
    }
}

/// Ends a sequence, or appends what its draft got right, then a token, at times more that need no logits, then a draft anew.
fn write_on(work: &Work, scheduler: &mut Scheduler, expected: &mut HashMap<SequenceId, Expected>, random: &mut Random) {
    let id = work.sequence;
    let sequence = expected.get_mut(&id).unwrap();
    let draft = std::mem::take(&mut sequence.draft);
    for row in 0..work.logit_rows() {
        let output = sequence.tokens.len() - sequence.prompt_len;
        if output == sequence.max_output || random.below(12) == 0 {
            let usage = scheduler.usage(id).unwrap();
            assert_eq!((usage.prompt_tokens, usage.output_tokens), (sequence.prompt_len, output));
            assert!(usage.cached_tokens < usage.prompt_tokens, "at least one token is computed");
            scheduler.finish(id);
            expected.remove(&id);
            return;
        }
        let drafted = draft.get(row).filter(|_| row < work.drafted && random.below(3) > 0);
        let token = drafted.copied().unwrap_or(random.below(5) as u32);
        sequence.tokens.push(token);
        scheduler.append(id, token);
        if draft.get(row) != Some(&token) || row == work.drafted {
            break;
        }
    }
    let most = sequence.max_output - (sequence.tokens.len() - sequence.prompt_len);
    for _ in 0..[0, 0, 1, 2, 5, 40][random.below(6)].min(most) {
        let token = random.below(5) as u32;
        sequence.tokens.push(token);
        scheduler.append(id, token);
    }
    sequence.draft = (0..random.below(7)).map(|_| random.below(5) as u32).collect();
    scheduler.draft(id, &sequence.draft);
}

#[test]
fn right_drafts_cost_no_step_and_wrong_ones_leave_no_trace() {
    let mut scheduler = Scheduler::new(Config { pages: 64, step_tokens: 256, max_running: 4 });
    let id = SequenceId(1);
    let prompt: Vec<u32> = (0..30).collect();
    scheduler.submit(request(1, prompt.clone(), 60)).unwrap();
    let work = |scheduler: &mut Scheduler| {
        let step = scheduler.step(usize::MAX);
        step.work.iter().for_each(|work| scheduler.commit(work));
        step.work.into_iter().next().map(|work| (work.start, work.tokens, work.drafted))
    };
    assert_eq!(work(&mut scheduler), Some((0, prompt, 0)));
    scheduler.append(id, 100);
    scheduler.draft(id, &[101, 102, 103]);
    assert_eq!(work(&mut scheduler), Some((30, vec![100, 101, 102, 103], 3)));
    // Two are right, so that the first page is full; the third is wrong.
    [101, 102, 200].into_iter().for_each(|token| scheduler.append(id, token));
    assert_eq!(work(&mut scheduler), Some((33, vec![200], 0)));
    scheduler.append(id, 201);
    scheduler.draft(id, &[1; 100]);
    // No more draft tokens than leave room for the others.
    // No more than the sequence may still write.
    let room = 60 - 5;
    assert_eq!(work(&mut scheduler), Some((34, [vec![201], vec![1; room]].concat(), room)));
    scheduler.finish(id);
    let first_page: Vec<u32> = (0..30).chain([100, 101, 9]).collect();
    submit(&mut scheduler, 2, first_page);
    assert_eq!(run_all(&mut scheduler)[&SequenceId(2)], 32, "what was drafted right is there for others");
}

#[test]
fn random_requests_leak_no_page_and_read_no_keys_of_other_namespaces() {
    for seed in 1..=250 {
        live(seed, 400);
    }
    for seed in 251..=20_250 {
        live(seed, 12);
    }
}

fn run_all(scheduler: &mut Scheduler) -> BTreeMap<SequenceId, usize> {
    let mut cached = BTreeMap::new();
    while !scheduler.is_idle() {
        let step = scheduler.step(usize::MAX);
        assert!(!step.work.is_empty());
        step.work.iter().for_each(|work| scheduler.commit(work));
        for work in step.work.iter().filter(|work| work.wants_logits) {
            cached.insert(work.sequence, scheduler.usage(work.sequence).unwrap().cached_tokens);
            scheduler.finish(work.sequence);
        }
    }
    cached
}

fn request(id: u64, prompt: Vec<u32>, max_output_tokens: usize) -> Request {
    let (id, namespace) = (SequenceId(id), Namespace(1));
    Request {
        id,
        tenant: TenantId::default(),
        namespace,
        pinned: false,
        prompt,
        stable_tokens: 0,
        workflow: None,
        max_output_tokens,
        priority: 0,
    }
}

fn submit(scheduler: &mut Scheduler, id: u64, prompt: Vec<u32>) {
    scheduler.submit(request(id, prompt, 8)).unwrap();
}

#[test]
fn siblings_that_arrive_together_compute_their_trunk_once() {
    let mut scheduler = Scheduler::new(Config { pages: 400, step_tokens: 512, max_running: 16 });
    let trunk: Vec<u32> = (0..4096).collect();
    for id in 0..8 {
        let suffix = (0..20).map(|i| 10_000 + 100 * id as u32 + i);
        submit(&mut scheduler, id, trunk.iter().copied().chain(suffix).collect());
    }
    let cached = run_all(&mut scheduler);
    assert_eq!(cached.values().copied().collect::<Vec<_>>(), [0, 4096, 4096, 4096, 4096, 4096, 4096, 4096]);
}

#[test]
fn a_later_prompt_reuses_all_that_it_has_in_common_to_the_token() {
    let mut scheduler = Scheduler::new(Config { pages: 64, step_tokens: 256, max_running: 4 });
    let first: Vec<u32> = (0..200).collect();
    submit(&mut scheduler, 1, first.clone());
    assert_eq!(run_all(&mut scheduler)[&SequenceId(1)], 0);
    for common in [0usize, 1, 31, 32, 33, 100, 127, 191] {
        let id = SequenceId(100 + common as u64);
        let prompt = first[..common].iter().copied().chain(50_000 + 100 * common as u32..50_050 + 100 * common as u32);
        submit(&mut scheduler, id.0, prompt.collect());
        assert_eq!(run_all(&mut scheduler)[&id], common, "{common} tokens in common");
    }
    // The whole prompt again: all but its last token, whose logits are wanted.
    submit(&mut scheduler, 2, first[..192].to_vec());
    assert_eq!(run_all(&mut scheduler)[&SequenceId(2)], 191);
}

/// A secret at the end of a known beginning, guessed digit by digit from another namespace.
#[test]
fn cached_tokens_say_nothing_about_prompts_of_another_namespace() {
    let beginning: Vec<u32> = (0..70).collect();
    let secret = [7, 3, 9, 1, 4].map(|digit| 900 + digit);
    for guessed in 0..secret.len() {
        let cached_by_digit = |attacker: Namespace| {
            let mut scheduler = Scheduler::new(Config { pages: 64, step_tokens: 256, max_running: 4 });
            let of_victim = beginning.iter().copied().chain(secret).chain([5000; 40]).collect();
            submit(&mut scheduler, 1, of_victim);
            run_all(&mut scheduler);
            let cached = |digit: u32| {
                let id = 10 + u64::from(digit);
                let prompt = beginning.iter().copied().chain(secret[..guessed].iter().copied());
                let prompt = prompt.chain([900 + digit]).chain([6000 + digit; 40]).collect();
                scheduler.submit(Request { namespace: attacker, ..request(id, prompt, 8) }).unwrap();
                run_all(&mut scheduler)[&SequenceId(id)]
            };
            (0..10).map(cached).collect::<Vec<_>>()
        };
        let own: Vec<usize> = cached_by_digit(Namespace(1));
        let right = (secret[guessed] - 900) as usize;
        assert_eq!(own[right], own.iter().copied().max().unwrap(), "within a namespace the right digit is cached");
        let foreign = cached_by_digit(Namespace(2));
        // The attacker's own guesses share their beginning from the second on.
        assert_eq!(foreign, [vec![0], vec![70 + guessed; 9]].concat(), "digit {guessed}");
    }
}

#[test]
fn saved_pages_stay_in_their_namespace() {
    let mut scheduler = Scheduler::new(Config { pages: 64, step_tokens: 256, max_running: 4 });
    let prompt: Vec<u32> = (0..100).collect();
    let workflow = Some(WorkflowId(1));
    scheduler.submit(Request { workflow, stable_tokens: 96, ..request(1, prompt.clone(), 8) }).unwrap();
    run_all(&mut scheduler);
    let saved = |namespace| scheduler.new_prefixes(namespace, WorkflowId(1)).into_iter().map(|(page, _)| page);
    let (own, foreign): (Vec<_>, Vec<_>) = (saved(Namespace(1)).collect(), saved(Namespace(2)).collect());
    assert_eq!((own.len(), foreign.len()), (3, 0));
    assert_eq!(scheduler.restore(Namespace(3), &own, |_, _| Ok::<(), ()>(())), Ok(3), "they were not there");
    scheduler.submit(Request { namespace: Namespace(2), ..request(2, prompt.clone(), 8) }).unwrap();
    scheduler.submit(Request { namespace: Namespace(3), ..request(3, prompt, 8) }).unwrap();
    assert_eq!(run_all(&mut scheduler), BTreeMap::from([(SequenceId(2), 0), (SequenceId(3), 96)]));
    scheduler.check_integrity().unwrap();
}

#[test]
fn keys_of_a_reply_are_cached_for_the_next_turn() {
    let mut scheduler = Scheduler::new(Config { pages: 64, step_tokens: 256, max_running: 4 });
    let prompt: Vec<u32> = (0..40).collect();
    scheduler.submit(request(1, prompt.clone(), 60)).unwrap();
    let output: Vec<u32> = (0..60).map(|i| 700 + i).collect();
    for token in &output {
        let step = scheduler.step(usize::MAX);
        step.work.iter().for_each(|work| scheduler.commit(work));
        scheduler.append(SequenceId(1), *token);
    }
    scheduler.finish(SequenceId(1));
    submit(&mut scheduler, 2, prompt.into_iter().chain(output).chain([9999, 9998]).collect());
    // 99 tokens of the first turn were computed, 96 of them in full pages.
    assert_eq!(run_all(&mut scheduler)[&SequenceId(2)], 96);
}

#[test]
fn a_stream_of_urgent_calls_does_not_starve_the_others() {
    let mut scheduler = Scheduler::new(Config { pages: 8, step_tokens: 64, max_running: 1 });
    let of_priority = |id, priority| Request { priority, ..request(id, vec![1, 2, 3], 1) };
    scheduler.submit(of_priority(0, 2)).unwrap();
    for id in 1..10_000 {
        scheduler.submit(of_priority(id, 0)).unwrap();
        let step = scheduler.step(usize::MAX);
        let [work] = &step.work[..] else { panic!("one runs at a time: {step:?}") };
        scheduler.commit(work);
        scheduler.finish(work.sequence);
        if work.sequence == SequenceId(0) {
            println!("after {id} steps");
            assert!(id > 1000, "what is urgent comes first");
            return;
        }
    }
    panic!("it starves");
}

#[test]
fn refusals_change_nothing() {
    let mut scheduler = Scheduler::new(Config { pages: 4, step_tokens: 32, max_running: 1 });
    let request = |id, len: u32, max_output_tokens| request(id, (0..len).collect(), max_output_tokens);
    assert_eq!(scheduler.submit(request(1, 100, 29)), Err(Refusal::NeverFits { pages: 5, total_pages: 4 }));
    assert_eq!(scheduler.submit(request(1, 0, 1)), Err(Refusal::EmptyPrompt));
    assert_eq!(scheduler.submit(request(1, 100, 28)), Ok(()));
    let endless = scheduler.submit(request(3, 100, usize::MAX));
    assert!(matches!(endless, Err(Refusal::NeverFits { total_pages: 4, .. })), "{endless:?}");
    scheduler.check_integrity().unwrap();
}

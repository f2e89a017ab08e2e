//! Tenants get equal shares of the computed tokens, whatever the lengths of their prompts and replies.

use std::collections::BTreeMap;

use scheduler::{Config, Namespace, PAGE_TOKENS, Request, Scheduler, SequenceId, TenantId};

/// What a tenant sends.
#[derive(Clone, Copy)]
struct Load {
    tenant: u64,
    prompt: usize,
    output: usize,
    priority: u8,
    /// How many of its requests run or wait at a time.
    concurrent: usize,
    /// Steps from the end of a request to the next one.
    pause: u64,
}

impl Load {
    /// A tenant with more requests than can run.
    fn backlog(tenant: u64, prompt: usize, output: usize) -> Load {
        Load { tenant, prompt, output, priority: 1, concurrent: 10, pause: 0 }
    }
}

/// A scheduler, and what it computed for each tenant.
struct Machine {
    scheduler: Scheduler,
    clock: u64,
    requests: u64,
    /// The load of each open request, and how many tokens of output are missing.
    open: BTreeMap<SequenceId, (Load, usize)>,
    /// The step in which a tenant may send again.
    resumes: BTreeMap<u64, u64>,
    tokens: BTreeMap<u64, usize>,
}

impl Machine {
    fn new(max_running: usize) -> Machine {
        let pages = max_running * 31_000 / PAGE_TOKENS;
        Machine {
            scheduler: Scheduler::new(Config { pages, step_tokens: 512, max_running }),
            clock: 0,
            requests: 0,
            open: BTreeMap::new(),
            resumes: BTreeMap::new(),
            tokens: BTreeMap::new(),
        }
    }

    /// Runs until this number of further tokens were computed; returns those of each load.
    fn run<const N: usize>(&mut self, tokens: usize, loads: [Load; N]) -> [usize; N] {
        self.tokens.clear();
        while self.tokens.values().sum::<usize>() < tokens {
            loads.iter().for_each(|load| self.send(*load));
            self.step();
        }
        self.scheduler.check_integrity().unwrap();
        loads.map(|load| self.tokens.get(&load.tenant).copied().unwrap_or_default())
    }

    fn send(&mut self, load: Load) {
        let of = |load: &Load| (load.tenant, load.priority);
        let open = self.open.values().filter(|(other, _)| of(other) == of(&load)).count();
        if self.resumes.get(&load.tenant).is_some_and(|step| self.clock < *step) {
            return;
        }
        for _ in open..load.concurrent {
            self.requests += 1;
            let (id, prompt) = (SequenceId(self.requests), vec![self.requests as u32; load.prompt]);
            let request = Request {
                id,
                tenant: TenantId(load.tenant),
                namespace: Namespace(load.tenant),
                pinned: false,
                prompt,
                stable_tokens: 0,
                workflow: None,
                max_output_tokens: load.output,
                priority: load.priority,
            };
            self.scheduler.submit(request).unwrap();
            self.open.insert(id, (load, load.output));
        }
    }

    fn step(&mut self) {
        self.clock += 1;
        let step = self.scheduler.step(usize::MAX);
        for work in &step.work {
            self.scheduler.commit(work);
            let (load, output) = self.open.get_mut(&work.sequence).unwrap();
            let tokens = self.tokens.entry(load.tenant).or_default();
            *tokens += load.prompt.min(work.start + work.tokens.len()).saturating_sub(work.start);
            if !work.wants_logits {
                continue;
            }
            if *output > 0 {
                *output -= 1;
                *tokens += 1;
                self.scheduler.append(work.sequence, 7);
            }
            if *output == 0 {
                self.resumes.insert(load.tenant, self.clock + load.pause);
                self.scheduler.finish(work.sequence);
                self.open.remove(&work.sequence);
            }
        }
    }
}

#[test]
fn a_tenant_with_long_prompts_and_one_with_short_ones_get_equal_shares_of_the_tokens() {
    for max_running in [1, 4] {
        let [long, short] =
            Machine::new(max_running).run(700_000, [Load::backlog(1, 30_000, 20), Load::backlog(2, 100, 20)]);
        // A request more or less, and those that are in the midst of their prompts.
        assert!(long.abs_diff(short) <= 2 * 30_020, "{max_running} run: {long} and {short} tokens");
    }
}

#[test]
fn tokens_of_replies_count_as_those_of_prompts() {
    let mut machine = Machine::new(8);
    let [long, short] = machine.run(200_000, [Load::backlog(1, 50, 1000), Load::backlog(2, 50, 10)]);
    // Eight replies more or less, since their lengths are not known before.
    assert!(long.abs_diff(short) <= 8 * 1050, "{long} and {short} tokens");
}

#[test]
fn a_tenant_that_was_idle_gets_its_share_from_then_on_and_nothing_for_the_time_before() {
    for max_running in [1, 4] {
        let mut machine = Machine::new(max_running);
        let (busy, idle) = (Load::backlog(1, 20_000, 20), Load::backlog(2, 100, 20));
        machine.run(100_000, [busy, idle]);
        machine.run(300_000, [busy]);
        let [busy, idle] = machine.run(400_000, [busy, idle]);
        assert!(busy.abs_diff(idle) <= 2 * 20_020, "{max_running} run: {busy} and {idle} tokens");
    }
}

/// Between its requests such a tenant has none, which does not cancel what it had.
#[test]
fn a_tenant_that_sends_its_long_prompts_one_by_one_gets_no_more_than_its_share() {
    let one_by_one = Load { concurrent: 1, pause: 3, ..Load::backlog(1, 30_000, 20) };
    for max_running in [1, 3] {
        let [long, short] = Machine::new(max_running).run(700_000, [one_by_one, Load::backlog(2, 100, 20)]);
        assert!(long <= short + 2 * 30_020, "{max_running} run: {long} and {short} tokens");
        assert!(long >= 250_000, "{max_running} run: {long} and {short} tokens");
    }
}

#[test]
fn a_backlog_of_a_lower_priority_earns_no_credit_for_urgent_requests() {
    let urgent = |tenant, prompt| Load { priority: 0, ..Load::backlog(tenant, prompt, 20) };
    let mut machine = Machine::new(4);
    let bulk = Load { priority: 2, ..Load::backlog(3, 1000, 20) };
    let [of_urgent, of_bulk] = machine.run(300_000, [urgent(1, 5000), bulk]);
    assert!(of_urgent > 9 * of_bulk, "{of_urgent} and {of_bulk} tokens");
    // The third tenant sends urgent requests too, and a fourth appears.
    let shares = machine.run(300_000, [urgent(1, 5000), urgent(3, 1000), urgent(4, 200)]);
    assert!(shares.iter().all(|tokens| tokens.abs_diff(100_000) <= 15_000), "{shares:?}");
}

#[test]
fn a_turn_ends_after_one_long_prompt_and_after_four_short_ones() {
    for (prompt, in_a_row) in [(9000, 1), (30, 4)] {
        let mut machine = Machine::new(1);
        let loads = [Load::backlog(1, prompt, 1), Load::backlog(2, prompt, 1)];
        let mut order = Vec::new();
        while order.len() < 16 {
            loads.iter().for_each(|load| machine.send(*load));
            let before: Vec<_> = machine.open.iter().map(|(id, (load, _))| (*id, load.tenant)).collect();
            machine.step();
            order.extend(before.iter().filter(|(id, _)| !machine.open.contains_key(id)).map(|(_, tenant)| *tenant));
        }
        let turns: Vec<usize> = order.chunk_by(|one, other| one == other).map(<[u64]>::len).collect();
        assert_eq!(turns, vec![in_a_row; 16 / in_a_row], "{order:?}");
    }
}

//! Turns of tenants: random arrivals of three tenants against a simple model of the queue, and of one against a sorted list.

use std::collections::{BTreeSet, VecDeque};

use random::Random;
use scheduler::{Config, Namespace, Request, Scheduler, SequenceId, Step, TenantId, Work};

/// Requests of one tenant that are admitted before the turn of another.
const TURN: usize = 4;

/// Steps after which a waiting request has the next higher priority.
const PATIENCE: u64 = 1000;

fn request(id: u64, tenant: u64, prompt: Vec<u32>, priority: u8) -> Request {
    Request {
        id: SequenceId(id),
        tenant: TenantId(tenant),
        namespace: Namespace(tenant),
        pinned: false,
        prompt,
        stable_tokens: 0,
        workflow: None,
        max_output_tokens: 1,
        priority,
    }
}

/// A step without sampling.
fn step(scheduler: &mut Scheduler, rows: usize) -> Step {
    let step = scheduler.step(rows);
    step.work.iter().for_each(|work| scheduler.commit(work));
    scheduler.check_integrity().unwrap();
    step
}

/// A waiting request of the model.
#[derive(Clone, Copy)]
struct Waits {
    id: u64,
    priority: u64,
    due: u64,
    tokens: usize,
}

/// A tenant of the model that has waiting requests.
struct Queue {
    tenant: u64,
    /// By due step, then arrival.
    waiting: Vec<Waits>,
    /// The step in which the last turn ended, or the first of these requests arrived.
    since: u64,
}

/// The queue as it is specified.
#[derive(Default)]
struct Model {
    queues: Vec<Queue>,
    /// Tokens of each tenant: those of a prompt are computed in the step in which it is admitted.
    tokens: Vec<usize>,
    /// The fewest that a tenant can have.
    fewest: usize,
    /// The tenant whose turn it is, and how many of its requests were admitted in it.
    turn: Option<(u64, usize)>,
}

impl Model {
    fn submit(&mut self, tenant: u64, new: Waits, clock: u64) {
        if !self.queues.iter().any(|queue| queue.tenant == tenant) {
            self.queues.push(Queue { tenant, waiting: Vec::new(), since: clock });
        }
        let queue = self.queues.iter_mut().find(|queue| queue.tenant == tenant).unwrap();
        let place = queue.waiting.iter().take_while(|other| other.due <= new.due).count();
        queue.waiting.insert(place, new);
    }

    /// No tenant has fewer tokens than the one with the fewest that waits at the highest priority.
    fn begin_step(&mut self) {
        let highest = |queue: &Queue| queue.waiting.iter().map(|request| request.priority).min();
        let fewest = self.queues.iter().map(|queue| (highest(queue), self.tokens[queue.tenant as usize])).min();
        match fewest {
            Some((_, fewest)) => {
                self.fewest = fewest;
                self.tokens.iter_mut().for_each(|tokens| *tokens = fewest.max(*tokens));
            }
            None => self.tokens.fill(self.fewest),
        }
    }

    /// The request that is admitted next.
    fn admit(&mut self, clock: u64) -> Option<u64> {
        let place = |queue: &Queue| {
            let tokens = self.tokens[queue.tenant as usize];
            let in_turn = self.turn.is_some_and(|(of, _)| of == queue.tenant);
            let highest = queue.waiting.iter().map(|request| request.priority).min().unwrap();
            let waited = if in_turn || tokens == self.fewest { clock - queue.since } else { 0 };
            (highest.saturating_sub(waited / PATIENCE), !in_turn, tokens, queue.since, queue.tenant)
        };
        let next = (0..self.queues.len()).min_by_key(|index| place(&self.queues[*index]))?;
        let tenant = self.queues[next].tenant;
        let Waits { id, tokens, .. } = self.queues[next].waiting.remove(0);
        self.tokens[tenant as usize] += tokens;
        let mut ended = None;
        self.turn = match self.turn {
            Some((of, admitted)) if of == tenant => Some((of, admitted + 1)),
            other => {
                ended = other.map(|(of, _)| of);
                Some((tenant, 1))
            }
        };
        if let Some((of, TURN)) = self.turn {
            ended = Some(of);
            self.turn = None;
        }
        self.queues.iter_mut().filter(|queue| Some(queue.tenant) == ended).for_each(|queue| queue.since = clock);
        self.queues.retain(|queue| !queue.waiting.is_empty());
        Some(id)
    }
}

/// Random arrivals and ends of requests: what runs after each step is what the model admits.
fn compare_with_model(seed: u64, tenants: usize, priorities: usize) {
    let mut random = Random::new(seed);
    let max_running = 1 + random.below(4);
    let mut scheduler = Scheduler::new(Config { pages: 64, step_tokens: 64, max_running });
    let (mut model, mut expected) = (Model { tokens: vec![0; tenants], ..Model::default() }, BTreeSet::new());
    // Bursts of one tenant and quiet times, short of the time in which priorities change and beyond it.
    let (mut next_id, mut burst) = (0, 0);
    for clock in 0..3000 {
        if random.below(40) == 0 {
            burst = random.below(tenants);
        }
        if random.below(3) > 0 && scheduler.queue().1 < 60 {
            let tenant = if random.below(2) == 0 { burst } else { random.below(tenants) } as u64;
            let priority = random.below(priorities) as u64;
            next_id += 1;
            let tokens = 1 + random.below(16);
            scheduler.submit(request(next_id, tenant, vec![next_id as u32; tokens], priority as u8)).unwrap();
            model.submit(tenant, Waits { id: next_id, priority, due: clock + PATIENCE * priority, tokens }, clock);
        }
        for id in expected.clone() {
            if random.below(4) == 0 {
                scheduler.finish(SequenceId(id));
                expected.remove(&id);
            }
        }
        model.begin_step();
        while expected.len() < max_running
            && let Some(id) = model.admit(clock + 1)
        {
            expected.insert(id);
        }
        step(&mut scheduler, 64);
        let runs = |id: &u64| scheduler.usage(SequenceId(*id)).is_some();
        assert!(expected.iter().all(runs), "seed {seed}, step {}: not all of {expected:?} run", clock + 1);
        assert_eq!(scheduler.queue().0, expected.len());
    }
}

#[test]
fn requests_of_several_tenants_are_admitted_as_in_a_simple_model() {
    for seed in 1..=30 {
        [(3, 1), (3, 3), (1, 3)]
            .into_iter()
            .for_each(|(tenants, priorities)| compare_with_model(seed, tenants, priorities));
    }
}

#[test]
fn tenants_that_wait_at_the_same_priority_are_admitted_equally_often() {
    for seed in 1..=50 {
        let mut random = Random::new(seed);
        let mut scheduler = Scheduler::new(Config { pages: 64, step_tokens: 64, max_running: 1 });
        let mut waiting = [VecDeque::new(), VecDeque::new(), VecDeque::new()];
        // For each pair the admissions since both have waiting requests.
        let mut counts = [[0usize; 3]; 3];
        let (mut next_id, mut admitted) = (0, 0);
        // The first tenant sends as much as all others together.
        for _ in 0..2000 {
            for _ in 0..random.below(4) {
                let tenant = [0, 0, 1, 2][random.below(4)];
                next_id += 1;
                scheduler.submit(request(next_id, tenant, vec![next_id as u32; 4], 1)).unwrap();
                waiting[tenant as usize].push_back(next_id);
            }
            let step = step(&mut scheduler, 64);
            let Some(Work { sequence, .. }) = step.work.first() else { continue };
            let tenant = waiting.iter().position(|ids| ids.front() == Some(&sequence.0));
            let tenant = tenant.expect("each tenant is served in the order of arrival");
            scheduler.finish(*sequence);
            admitted += 1;
            for other in (0..3).filter(|other| *other != tenant) {
                counts[tenant][other] += 1;
                if waiting[other].is_empty() {
                    (counts[tenant][other], counts[other][tenant]) = (0, 0);
                }
            }
            waiting[tenant].pop_front();
            for other in (0..3).filter(|_| waiting[tenant].is_empty()) {
                (counts[tenant][other], counts[other][tenant]) = (0, 0);
            }
            for (one, other) in [(0, 1), (0, 2), (1, 2)] {
                let [of_one, of_other] = [counts[one][other], counts[other][one]];
                assert!(of_one.abs_diff(of_other) <= TURN, "seed {seed}: {of_one} of {one}, {of_other} of {other}");
            }
        }
        assert!(admitted > 1900, "{admitted}");
    }
}

#[test]
fn a_tenant_waits_for_one_turn_of_a_tenant_with_hundreds_of_requests() {
    let mut scheduler = Scheduler::new(Config { pages: 64, step_tokens: 64, max_running: 1 });
    let run = |scheduler: &mut Scheduler| {
        let sequence = step(scheduler, 64).work[0].sequence;
        scheduler.finish(sequence);
        sequence.0
    };
    (0..3000).for_each(|id| scheduler.submit(request(id, 1, vec![id as u32; 4], 1)).unwrap());
    // When the other request arrives, the oldest one has waited for no time, and for longer than it takes to move up.
    for (served, arrives) in [(0, 3000), (2000, 3001)] {
        while run(&mut scheduler) + 1 < served {}
        scheduler.submit(request(arrives, 2, vec![7; 4], 1)).unwrap();
        let position = (0..=TURN).position(|_| run(&mut scheduler) == arrives);
        assert!(position.is_some(), "{arrives} waits for more than one turn");
    }
}

/// With one tenant, requests are admitted and prompts computed by due step and arrival, also if others run already.
#[test]
fn one_tenant_is_served_by_due_step_and_arrival() {
    for seed in 1..=30 {
        let mut random = Random::new(seed);
        let max_running = 1 + random.below(8);
        let mut scheduler = Scheduler::new(Config { pages: 64, step_tokens: 40, max_running });
        // By due step and arrival.
        let (mut waiting, mut prompts) = (BTreeSet::<(u64, u64)>::new(), BTreeSet::new());
        let (mut next_id, mut overtaken) = (0, 0);
        for clock in 0..4000 {
            if random.below(2) == 0 && waiting.len() < 40 {
                next_id += 1;
                let (tokens, priority) = (1 + random.below(60), random.below(3) as u8);
                scheduler.submit(request(next_id, 7, vec![next_id as u32; tokens], priority)).unwrap();
                waiting.insert((clock + PATIENCE * u64::from(priority), next_id));
            }
            if let Some((due, id)) = prompts.last().copied().filter(|_| random.below(20) == 0) {
                scheduler.finish(SequenceId(id));
                prompts.remove(&(due, id));
            }
            while prompts.len() < max_running {
                let Some(next) = waiting.pop_first() else { break };
                overtaken += usize::from(prompts.last().is_some_and(|last| next < *last));
                prompts.insert(next);
            }
            let step = step(&mut scheduler, 1 + random.below(40));
            let computed: Vec<u64> = step.work.iter().map(|work| work.sequence.0).collect();
            let due: Vec<u64> = prompts.iter().take(computed.len()).map(|(_, id)| *id).collect();
            assert_eq!(computed, due, "seed {seed}, step {}", clock + 1);
            for work in step.work.iter().filter(|work| work.wants_logits) {
                scheduler.finish(work.sequence);
                prompts.retain(|(_, id)| *id != work.sequence.0);
            }
        }
        assert!(next_id > 1000 && (overtaken > 20 || max_running == 1), "{next_id} requests, {overtaken} overtaken");
    }
}

#[test]
fn prompts_of_two_tenants_get_half_of_the_rows_each_from_the_arrival_of_the_second() {
    let mut scheduler = Scheduler::new(Config { pages: 256, step_tokens: 64, max_running: 8 });
    let prompt = |id: u64, tokens| (0..tokens).map(|token| 10_000 * id as u32 + token).collect::<Vec<u32>>();
    (1..=400).for_each(|id| scheduler.submit(request(id, 1, prompt(id, 320), 1)).unwrap());
    let (mut rows, mut others) = (0, 0);
    for clock in 0.. {
        // By then those that wait are older than it takes to move up.
        if clock == 1500 {
            scheduler.submit(request(1000, 2, prompt(1000, 640), 1)).unwrap();
        }
        if rows == 640 {
            break;
        }
        for work in step(&mut scheduler, 64).work {
            if work.sequence == SequenceId(1000) {
                rows += work.tokens.len();
            } else if clock >= 1500 {
                others += work.tokens.len();
            }
            if work.wants_logits {
                scheduler.finish(work.sequence);
            }
        }
    }
    assert!((512..=768).contains(&others), "{others} rows of the first tenant beside 640 of the second");
}

/// Pages for the prefix of one tenant only: each turn computes its tenant's prefix once.
#[test]
fn requests_with_a_common_prefix_share_it_within_a_turn_where_pages_are_short() {
    let mut scheduler = Scheduler::new(Config { pages: 12, step_tokens: 512, max_running: 1 });
    let prompt = |tenant: u64, id: u64| {
        let prefix = (0..256).map(|token| 1000 * tenant as u32 + token);
        prefix.chain([90_000 + id as u32; 8]).collect::<Vec<u32>>()
    };
    for id in 0..16 {
        (1..=2).for_each(|tenant| {
            let id = 100 * tenant + id;
            scheduler.submit(request(id, tenant, prompt(tenant, id), 1)).unwrap();
        });
    }
    let mut cached = Vec::new();
    while !scheduler.is_idle() {
        for work in step(&mut scheduler, 512).work.iter().filter(|work| work.wants_logits) {
            cached.push(scheduler.usage(work.sequence).unwrap().cached_tokens);
            scheduler.finish(work.sequence);
        }
    }
    assert_eq!(cached.len(), 32);
    assert_eq!(cached.iter().filter(|cached| **cached < 256).count(), 32 / TURN, "{cached:?}");
}

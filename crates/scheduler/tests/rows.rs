//! How the rows of a step are divided.

use scheduler::{Config, Namespace, PROMPT_ROWS, Request, Scheduler, SequenceId, TenantId};

#[test]
fn drafts_leave_rows_to_a_prompt_that_waits() {
    let mut scheduler = Scheduler::new(Config { pages: 64, step_tokens: 512, max_running: 8 });
    let submit = |scheduler: &mut Scheduler, id: u64, tokens: usize| {
        let prompt = (0..tokens as u32).map(|token| 1000 * id as u32 + token).collect();
        let id = SequenceId(id);
        let namespace = Namespace::default();
        let request = Request {
            id,
            tenant: TenantId::default(),
            namespace,
            pinned: false,
            prompt,
            stable_tokens: 0,
            workflow: None,
            max_output_tokens: 99,
            priority: 1,
        };
        scheduler.submit(request).unwrap();
    };
    (1..=4).for_each(|id| submit(&mut scheduler, id, 5));
    let step = scheduler.step(usize::MAX);
    for work in &step.work {
        scheduler.commit(work);
        scheduler.append(work.sequence, 7);
        scheduler.draft(work.sequence, &[8; 30]);
    }
    assert_eq!(scheduler.decoding(), 4);
    submit(&mut scheduler, 9, 200);
    let rows = 4 + PROMPT_ROWS;
    let step = scheduler.step(rows);
    let of = |is_prompt: bool| -> usize {
        let work = step.work.iter().filter(|work| (work.sequence == SequenceId(9)) == is_prompt);
        work.map(|work| work.tokens.len()).sum()
    };
    assert_eq!(step.work.len(), 5, "each sequence continues");
    assert_eq!(of(true) + of(false), rows);
    assert!(of(true) >= rows / 2, "{} of {rows} rows for the prompt", of(true));
}

#[test]
fn a_prompt_that_fills_a_page_for_another_has_its_priority() {
    let mut scheduler = Scheduler::new(Config { pages: 256, step_tokens: 64, max_running: 4 });
    let submit = |scheduler: &mut Scheduler, id: u64, prompt: Vec<u32>, priority: u8| {
        let (id, namespace) = (SequenceId(id), Namespace::default());
        let request = Request {
            id,
            tenant: TenantId::default(),
            namespace,
            pinned: false,
            prompt,
            stable_tokens: 0,
            workflow: None,
            max_output_tokens: 9,
            priority,
        };
        scheduler.submit(request).unwrap();
    };
    let shared: Vec<u32> = (0..640).collect();
    let step = |scheduler: &mut Scheduler| -> Vec<u64> {
        let work = scheduler.step(64).work;
        work.iter().for_each(|work| scheduler.commit(work));
        work.iter().map(|work| work.sequence.0).collect()
    };
    submit(&mut scheduler, 1, shared.clone(), 9);
    assert_eq!(step(&mut scheduler), [1], "a batch begins its prompt");
    submit(&mut scheduler, 2, (1000..1640).collect(), 1);
    submit(&mut scheduler, 3, [shared, vec![7]].concat(), 0);
    assert_eq!(step(&mut scheduler)[0], 1, "the urgent request waits for its pages");
}

#[test]
fn many_tokens_that_needed_no_logits_get_rows_as_a_prompt_does() {
    let mut scheduler = Scheduler::new(Config { pages: 64, step_tokens: 64, max_running: 8 });
    let submit = |scheduler: &mut Scheduler, id: u64, tokens: usize| {
        let request = Request {
            id: SequenceId(id),
            tenant: TenantId(id),
            namespace: Namespace(id),
            pinned: false,
            prompt: (0..tokens as u32).collect(),
            stable_tokens: 0,
            workflow: None,
            max_output_tokens: 400,
            priority: 1,
        };
        scheduler.submit(request).unwrap();
    };
    let step = |scheduler: &mut Scheduler| -> Vec<(u64, usize)> {
        let work = scheduler.step(64).work;
        for work in &work {
            scheduler.commit(work);
            if work.wants_logits {
                let tokens = if work.sequence == SequenceId(1) && work.start == 0 { 300 } else { 1 };
                (0..tokens).for_each(|_| scheduler.append(work.sequence, 7));
            }
        }
        work.iter().map(|work| (work.sequence.0, work.tokens.len())).collect()
    };
    submit(&mut scheduler, 1, 5);
    assert_eq!(step(&mut scheduler), [(1, 5)]);
    assert_eq!(scheduler.decoding(), 0);
    submit(&mut scheduler, 2, 60);
    assert_eq!(step(&mut scheduler), [(2, 60), (1, 4)], "the other tenant has fewer tokens");
    for left in [296, 233, 170, 107] {
        assert_eq!(step(&mut scheduler), [(2, 1), (1, 63)], "{left} are left");
    }
    assert_eq!(step(&mut scheduler), [(2, 1), (1, 44)]);
}

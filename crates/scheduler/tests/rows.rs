//! How the rows of a step are divided.

use scheduler::{Config, Namespace, PROMPT_ROWS, Request, Scheduler, SequenceId};

#[test]
fn drafts_leave_rows_to_a_prompt_that_waits() {
    let mut scheduler = Scheduler::new(Config { pages: 64, step_tokens: 512, max_running: 8 });
    let submit = |scheduler: &mut Scheduler, id: u64, tokens: usize| {
        let prompt = (0..tokens as u32).map(|token| 1000 * id as u32 + token).collect();
        let id = SequenceId(id);
        let namespace = Namespace::default();
        let request =
            Request { id, namespace, prompt, stable_tokens: 0, workflow: None, max_output_tokens: 99, priority: 1 };
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

//! Pages that are pinned for all namespaces.

use scheduler::{Config, Namespace, Refusal, Request, Scheduler, SequenceId, TenantId, WorkflowId};

const PINNED: std::ops::Range<u32> = 0..64;

/// A scheduler of ten pages, two of them pinned.
fn scheduler() -> Scheduler {
    let mut scheduler = Scheduler::new(Config { pages: 10, step_tokens: 512, max_running: 4 });
    assert_eq!(scheduler.pin(&PINNED.collect::<Vec<_>>()).len(), 2);
    scheduler
}

fn request(namespace: u64, prompt: impl IntoIterator<Item = u32>) -> Request {
    Request {
        id: SequenceId(1),
        tenant: TenantId(namespace),
        namespace: Namespace(namespace),
        pinned: true,
        prompt: prompt.into_iter().collect(),
        stable_tokens: 128,
        workflow: Some(WorkflowId(1)),
        max_output_tokens: 1,
        priority: 0,
    }
}

/// The cached tokens of a request, which is run to its end.
fn cached(scheduler: &mut Scheduler, request: Request) -> usize {
    scheduler.submit(request).unwrap();
    scheduler.step(usize::MAX).work.iter().for_each(|work| scheduler.commit(work));
    let usage = scheduler.usage(SequenceId(1)).unwrap();
    scheduler.check_integrity().unwrap();
    scheduler.finish(SequenceId(1));
    scheduler.check_integrity().unwrap();
    usage.cached_tokens
}

#[test]
fn namespaces_share_the_pinned_pages_from_the_first_request_on_and_nothing_behind_them() {
    let mut scheduler = scheduler();
    let prompt = || PINNED.chain(100..170);
    assert_eq!([1, 2].map(|namespace| cached(&mut scheduler, request(namespace, prompt()))), [64, 64]);
    assert_eq!([1, 2].map(|namespace| cached(&mut scheduler, request(namespace, prompt()))), [128, 128]);
    assert!(scheduler.new_prefixes(Namespace(1), WorkflowId(1)).is_empty(), "what follows pinned pages is not saved");
    assert_eq!(cached(&mut scheduler, request(1, 100..170)), 0, "the same tokens at another position");
}

#[test]
fn a_prompt_that_differs_within_a_pinned_page_shares_the_pages_before_it() {
    let mut scheduler = scheduler();
    assert_eq!(cached(&mut scheduler, request(1, (0..63).chain(500..540))), 32);
    assert_eq!(cached(&mut scheduler, request(1, [500].into_iter().chain(1..70))), 0);
    assert_eq!(cached(&mut scheduler, request(2, PINNED)), 32, "the last token of a prompt is computed");
    assert_eq!(cached(&mut scheduler, Request { pinned: false, ..request(3, PINNED.chain(100..110)) }), 0);
}

#[test]
fn pinned_pages_are_no_part_of_the_pool_and_never_evicted() {
    let mut scheduler = scheduler();
    assert_eq!(scheduler.pages(), (8, 0, 0));
    let too_long = scheduler.submit(request(1, 1000..1256));
    assert_eq!(too_long, Err(Refusal::NeverFits { pages: 9, total_pages: 8 }));
    assert_eq!(cached(&mut scheduler, request(1, 1000..1255)), 0);
    assert_eq!(cached(&mut scheduler, request(2, PINNED.chain(100..110))), 64);
}

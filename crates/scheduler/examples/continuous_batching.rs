//! Two requests with a common prefix on a scheduler without a model: each step prints the batch that an engine would run.
//!
//!     cargo run -p scheduler --example continuous_batching

use scheduler::{Config, Namespace, PAGE_TOKENS, Request, Scheduler, SequenceId, TenantId};

fn main() {
    let mut scheduler = Scheduler::new(Config { pages: 64, step_tokens: 48, max_running: 8 });
    let shared: Vec<u32> = (0..2 * PAGE_TOKENS as u32).collect();
    for id in 0..2u64 {
        let prompt = [shared.clone(), vec![1000 + id as u32; 5]].concat();
        let (id, stable_tokens) = (SequenceId(id), shared.len());
        let namespace = Namespace::default();
        let request = Request {
            id,
            tenant: TenantId::default(),
            namespace,
            pinned: false,
            prompt,
            stable_tokens,
            workflow: None,
            max_output_tokens: 3,
            priority: 0,
        };
        scheduler.submit(request).expect("the queue and the pool have room");
    }
    let mut written = [0; 2];
    for step in 1.. {
        let batch = scheduler.step(usize::MAX).work;
        if batch.is_empty() {
            break;
        }
        for work in &batch {
            println!("step {step}: sequence {}, {} tokens from {}", work.sequence.0, work.tokens.len(), work.start);
            // An engine would run the forward pass here and sample from the logits.
            scheduler.commit(work);
            if !work.wants_logits {
                continue;
            }
            let count = &mut written[work.sequence.0 as usize];
            *count += 1;
            if *count == 3 {
                let usage = scheduler.usage(work.sequence).expect("the sequence is running");
                println!(
                    "sequence {}: {} of {} prompt tokens cached",
                    work.sequence.0, usage.cached_tokens, usage.prompt_tokens
                );
                scheduler.finish(work.sequence);
            } else {
                scheduler.append(work.sequence, 7);
            }
        }
    }
    assert!(scheduler.is_idle());
}

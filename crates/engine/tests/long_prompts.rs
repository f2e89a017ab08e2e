//! Prompts far longer than the context are refused in little memory.

mod tiny;

use calls::{CallError, Caller};
use engine::Config;
use peak_alloc::PeakAlloc;
use tiny::{ask, model, run, start};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

#[test]
fn a_prompt_far_longer_than_the_context_is_refused_in_little_memory() {
    let engine = start(model("long", |tokenizer| tokenizer), Config { kv_tokens: 4096, ..Config::default() });
    assert!(run(engine.call(ask("Hi!", 4))).is_ok());
    let text = "Hi! ".repeat(500_000);
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage_as_mb();
    let refused = run(engine.call(ask(&text, 4))).unwrap_err();
    let CallError::TooLong { prompt_tokens, .. } = refused else { panic!("{refused}") };
    assert!(prompt_tokens >= text.len(), "every byte is a token: {prompt_tokens}");
    let mib = MEMORY.peak_usage_as_mb() - before;
    assert!(mib < 100.0, "{mib} MiB");
}

//! Ids without bytes, with which a vocabulary is padded, are not drawn and have no probability.

use calls::{Call, Caller, Sampling};
use engine::Config;

use crate::tiny::{ask, model, run, start};

#[test]
fn padding_ids_are_neither_drawn_nor_among_the_log_probabilities() {
    const PADDING: u32 = 255;
    let model = model("padding", |tokenizer| tokenizer.replace("\"Ń\":255", "\"\":255"));
    assert_eq!(model.tokenizer.bytes(PADDING), b"");
    let engine = start(model, Config { kv_tokens: 1024, ..Config::default() });
    for (logprobs, temperature) in [(None, 0.0), (Some(300), 0.0), (Some(300), 1.0)] {
        let sampling = Sampling { logit_bias: [(PADDING, 1000.0)].into(), temperature, ..Sampling::GREEDY };
        let reply = run(engine.call(Call { sampling, logprobs, ..ask("What?", 8) })).unwrap();
        assert!(!reply.text.is_empty());
        for token in &reply.logprobs {
            assert!(token.id != Some(PADDING) && token.top.iter().all(|(bytes, _)| !bytes.is_empty()), "{token:?}");
            // What is left has all of the probability.
            let sum: f32 = token.top.iter().map(|(_, logprob)| logprob.exp()).sum();
            assert!((sum - 1.0).abs() < 1e-4, "{sum}");
        }
    }
}

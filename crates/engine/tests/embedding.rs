//! all-MiniLM-L6-v2's real weights through the engine against sentence-transformers; `tests/golden/minilm.py` made the
//! goldens.

use std::collections::HashMap;

use calls::{CallError, Embedder};
use candle_core::Device;
use engine::{Config, Engine, Models};
use models::EmbeddingModel;
use serde_json::Value;

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn engine() -> Option<Engine> {
    let model = EmbeddingModel::load(&test_support::weights("all-minilm-l6-v2")?, &Device::Cpu).unwrap();
    let models = Models { language: vec![], agents: HashMap::new(), embedder: Some(("minilm".into(), model)) };
    Some(Engine::start(models, Config::default()).unwrap())
}

#[test]
fn vectors_are_those_of_sentence_transformers() {
    let Some(engine) = engine() else { return };
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/minilm.json");
    let golden: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let mut worst = 1f64;
    let mut checked = 0;
    for case in golden["texts"].as_array().unwrap() {
        let text = case["text"].as_str().unwrap().to_owned();
        let vector = match run(engine.embed(vec![text.clone()])) {
            // The reference truncates a text that is too long; the engine refuses it.
            Err(CallError::TooLongToEmbed { tokens, window_tokens, .. }) => {
                assert_eq!((case["ids"].as_array().unwrap().len(), window_tokens), (256, 254));
                assert!(tokens > window_tokens);
                let end = engine.token_spans(&text)[window_tokens - 1].end;
                run(engine.embed(vec![text[..end].to_owned()])).unwrap().remove(0)
            }
            other => other.unwrap().remove(0),
        };
        let want = case["embedding"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap());
        let cosine: f64 = vector.iter().zip(want).map(|(a, b)| f64::from(*a) * b).sum();
        assert!(cosine >= 0.9999, "{text:?}: {cosine}");
        worst = worst.min(cosine);
        checked += 1;
    }
    println!("smallest cosine of {checked} texts: {worst}");
    assert_eq!(checked, 20);
}

#[test]
fn a_text_in_a_batch_gets_the_bits_that_it_gets_alone() {
    let Some(engine) = engine() else { return };
    let texts: Vec<String> =
        (1..60).map(|n| "The keeper counted ships, sails and gulls. ".repeat(n % 17 + 1)).collect();
    let together = run(engine.embed(texts.clone())).unwrap();
    for (text, vector) in texts.into_iter().zip(together) {
        assert_eq!(run(engine.embed(vec![text])).unwrap()[0], vector);
    }
    assert!(run(engine.embed(vec![])).unwrap().is_empty());
    assert_eq!((engine.dims(), engine.special_tokens()), (384, 2));
}

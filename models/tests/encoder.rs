//! The encoder against transformers (torch, f32) on tiny random checkpoints; `tests/golden/encoder_random.py` made the
//! goldens.

use std::path::PathBuf;

use candle_core::Device;
use models::{Encoder, Spec, Weights, ranges};
use serde_json::Value;

fn check(name: &str) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/encoder").join(name);
    let read = |file: &str| -> Value { serde_json::from_slice(&std::fs::read(folder.join(file)).unwrap()).unwrap() };
    let Spec::Encoder(spec) = Spec::from_config(&read("config.json")).unwrap() else { panic!("no encoder") };
    let weights = Weights::open_safetensors(&folder).unwrap();
    let encoder = Encoder::load(&spec, &weights, &Device::Cpu).unwrap();
    let outputs = read("outputs.json");
    let cases = outputs["cases"].as_array().unwrap();
    let sequences: Vec<Vec<u32>> = cases
        .iter()
        .map(|case| case["ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect())
        .collect();
    let together = encoder.forward(&sequences).unwrap().to_vec2::<f32>().unwrap();
    let mut worst = 0f32;
    for ((case, sequence), range) in cases.iter().zip(&sequences).zip(ranges(&sequences)) {
        let want = case["last_hidden_state"].as_array().unwrap();
        for (got, want) in together[range.clone()].iter().zip(want) {
            for (got, want) in got.iter().zip(want.as_array().unwrap()) {
                worst = worst.max((got - want.as_f64().unwrap() as f32).abs());
            }
        }
        let alone = encoder.forward(std::slice::from_ref(sequence)).unwrap().to_vec2::<f32>().unwrap();
        assert_eq!(alone, together[range], "{name}: a sequence depends on its neighbours");
    }
    println!("{name}: largest difference {worst:e}");
    assert!(worst <= 2e-5, "{name}: {worst}");
}

#[test]
fn bert() {
    check("bert");
}

#[test]
fn xlm_roberta_with_positions_from_two() {
    check("xlm_roberta");
}

//! Is the evidence for questions about real conversations found? LoCoMo's turns (Maharana et al. 2024) by the tools
//! that the methods have: the store's BM25, the engine's vectors with all-MiniLM-L6-v2's real weights, and both together.
//!
//! Embedding all five public conversations takes over a minute, so only two are used. `memlocal-bench retrieval` uses
//! all of them.

use std::collections::HashMap;
use std::env;
use std::path::PathBuf;

use candle_core::Device;
use engine::{Config, Engine, Models};
use eval::retrieval::{Comparison, Summary, Tool, rank};
use eval::{Dataset, Suite};
use models::EmbeddingModel;
use store::Bm25;

use test_support::weights;

const CONVERSATIONS: usize = 2;

fn conversations() -> Option<Dataset> {
    let beside = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"));
    let path = env::var_os("MEMLOCAL_DATA").map_or_else(beside, PathBuf::from).join("locomo");
    if !path.exists() {
        println!("skipped: {} is missing; set MEMLOCAL_DATA to the evaluation data", path.display());
        return None;
    }
    let mut data = Suite::LoCoMo.load(&path).unwrap();
    data.collections.truncate(CONVERSATIONS);
    Some(data)
}

fn embedder() -> Option<Engine> {
    let model = EmbeddingModel::load(&weights("all-minilm-l6-v2")?, &Device::Cpu).unwrap();
    let models = Models { language: vec![], agents: HashMap::new(), embedder: Some(("minilm".into(), model)) };
    Some(Engine::start(models, Config::default()).unwrap())
}

#[test]
fn evidence_is_among_the_first_turns() {
    let (Some(data), Some(engine)) = (conversations(), embedder()) else { return };
    let (tools, depths) = (&[Tool::Bm25, Tool::Dense, Tool::Fused], Suite::LoCoMo.recall_depths());
    let comparison =
        Comparison { tools, bm25: Bm25::default(), embedder: Some(&engine), depths, windows: Suite::LoCoMo.windows() };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let rankings = runtime.block_on(rank(&data, comparison, &mut |_, _| ())).unwrap();
    let summary = Summary::new(Suite::LoCoMo, &data, &comparison, &rankings);
    println!("{summary}");
    let check = |tool, floors: [f64; 4]| {
        for (depth, floor) in [5, 10, 20, 50].into_iter().zip(floors) {
            let recall = summary.score("all", tool, 0, &format!("recall@{depth}")).unwrap();
            assert!(recall >= floor, "{tool} at {depth}: {recall} is under {floor}");
        }
    };
    // Slightly below the measured values: .554 .620 .711 .760 and .336 .434 .545 .692.
    check(Tool::Bm25, [0.545, 0.610, 0.700, 0.750]);
    check(Tool::Dense, [0.325, 0.425, 0.535, 0.680]);
    // Both together find more than either alone, also within the windows around their hits.
    for window in [0].into_iter().chain(comparison.windows.iter().copied()) {
        let [words, meaning, both] = tools.map(|tool| summary.score("all", tool, window, "recall@10").unwrap());
        assert!(both > words.max(meaning), "window {window}: {both} against {words} and {meaning}");
    }
}

//! The real data, compared with published numbers and with earlier measurements.

use eval::retrieval::{Comparison, Summary, Tool, rank};
use eval::{Dataset, Suite};
use store::Bm25;

use crate::{evaluation_data, now};

fn summary(suite: Suite, data: &Dataset, bm25: Bm25) -> Summary {
    let tools = &[Tool::Bm25, Tool::Bm25Fields];
    let (depths, windows) = (suite.recall_depths(), suite.windows());
    let comparison = Comparison { tools, bm25, embedder: None, depths, windows };
    Summary::new(suite, data, &comparison, &now(rank(data, comparison, &mut |_, _| ())).unwrap())
}

fn check(summary: &Summary, tool: Tool, number: &str, expect: f64, tolerance: f64) {
    let score = summary.score("all", tool, 0, number).unwrap();
    println!("{} {tool} {number}: {score:.4}, published {expect}", summary.suite);
    assert!((score - expect).abs() <= tolerance, "{tool} {number}: {score} instead of {expect}");
}

#[test]
fn bm25_on_scifact_is_as_published() {
    let Some(path) = evaluation_data("scifact") else { return };
    let data = Suite::SciFact.load(&path).unwrap();
    let found = summary(Suite::SciFact, &data, Bm25::default());
    // BEIR's own number uses title and text as two fields.
    check(&found, Tool::Bm25Fields, "ndcg@10", 0.665, 0.01);
    assert_eq!(found.published.len(), 3);
    for published in &found.published {
        check(&found, published.tool, published.metric, published.value, 0.005);
    }
}

/// Without our analyzer the result must equal textbook BM25.
#[test]
fn bm25_on_scifact_without_stemming_is_that_of_the_reference() {
    let Some(path) = evaluation_data("scifact") else { return };
    let mut data = Suite::SciFact.load(&path).unwrap();
    let collection = &mut data.collections[0];
    for passage in &mut collection.passages {
        passage.text = plain_terms(&passage.whole());
        passage.title.clear();
    }
    for query in &mut collection.queries {
        query.text = plain_terms(&query.text);
    }
    let found = summary(Suite::SciFact, &data, Bm25 { k1: 1.2, b: 0.75 });
    check(&found, Tool::Bm25, "ndcg@10", 0.6663, 0.0001);
    check(&found, Tool::Bm25, "recall@100", 0.886, 0.0005);
}

/// The runs of ASCII letters and digits except Lucene's stop words, each spelt so that no analyzer changes it.
fn plain_terms(text: &str) -> String {
    const STOP_WORDS: &str = "a an and are as at be but by for if in into is it no not of on or such that the their then \
                              there these they this to was will with";
    let text = text.to_lowercase();
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let kept = words.filter(|word| STOP_WORDS.split(' ').all(|stop| stop != *word));
    let spelt = |word: &str| word.bytes().map(|byte| format!("{byte:03}")).collect::<Vec<_>>().concat();
    kept.map(spelt).collect::<Vec<_>>().join(" ")
}

#[test]
fn bm25_finds_the_evidence_of_locomo() {
    let Some(path) = evaluation_data("locomo") else { return };
    let data = Suite::LoCoMo.load(&path).unwrap();
    let found = summary(Suite::LoCoMo, &data, Bm25::default());
    println!("{found}");
    // Slightly below the measured values.
    for (group, floor) in [("all", 0.612), ("1 to 4", 0.596), ("2 temporal", 0.760), ("5 adversarial", 0.665)] {
        let recall = found.score(group, Tool::Bm25, 0, "recall@10").unwrap();
        assert!(recall >= floor, "{group}: {recall}");
    }
}

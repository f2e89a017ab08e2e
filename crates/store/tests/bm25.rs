//! BM25 against an independent implementation (golden/bm25.py).

use std::collections::BTreeSet;

use serde_json::Value;
use store::{Bm25, Hit, IndexText, Layer, LexicalIndex, PassageId, Writer};

use crate::scratch::{Outcome, Scratch, author, put_lines};

const GOLDEN: &str = include_str!("golden/bm25.json");

#[test]
fn terms_scores_and_order_are_those_of_the_golden_run() -> Outcome {
    let golden: Value = serde_json::from_str(GOLDEN)?;
    let entries = |name: &str| golden[name].as_array().cloned().unwrap_or_default();
    let texts = entries("texts");
    for entry in &texts {
        let text = entry["text"].as_str().unwrap_or_default();
        assert_eq!(store::analyze(text).join(" "), entry["terms"].as_str().unwrap_or_default(), "terms of {text:?}");
    }
    let numbered = (0..).map(PassageId).zip(texts.iter().filter_map(|entry| entry["text"].as_str()));
    let index = LexicalIndex::build(numbered, Bm25::default());
    assert!(texts.len() > 30 && entries("queries").len() > 10);
    for entry in entries("queries") {
        let query = entry["query"].as_str().unwrap_or_default();
        let expected: Vec<(i64, f64)> = serde_json::from_value(entry["hits"].clone())?;
        let hits = index.search(query, 100);
        let order = |ids: Vec<i64>| ids;
        assert_eq!(
            hits.iter().map(|hit| hit.passage.0).collect::<Vec<_>>(),
            order(expected.iter().map(|hit| hit.0).collect()),
            "{query}"
        );
        for (hit, (_, score)) in hits.iter().zip(expected) {
            assert!(
                (f64::from(hit.score) - score).abs() < 1e-5,
                "{query}: {} scores {} instead of {score}",
                hit.passage,
                hit.score
            );
        }
    }
    Ok(())
}

#[test]
fn equal_scores_are_in_the_order_of_ids() {
    let texts = [(PassageId(9), "fig"), (PassageId(2), "fig"), (PassageId(5), "fig tree")];
    let index = LexicalIndex::build(texts, Bm25 { k1: 0.9, b: 0.0 });
    let ids = |hits: Vec<Hit>| hits.into_iter().map(|hit| hit.passage.0).collect::<Vec<_>>();
    assert_eq!(ids(index.search("fig", 10)), [2, 5, 9]);
    assert_eq!(ids(index.search("fig", 2)), [2, 5]);
    assert_eq!(ids(index.search("fig", 0)), [0; 0]);
    assert_eq!(ids(index.search_among("fig", 10, &BTreeSet::from([PassageId(9), PassageId(5)]))), [5, 9]);
}

#[test]
fn parameters_change_scores_as_in_the_formula() {
    let check = |parameters: Bm25, expected: f32| {
        let index = LexicalIndex::build([(PassageId(1), "fig fig tree"), (PassageId(2), "wall")], parameters);
        let score = index.search("fig", 1)[0].score;
        assert!((score - expected).abs() < 1e-6, "{parameters:?}: {score} instead of {expected}");
    };
    // idf = ln(1 + 1.5 / 1.5) = ln 2; tf = 2; length 3 of mean 2
    let idf = std::f32::consts::LN_2;
    check(Bm25 { k1: 0.9, b: 0.4 }, idf * 2.0 / (2.0 + 0.9 * 1.2));
    check(Bm25 { k1: 1.2, b: 0.75 }, idf * 2.0 / (2.0 + 1.2 * 1.375));
    check(Bm25 { k1: 0.0, b: 0.4 }, idf);
    check(Bm25 { k1: 2.0, b: 0.0 }, idf * 2.0 / 4.0);
}

#[test]
fn an_empty_index_finds_nothing() {
    let check = |texts: &[(PassageId, &str)]| {
        assert_eq!(LexicalIndex::build(texts.iter().copied(), Bm25::default()).search("fig", 5), []);
    };
    check(&[]);
    check(&[(PassageId(1), ""), (PassageId(2), "the")]);
}

#[test]
fn notes_are_indexed_with_their_passages_when_asked_for() -> Outcome {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    put_lines(&mut writer, "garden", "beans and leeks\ngarlic\n")?;
    let pages = writer.passages(Layer::Page)?;
    writer.put_notes(pages[1].id, &[("header", "Planted in October"), ("abstract", "harvest")], &author())?;
    let found = |text: IndexText<'_>, query: &str| -> store::Result<Vec<PassageId>> {
        let index = LexicalIndex::open(&writer, Layer::Page, text, Bm25::default())?;
        Ok(index.search(query, 5).into_iter().map(|hit| hit.passage).collect())
    };
    assert_eq!(found(IndexText::Content, "october")?, []);
    assert_eq!(found(IndexText::NoteAndContent("header"), "october")?, [pages[1].id]);
    assert_eq!(found(IndexText::NoteAndContent("header"), "harvest")?, []);
    assert_eq!(found(IndexText::NoteAndContent("header"), "leek")?, [pages[0].id]);
    assert_eq!(writer.index_text(pages[1].id, IndexText::NoteAndContent("header"))?, "Planted in October\ngarlic");
    assert_eq!(writer.index_text(pages[0].id, IndexText::NoteAndContent("header"))?, "beans and leeks");
    Ok(())
}

#[test]
fn the_name_of_a_document_counts_for_all_its_passages() -> Outcome {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    put_lines(&mut writer, "plans/orchard_2024.md", "pears\nfigs and plums\n")?;
    let open = |writer: &Writer| LexicalIndex::open(writer, Layer::Page, IndexText::Content, Bm25::default());
    let found = |index: &LexicalIndex, query: &str| -> Vec<(i64, f32)> {
        index.search(query, 5).into_iter().map(|hit| (hit.passage.0, hit.score)).collect()
    };
    let alone = open(&writer)?;
    assert_eq!(found(&alone, "orchard"), [], "one document's name tells no passages apart");
    put_lines(&mut writer, "plans/garden.md", "beans\npears\n")?;
    let index = open(&writer)?;
    for name in ["orchard", "orchard_2024.md"] {
        let [(first, score), (second, same)] = found(&index, name)[..] else { panic!("both pages of the document") };
        assert_eq!((first, second, score), (1, 2, same));
    }
    assert_eq!(found(&index, "plans"), [], "all documents are in this folder");
    // Pages with pears have the same score by their text.
    let pears = found(&index, "pears");
    assert_eq!(pears[0].1, pears[1].1);
    let both = found(&index, "orchard 2024 pears");
    assert_eq!(both.iter().map(|hit| hit.0).collect::<BTreeSet<_>>(), BTreeSet::from([1, 2, 4]));
    assert_eq!(both[0].0, 1);
    assert!(both.contains(&pears[1]));
    Ok(())
}

//! BM25 on real conversations through the whole store: recall of the turns that answer a question.
//!
//! `LoCoMo`'s public part, five conversations. The text of a turn is "Speaker: text", the text of a page its date and
//! turns.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use store::{Bm25, Hit, IndexText, Layer, LexicalIndex, Meta, NewDocument, NewPassage, Passage, PassageId, Writer};

use crate::scratch::{Outcome, Scratch};

const DEPTHS: [usize; 4] = [5, 10, 20, 50];
/// Slightly below the measured values: .5316 .5969 .6617 .7418, and for pages .8725.
const TURN_FLOORS: [f64; 4] = [0.525, 0.590, 0.655, 0.735];
const PAGE_FLOOR: f64 = 0.865;

fn data() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("MEMLOCAL_DATA").map_or(beside, PathBuf::from);
    Some(folder.join("locomo/locomo_public5.json")).filter(|file| file.exists())
}

/// Stores a conversation: its sessions as pages, its utterances as turns labelled with their ids.
fn remember(writer: &mut Writer, conversation: &Value) -> Result<(), store::Error> {
    let (mut text, mut passages) = (String::new(), Vec::new());
    let string = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for number in 1..100 {
        let Some(turns) = conversation[format!("session_{number}")].as_array() else { continue };
        let time = string(&conversation[format!("session_{number}_date_time")]);
        let page_start = text.len();
        text.extend([time.as_str(), "\n"]);
        for turn in turns {
            let (speaker, start) = (string(&turn["speaker"]), text.len());
            text.extend([&speaker, ": ", &string(&turn["text"])]);
            let meta = Meta { label: Some(string(&turn["dia_id"])), time: Some(time.clone()), speaker: Some(speaker) };
            passages.push(NewPassage { layer: Layer::Turn, bytes: start..text.len(), tokens: 0, meta });
            text.push('\n');
        }
        let meta = Meta { label: Some(format!("D{number}")), time: Some(time), speaker: None };
        passages.push(NewPassage { layer: Layer::Page, bytes: page_start..text.len(), tokens: 0, meta });
    }
    writer.put_document(&NewDocument {
        path: "conversation",
        kind: "locomo",
        title: "",
        text: &text,
        passages: &passages,
    })?;
    Ok(())
}

/// The ids in an evidence list; some of its strings contain several ids, a few contain none.
fn evidence(question: &Value, known: &BTreeSet<String>) -> BTreeSet<String> {
    let strings = question["evidence"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let ids = strings.flat_map(|string| string.split(|sign: char| !(sign.is_ascii_alphanumeric() || sign == ':')));
    ids.filter(|id| known.contains(*id)).map(str::to_owned).collect()
}

fn recall(gold: &BTreeSet<String>, hits: &[Hit], passages: &[Passage]) -> f64 {
    let first = passages.first().map_or(PassageId(0), |passage| passage.id);
    let label = |hit: &Hit| passages[usize::try_from(hit.passage.0 - first.0).unwrap_or(usize::MAX)].meta.label.clone();
    let found: BTreeSet<String> = hits.iter().filter_map(label).collect();
    gold.intersection(&found).count() as f64 / gold.len() as f64
}

#[test]
fn evidence_of_locomo_is_found() -> Outcome {
    let Some(file) = data() else {
        println!("not tested: there is no LoCoMo in MEMLOCAL_DATA or ../shared/data");
        return Ok(());
    };
    let (mut questions, mut turn_recall, mut page_recall) = (0_u32, [0.0; DEPTHS.len()], 0.0);
    for sample in serde_json::from_slice::<Vec<Value>>(&fs::read(file)?)? {
        let scratch = Scratch::new();
        let mut writer = scratch.writer();
        remember(&mut writer, &sample["conversation"])?;
        let (turns, pages) = (writer.passages(Layer::Turn)?, writer.passages(Layer::Page)?);
        let known: BTreeSet<String> = turns.iter().filter_map(|turn| turn.meta.label.clone()).collect();
        let turn_index = LexicalIndex::open(&writer, Layer::Turn, IndexText::Content, Bm25::default())?;
        let page_index = LexicalIndex::open(&writer, Layer::Page, IndexText::Content, Bm25::default())?;
        for question in sample["qa"].as_array().into_iter().flatten().filter(|question| question["category"] != 5) {
            let gold = evidence(question, &known);
            if gold.is_empty() {
                continue;
            }
            questions += 1;
            let query = question["question"].as_str().unwrap_or_default();
            let hits = turn_index.search(query, 50);
            for (sum, depth) in turn_recall.iter_mut().zip(DEPTHS) {
                *sum += recall(&gold, &hits[..depth.min(hits.len())], &turns);
            }
            let sessions = gold.iter().filter_map(|id| Some(id.split_once(':')?.0.to_owned())).collect();
            page_recall += recall(&sessions, &page_index.search(query, 5), &pages);
        }
    }
    let turn_recall = turn_recall.map(|sum| sum / f64::from(questions));
    let page_recall = page_recall / f64::from(questions);
    println!(
        "LoCoMo, {questions} questions: turn recall @5/10/20/50 = {turn_recall:.4?}, page recall @5 = {page_recall:.4}"
    );
    assert!(turn_recall.iter().zip(TURN_FLOORS).all(|(found, floor)| *found >= floor));
    assert!(page_recall >= PAGE_FLOOR);
    Ok(())
}

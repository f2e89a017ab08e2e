//! Questions with their evidence from public data sets.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::fs;

use memory::Random;
use serde_json::Value;

/// A question with the texts that it is asked about.
pub struct Item {
    pub question: String,
    pub answers: Vec<String>,
    pub evidence: Vec<String>,
    /// The text that holds the answer.
    pub gold: usize,
}

impl Item {
    pub fn texts(&self, gold_only: bool) -> Vec<&str> {
        match gold_only {
            true => vec![&self.evidence[self.gold]],
            false => self.evidence.iter().map(String::as_str).collect(),
        }
    }
}

/// A part of XQuAD's articles.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Half {
    Calibration,
    Report,
}

/// The seed of the split of XQuAD's articles.
const SPLIT_SEED: u64 = 22;

type Items = Result<Vec<Item>, Box<dyn Error>>;

/// The items of a named set.
pub fn set(name: &str) -> Items {
    match name.split_once(':') {
        Some(("xquad", file)) => xquad(file, Half::Calibration),
        Some(("xquad-report", file)) => xquad(file, Half::Report),
        Some(("hotpot", file)) => hotpot(file),
        Some(("train", file)) => train(&[file]),
        _ => Err(format!("no such set: {name}").into()),
    }
}

/// XQuAD, each question with all paragraphs of its article; the articles are split by a seed.
pub fn xquad(file: &str, half: Half) -> Items {
    let root: Value = serde_json::from_str(&fs::read_to_string(file)?)?;
    let mut articles: Vec<&Value> = list(&root["data"]).iter().collect();
    articles.sort_by_key(|article| text(&article["title"]));
    Random::named(SPLIT_SEED, "xquad").shuffle(&mut articles);
    let (first, second) = articles.split_at(articles.len() / 2);
    let mut items = Vec::new();
    for article in if half == Half::Calibration { first } else { second } {
        let paragraphs = list(&article["paragraphs"]);
        let evidence: Vec<String> = paragraphs.iter().map(|paragraph| text(&paragraph["context"])).collect();
        for (gold, paragraph) in paragraphs.iter().enumerate() {
            for qa in list(&paragraph["qas"]) {
                let answers = list(&qa["answers"]).iter().map(|answer| text(&answer["text"])).collect();
                items.push(Item { question: text(&qa["question"]), answers, evidence: evidence.clone(), gold });
            }
        }
    }
    Ok(items)
}

/// HotpotQA's distractor setting.
fn hotpot(file: &str) -> Items {
    let root: Value = serde_json::from_str(&fs::read_to_string(file)?)?;
    let item = |item: &Value| {
        let paragraph = |paragraph: &Value| {
            let sentences: String = list(&paragraph[1]).iter().map(text).collect();
            format!("{}: {sentences}", text(&paragraph[0]))
        };
        let evidence = list(&item["context"]).iter().map(paragraph).collect();
        Item { question: text(&item["question"]), answers: vec![text(&item["answer"])], evidence, gold: 0 }
    };
    Ok(list(&root).iter().map(item).collect())
}

/// Most texts of one item: beside a SQuAD paragraph its neighbours in the article.
const MAX_TEXTS: usize = 10;

/// Answerable questions of training files (JSON lines with `question`, `answers`, `context`). Questions with one
/// paragraph are given paragraphs of the same title too.
pub fn train(files: &[&str]) -> Items {
    let mut items = Vec::new();
    for file in files {
        let lines = fs::read_to_string(file)?;
        let records = lines.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
        let mut by_title: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for record in &records {
            if let [one] = list(&record["context"]) {
                let known = by_title.entry(text(&one["title"])).or_default();
                let paragraph = text(&one["text"]);
                if !known.contains(&paragraph) {
                    known.push(paragraph);
                }
            }
        }
        let places: HashMap<&str, (&str, usize)> = by_title
            .iter()
            .flat_map(|(title, texts)| texts.iter().enumerate().map(|(at, t)| (t.as_str(), (title.as_str(), at))))
            .collect();
        for record in &records {
            let answers: Vec<String> = list(&record["answers"]).iter().map(text).collect();
            if answers.is_empty() || answers.iter().all(|answer| matches!(answer.as_str(), "yes" | "no")) {
                continue;
            }
            let context = &record["context"];
            let (evidence, gold) = match (context, list(context)) {
                (Value::String(whole), _) => (vec![whole.clone()], 0),
                (_, [one]) => {
                    let (title, at) = places[one["text"].as_str().unwrap_or_default()];
                    let all = &by_title[title];
                    let titled = !title.is_empty();
                    let from = if titled {
                        at.saturating_sub(MAX_TEXTS / 2).min(all.len().saturating_sub(MAX_TEXTS))
                    } else {
                        at
                    };
                    let to = if titled { all.len().min(from + MAX_TEXTS) } else { at + 1 };
                    (all[from..to].to_vec(), at - from)
                }
                (_, many) => {
                    (many.iter().map(|one| format!("{}: {}", text(&one["title"]), text(&one["text"]))).collect(), 0)
                }
            };
            items.push(Item { question: text(&record["question"]), answers, evidence, gold });
        }
    }
    Ok(items)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

//! Data sets of questions, each read in the form in which it is published.

pub(super) mod answers;
pub(super) mod books;
pub(super) mod detective;
pub(super) mod follow_ups;
pub(super) mod locomo;
pub(super) mod longbench;
pub(super) mod longmemeval;
pub(super) mod narrative;
pub(super) mod wiki;

mod csv;
mod xquad;

use std::collections::BTreeMap;

use serde::Deserialize;

use super::case::Question;

/// One text or several; a number is read as its digits.
#[derive(Deserialize)]
#[serde(untagged)]
enum Texts {
    One(String),
    Several(Vec<String>),
    Number(i64),
}

impl Texts {
    fn texts(&self) -> Vec<String> {
        match self {
            Texts::One(text) => vec![text.clone()],
            Texts::Several(texts) => texts.clone(),
            Texts::Number(number) => vec![number.to_string()],
        }
    }
}

/// What a question lacks: a field, and what is wrong with it.
type Fault = (&'static str, String);

/// Turns options by letter into a list, and checks that the gold letter is one of them.
fn with_letters(
    mut question: Question,
    options: BTreeMap<String, String>,
    gold: &str,
    fields: [&'static str; 2],
) -> Result<Question, Fault> {
    let letters: Vec<String> = ('A'..='Z').take(options.len()).map(String::from).collect();
    if !options.keys().eq(letters.iter()) {
        let named = options.keys().cloned().collect::<Vec<_>>().join(", ");
        return Err((fields[0], format!("the options are {named} instead of A, B, ...")));
    }
    let gold = gold.trim().to_owned();
    if !letters.contains(&gold) {
        return Err((fields[1], format!("`{gold}` is none of the options")));
    }
    question.golds = vec![gold];
    question.options = options.into_values().collect();
    Ok(question)
}

/// Checks that there is something to ask and something to compare with.
fn checked(question: Question, fields: [&'static str; 2]) -> Result<Question, Fault> {
    if question.text.trim().is_empty() {
        return Err((fields[0], "it is empty".into()));
    }
    if question.golds.iter().all(|gold| gold.trim().is_empty()) {
        return Err((fields[1], "there is no answer in it".into()));
    }
    Ok(question)
}

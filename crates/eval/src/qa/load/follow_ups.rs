//! The suite `follow-ups`: questions that refer to the question before them, such as "When was it founded?".
//!
//! Made of XQuAD's English questions. Each row of `suites/follow-ups.json`, chosen by hand, has the ids of two
//! questions about one paragraph, words of the second, and a pronoun. With the words replaced by the pronoun the second
//! question is a follow-up of the first, whose gold answer comes between them. All articles are one corpus, so that a
//! search without the history rarely finds the paragraph. Each follow-up is asked in three ways ([`WAYS`]).

use std::collections::BTreeMap;
use std::path::Path;

use super::xquad::text_of;
use crate::data::files;
use crate::data::squad::{self, Qa};
use crate::qa::case::{Case, Cases, Evidence, Question, document};
use crate::{Error, Result};

/// The groups of questions: the follow-up with the question and the answer before it, the follow-up alone (a lower
/// bound), and the question as published (an upper bound).
pub(in crate::qa) const WAYS: [&str; 3] = ["with history", "without history", "in full"];

/// The ids of the first question and of the second, words of the second, and what they are replaced by.
type Row = (String, String, String, String);

const ROWS: &str = include_str!("../../../suites/follow-ups.json");

/// One case with all articles.
pub(crate) fn load(path: &Path) -> Result<Cases> {
    let wrong =
        |error: serde_json::Error| Error::NotTheData { path: "follow-ups.json".into(), problem: error.to_string() };
    let rows: Vec<Row> = serde_json::from_str(ROWS).map_err(wrong)?;
    let file = files::find(path, &["xquad.en"])?;
    let articles = squad::read(&file)?;
    let (mut sources, mut places) = (Vec::new(), BTreeMap::new());
    for (source, article) in articles.iter().enumerate() {
        let (text, spans) = text_of(article, None);
        sources.push(document(&article.title, None, text));
        for (number, (paragraph, bytes)) in article.paragraphs.iter().zip(spans.into_iter().flatten()).enumerate() {
            let evidence = Evidence { id: number.to_string(), source, bytes };
            places.extend(paragraph.qas.iter().map(|qa| (qa.id.as_str(), (qa, evidence.clone()))));
        }
    }
    let asked = |(first, second, words, pronoun): &Row| {
        let (before, _) = places.get(first.as_str())?;
        let (qa, evidence) = places.get(second.as_str())?;
        let is_once = qa.question.matches(words.as_str()).count() == 1;
        is_once.then(|| three_ways(before, qa, &qa.question.replace(words.as_str(), pronoun), evidence))
    };
    let asked: Vec<[Question; 3]> = rows.iter().filter_map(asked).collect();
    let mut cases = Cases::default();
    if asked.len() < rows.len() {
        let left_out = rows.len() - asked.len();
        cases.notes.push(format!("{left_out} of {} follow-ups are left out: their questions are missing", rows.len()));
    }
    let questions = asked.into_iter().flatten().collect();
    cases.cases.push(Case { id: "xquad".into(), sources, questions });
    cases.files.push(file);
    Ok(cases)
}

/// A follow-up in the order of [`WAYS`].
fn three_ways(before: &Qa, qa: &Qa, follow_up: &str, evidence: &Evidence) -> [Question; 3] {
    let answer = before.golds().into_iter().next().unwrap_or_default();
    let history = vec![(before.question.clone(), answer)];
    let [with, without, full] = WAYS;
    let asked = |way: &str, text: &str, history: Vec<(String, String)>| Question {
        id: format!("{} {way}", qa.id),
        text: text.to_owned(),
        golds: qa.golds(),
        groups: vec![way.to_owned()],
        history,
        evidence: vec![evidence.clone()],
        ..Question::default()
    };
    [asked(with, follow_up, history), asked(without, follow_up, Vec::new()), asked(full, &qa.question, Vec::new())]
}

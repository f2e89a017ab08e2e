//! LongMemEval (Wu et al. 2025): for each question a haystack of dated chat sessions, in its own form; and a flattened
//! form that copies of it have, in which turns carry the dates.
//!
//! Sessions are put in the order of their dates. Evidence is the turns marked `has_answer`.

use std::path::Path;

use serde::Deserialize;
use sources::{Kind, Section, Source, Turn};

use super::{Texts, checked};
use crate::Result;
use crate::data::files;
use crate::data::records::{Record, Records};
use crate::qa::case::{Case, Cases, Evidence, Question, Text};

#[derive(Deserialize)]
struct Item {
    question_id: String,
    question_type: String,
    question: String,
    answer: Texts,
    question_date: Option<String>,
    haystack_dates: Vec<String>,
    haystack_sessions: Vec<Vec<Said>>,
}

#[derive(Clone, Deserialize)]
struct Said {
    role: String,
    content: String,
    #[serde(default)]
    has_answer: bool,
    #[serde(default)]
    date: String,
}

#[derive(Deserialize)]
struct Flattened {
    data: Vec<Sample>,
}

#[derive(Deserialize)]
struct Sample {
    id: String,
    question_type: String,
    conversation: Vec<Said>,
    questions: Vec<Asked>,
}

#[derive(Deserialize)]
struct Asked {
    id: String,
    question: String,
    answer: Texts,
}

/// One case for each question, or for each conversation of the flattened form.
pub(crate) fn load(path: &Path) -> Result<Cases> {
    let file = files::find(path, &["longmemeval", "native", "oracle"])?;
    let is_flattened =
        Records::<serde_json::Value>::read(&file)?.iter().all(|record| record.value.get("data").is_some());
    let mut cases = if is_flattened { flattened(&file) } else { native(&file) }?;
    cases.files.push(file);
    Ok(cases)
}

fn native(file: &Path) -> Result<Cases> {
    let items = Records::<Item>::read(file)?;
    let mut cases = Cases::default();
    for record in items.iter() {
        let item = &record.value;
        if item.haystack_dates.len() != item.haystack_sessions.len() {
            let problem = format!("{} dates for {} sessions", item.haystack_dates.len(), item.haystack_sessions.len());
            return Err(items.fault(record, "haystack_dates", problem));
        }
        let sessions: Vec<_> =
            item.haystack_dates.iter().cloned().zip(item.haystack_sessions.iter().cloned()).collect();
        let (source, evidence) = laid_out(&item.question_id, sessions);
        let question = Question {
            id: item.question_id.clone(),
            text: item.question.clone(),
            golds: item.answer.texts(),
            groups: vec![item.question_type.clone()],
            date: item.question_date.clone(),
            evidence,
            ..Question::default()
        };
        let question = checked(question, ["question", "answer"]);
        let questions = vec![question.map_err(|(field, problem)| items.fault(record, field, problem))?];
        cases.cases.push(case(&items, record, &item.question_id, source, questions)?);
    }
    Ok(cases)
}

fn flattened(file: &Path) -> Result<Cases> {
    let whole = Records::<Flattened>::read(file)?;
    let mut cases = Cases { notes: vec!["the flattened form has no dates of questions".into()], ..Cases::default() };
    for record in whole.iter() {
        for sample in &record.value.data {
            let mut sessions: Vec<(String, Vec<Said>)> = Vec::new();
            for said in &sample.conversation {
                match sessions.last_mut() {
                    Some((date, session)) if *date == said.date => session.push(said.clone()),
                    _ => sessions.push((said.date.clone(), vec![said.clone()])),
                }
            }
            let (source, evidence) = laid_out(&sample.id, sessions);
            let question = |asked: &Asked| Question {
                id: asked.id.clone(),
                text: asked.question.clone(),
                golds: asked.answer.texts(),
                groups: vec![sample.question_type.clone()],
                evidence: evidence.clone(),
                ..Question::default()
            };
            let questions = sample.questions.iter().map(|asked| checked(question(asked), ["question", "answer"]));
            let questions: Vec<Question> = questions
                .collect::<std::result::Result<_, _>>()
                .map_err(|(field, problem)| whole.fault(record, &format!("data[{}].{field}", sample.id), problem))?;
            cases.cases.push(case(&whole, record, &sample.id, source, questions)?);
        }
    }
    Ok(cases)
}

fn case<T>(records: &Records<T>, record: &Record<T>, id: &str, source: Source, questions: Vec<Question>) -> Result<Case>
where
    T: serde::de::DeserializeOwned,
{
    if source.sections.iter().all(|section| section.turns.is_empty()) {
        return Err(records.fault(record, "", format!("nobody says anything in the sessions of `{id}`")));
    }
    Ok(Case { id: id.to_owned(), sources: vec![source], questions })
}

/// The sessions as one conversation in the order of their dates, and the turns with the answer.
fn laid_out(id: &str, mut sessions: Vec<(String, Vec<Said>)>) -> (Source, Vec<Evidence>) {
    // `2023/05/30 (Tue) 21:48` sorts as it stands.
    sessions.sort_by(|a, b| a.0.cmp(&b.0));
    let mut text = Text::default();
    let (mut sections, mut evidence) = (Vec::new(), Vec::new());
    for (number, (date, session)) in sessions.into_iter().enumerate().filter(|(_, (_, session))| !session.is_empty()) {
        let between = if text.text.is_empty() { "" } else { "\n\n" };
        text.push(between);
        let start = text.text.len();
        text.push(&format!("=== SESSION {number} - Dialogue Time(available to answer questions): {date} ===\n"));
        let mut turns = Vec::new();
        for (turn, said) in (1..).zip(&session) {
            text.push("\n");
            let name = format!("S{number}:{turn}");
            let span = text.push(format!("{} ({name}): {}", said.role, said.content.trim_end()).as_str());
            if said.has_answer {
                evidence.push(Evidence { id: name.clone(), source: 0, bytes: span.clone() });
            }
            turns.push(Turn { span, id: name, speaker: said.role.clone(), time: None });
        }
        let span = start..text.text.len();
        sections.push(Section { span, title: Some(format!("session_{number}")), time: Some(date), turns });
    }
    (Source { path: id.to_owned(), kind: Kind::Conversation, title: None, text: text.text, sections }, evidence)
}

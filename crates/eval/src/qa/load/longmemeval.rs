//! LongMemEval (Wu et al. 2025): for each question a haystack of dated chat sessions, in its own form; and a flattened
//! form that copies of it have, in which turns carry the dates.
//!
//! Sessions are put in the order of their dates. Evidence is the turns marked `has_answer`, and by session what
//! `answer_session_ids` names. Where a question cannot be answered (its id ends with `_abs`) there is nothing to be found,
//! as in the official evaluation of retrieval.

use std::path::Path;

use serde::Deserialize;
use sources::{Kind, Section, Source, Turn};

use super::{Texts, checked};
use crate::Result;
use crate::data::files;
use crate::data::records::{Record, Records};
use crate::qa::case::{Case, Cases, Evidence, Question, Text, sessions_with};

#[derive(Deserialize)]
struct Item {
    question_id: String,
    question_type: String,
    question: String,
    answer: Texts,
    question_date: Option<String>,
    haystack_dates: Vec<String>,
    haystack_sessions: Vec<Vec<Utterance>>,
    #[serde(default)]
    haystack_session_ids: Vec<String>,
    #[serde(default)]
    answer_session_ids: Vec<String>,
}

#[derive(Clone, Deserialize)]
struct Utterance {
    role: String,
    content: String,
    #[serde(default)]
    has_answer: bool,
    #[serde(default)]
    date: String,
}

/// A session of chat.
struct Sitting {
    id: Option<String>,
    date: String,
    session: Vec<Utterance>,
}

#[derive(Deserialize)]
struct Flattened {
    data: Vec<Sample>,
}

#[derive(Deserialize)]
struct Sample {
    id: String,
    question_type: String,
    conversation: Vec<Utterance>,
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
        if let Some(unknown) = item.answer_session_ids.iter().find(|id| !item.haystack_session_ids.contains(id)) {
            let problem = format!("`{unknown}` is none of haystack_session_ids");
            return Err(items.fault(record, "answer_session_ids", problem));
        }
        let sitting = |(number, (date, session)): (usize, (&String, &Vec<Utterance>))| Sitting {
            id: item.haystack_session_ids.get(number).cloned(),
            date: date.clone(),
            session: session.clone(),
        };
        let sittings = item.haystack_dates.iter().zip(&item.haystack_sessions).enumerate().map(sitting).collect();
        let (source, evidence, ids) = laid_out(&item.question_id, sittings);
        let named = |(section, id): (&Section, Option<String>)| {
            let id = id.filter(|id| item.answer_session_ids.contains(id))?;
            Some(Evidence { id, source: 0, bytes: section.span.clone() })
        };
        let sessions = match item.answer_session_ids.is_empty() {
            true => sessions_with(&evidence, 0, &source),
            false => source.sections.iter().zip(ids).filter_map(named).collect(),
        };
        let question = Question {
            text: item.question.clone(),
            golds: item.answer.texts(),
            date: item.question_date.clone(),
            ..question(&item.question_id, &item.question_type, evidence, sessions)
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
            let mut sittings: Vec<Sitting> = Vec::new();
            for said in &sample.conversation {
                match sittings.last_mut() {
                    Some(Sitting { date, session, .. }) if *date == said.date => session.push(said.clone()),
                    _ => sittings.push(Sitting { id: None, date: said.date.clone(), session: vec![said.clone()] }),
                }
            }
            let (source, evidence, _) = laid_out(&sample.id, sittings);
            let sessions = sessions_with(&evidence, 0, &source);
            let question = |asked: &Asked| Question {
                text: asked.question.clone(),
                golds: asked.answer.texts(),
                ..question(&asked.id, &sample.question_type, evidence.clone(), sessions.clone())
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

/// A question of its kind, and of those without an answer if it is one.
fn question(id: &str, kind: &str, evidence: Vec<Evidence>, sessions: Vec<Evidence>) -> Question {
    let groups = vec![kind.to_owned()];
    let question = Question { id: id.to_owned(), groups, ..Question::default() };
    match question.is_unanswerable() {
        true => Question { groups: [question.groups, vec!["abstention".into()]].concat(), ..question },
        false => Question { evidence, sessions, ..question },
    }
}

fn case<T>(records: &Records<T>, record: &Record<T>, id: &str, source: Source, questions: Vec<Question>) -> Result<Case>
where
    T: serde::de::DeserializeOwned,
{
    if source.sections.iter().all(|section| section.turns.is_empty()) {
        return Err(records.fault(record, "", format!("there is no text in the sessions of `{id}`")));
    }
    Ok(Case { id: id.to_owned(), sources: vec![source], questions })
}

/// The sessions as one conversation in the order of their dates, the turns with the answer, and the ids of the sessions.
fn laid_out(id: &str, mut sittings: Vec<Sitting>) -> (Source, Vec<Evidence>, Vec<Option<String>>) {
    // `2023/05/30 (Tue) 21:48` sorts as text.
    sittings.sort_by(|a, b| a.date.cmp(&b.date));
    let mut text = Text::default();
    let (mut sections, mut evidence, mut ids) = (Vec::new(), Vec::new(), Vec::new());
    for (number, sitting) in sittings.into_iter().enumerate().filter(|(_, sitting)| !sitting.session.is_empty()) {
        let Sitting { id, date, session } = sitting;
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
        // Not by its id: those of sessions with an answer say so.
        sections.push(Section { span, title: Some(format!("session_{number}")), time: Some(date), turns });
        ids.push(id);
    }
    let source = Source {
        path: id.to_owned(),
        kind: Kind::Conversation,
        title: None,
        text: text.text,
        encoding: None,
        sections,
    };
    (source, evidence, ids)
}

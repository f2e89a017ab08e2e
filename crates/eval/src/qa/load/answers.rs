//! The suite `answers`: short questions of several data sets and of our own, some of which the documents do not answer.
//!
//! Read from a folder with `xquad`, `hotpotqa`, `narrativeqa` and `locomo`, each as published. The first group of a
//! question is its part:
//!
//! | part | questions | corpus |
//! |---|---:|---|
//! | `samples` | 5, our own | the story in `samples/` |
//! | `xquad` | 200 of XQuAD, English | the article |
//! | `paragraph` | the same 200 | the paragraph that has the answer |
//! | `hotpotqa` | 100 of HotpotQA's distractor setting | its ten paragraphs |
//! | `narrativeqa` | 100 of NarrativeQA | the summary of the story |
//! | `locomo` | 100 of LoCoMo, categories 1 to 4 | the conversation |
//! | `unanswerable` | 50 of XQuAD | the article without the paragraph of the answer |
//! | | 50 of LoCoMo, category 5 | the conversation |
//!
//! Questions are drawn with a fixed seed, so that every run asks the same ones. Ids of unanswerable questions end with
//! `_abs`, and they have no gold answers.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;

use super::xquad::text_of;
use super::{locomo, narrative, wiki};
use crate::data::files;
use crate::data::locomo::ANSWERABLE;
use crate::data::squad::{self, Article, Paragraph};
use crate::qa::case::{Case, Cases, Question, document};
use crate::score::{contains_answer, squad_words};
use crate::{Error, Random, Result};

/// The seed of all draws.
const SEED: u64 = 20_260_101;
const XQUAD: usize = 200;
const PER_SET: usize = 100;
const UNANSWERABLE_PER_SET: usize = 50;

const STORY: &str = include_str!("../../../../../samples/the-gift-of-the-magi.txt");
const STORY_QUESTIONS: &str = include_str!("../../../suites/samples.json");

/// One part after the other.
pub(crate) fn load(folder: &Path) -> Result<Cases> {
    let mut cases = Cases::default();
    cases.cases.push(samples()?);
    xquad(&files::find(&folder.join("xquad"), &["xquad.en"])?, &mut cases)?;
    let hotpotqa = wiki::load(&files::find(&folder.join("hotpotqa"), &["distractor"])?)?;
    cases.add("hotpotqa", drawn(hotpotqa, PER_SET));
    let narrativeqa = folder.join("narrativeqa");
    let questions = if narrativeqa.is_dir() { narrativeqa.join("qa_valid.jsonl") } else { narrativeqa };
    cases.add("narrativeqa", drawn(narrative::load(&questions)?, PER_SET));
    conversations(locomo::load(&folder.join("locomo"))?, &mut cases);
    Ok(cases)
}

impl Cases {
    /// Adds the cases of another data set as a part.
    fn add(&mut self, part: &str, mut other: Cases) {
        for case in &mut other.cases {
            case.id = format!("{part}:{}", case.id);
            case.questions.iter_mut().for_each(|question| question.groups = vec![part.to_owned()]);
        }
        self.cases.extend(other.cases);
        self.files.extend(other.files);
        self.notes.extend(other.notes.into_iter().map(|note| format!("{part}: {note}")));
    }
}

#[derive(Deserialize)]
struct Own {
    id: String,
    question: String,
    answers: Vec<String>,
}

fn samples() -> Result<Case> {
    let wrong =
        |error: serde_json::Error| Error::NotTheData { path: "samples.json".into(), problem: error.to_string() };
    let questions: Vec<Own> = serde_json::from_str(STORY_QUESTIONS).map_err(wrong)?;
    let question = |Own { id, question, answers }| Question {
        id,
        text: question,
        golds: answers,
        groups: vec!["samples".into()],
        ..Question::default()
    };
    let source = document("the-gift-of-the-magi.txt", None, STORY.to_owned());
    let questions = questions.into_iter().map(question).collect();
    Ok(Case { id: "samples".into(), sources: vec![source], questions })
}

fn drawn(mut cases: Cases, most: usize) -> Cases {
    cases.sample(most, SEED);
    cases
}

/// A question's article, paragraph and place in it.
type At = (usize, usize, usize);

/// Questions asked of their articles, and others asked of articles without the paragraph of the answer.
fn xquad(file: &Path, cases: &mut Cases) -> Result<()> {
    let articles = squad::read(file)?;
    let mut order = Vec::new();
    for (article, Article { paragraphs, .. }) in articles.iter().enumerate() {
        for (paragraph, Paragraph { qas, .. }) in paragraphs.iter().enumerate() {
            order.extend((0..qas.len()).map(|qa| (article, paragraph, qa)));
        }
    }
    Random::new(SEED).shuffle(&mut order);
    let asked: BTreeSet<At> = order.iter().copied().take(XQUAD).collect();
    // The answer must not be in another paragraph of the article.
    let is_lost = |at: &At| {
        let (article, paragraph, qa) = *at;
        let qa = &articles[article].paragraphs[paragraph].qas[qa];
        let others = articles[article].paragraphs.iter().enumerate().filter(|(number, _)| *number != paragraph);
        let others: Vec<Vec<String>> = others.map(|(_, other)| squad_words(&other.context)).collect();
        !others.is_empty() && !qa.golds().iter().any(|gold| others.iter().any(|other| contains_answer(other, gold)))
    };
    let rest = order.into_iter().skip(XQUAD).filter(is_lost);
    let unanswerable: BTreeSet<At> = rest.take(UNANSWERABLE_PER_SET).collect();
    for (number, article) in articles.iter().enumerate() {
        let of_article: Vec<At> = asked.iter().copied().filter(|at| at.0 == number).collect();
        cases.cases.extend(whole_article(article, &of_article));
        cases.cases.extend(paragraphs(article, &of_article));
        for paragraph in 0..article.paragraphs.len() {
            let of_paragraph = unanswerable.iter().copied().filter(|at| (at.0, at.1) == (number, paragraph));
            cases.cases.extend(without_paragraph(article, paragraph, &of_paragraph.collect::<Vec<_>>()));
        }
    }
    cases.files.push(file.to_owned());
    Ok(())
}

fn whole_article(article: &Article, questions: &[At]) -> Option<Case> {
    let (text, spans) = text_of(article, None);
    let question = |(_, paragraph, qa): &At| {
        let bytes = spans[*paragraph].clone()?;
        Some(article.paragraphs[*paragraph].qas[*qa].asked("xquad", *paragraph, bytes))
    };
    let questions: Vec<Question> = questions.iter().filter_map(question).collect();
    let id = format!("xquad:{}", article.title);
    (!questions.is_empty()).then(|| Case { sources: vec![document(&article.title, None, text)], id, questions })
}

/// Each paragraph that questions were asked about, as a corpus of its own.
fn paragraphs(article: &Article, questions: &[At]) -> Vec<Case> {
    let case = |(number, Paragraph { context, qas }): (usize, &Paragraph)| {
        let of_it = questions.iter().filter(|at| at.1 == number);
        let questions: Vec<Question> = of_it.map(|at| qas[at.2].asked("paragraph", number, 0..context.len())).collect();
        let id = format!("paragraph:{} {number}", article.title);
        let sources = || vec![document(&article.title, None, context.clone())];
        (!questions.is_empty()).then(|| Case { id, sources: sources(), questions })
    };
    article.paragraphs.iter().enumerate().filter_map(case).collect()
}

fn without_paragraph(article: &Article, paragraph: usize, questions: &[At]) -> Option<Case> {
    let question = |(_, paragraph, qa): &At| {
        let qa = &article.paragraphs[*paragraph].qas[*qa];
        unanswerable(&qa.id, &qa.question, "xquad without the paragraph")
    };
    let questions: Vec<Question> = questions.iter().map(question).collect();
    let id = format!("xquad:{} without paragraph {paragraph}", article.title);
    let text = text_of(article, Some(paragraph)).0;
    (!questions.is_empty()).then(|| Case { sources: vec![document(&article.title, None, text)], id, questions })
}

fn unanswerable(id: &str, text: &str, kind: &str) -> Question {
    let groups = vec!["unanswerable".into(), kind.to_owned()];
    Question { id: format!("{id}_abs"), text: text.to_owned(), groups, ..Question::default() }
}

/// Answerable and adversarial questions of LoCoMo, each conversation one case.
fn conversations(all: Cases, cases: &mut Cases) {
    let is_answerable = |question: &Question| question.groups.iter().any(|group| group == ANSWERABLE);
    let of = |answerable: bool, most: usize| {
        let mut part = all.clone();
        part.cases.iter_mut().for_each(|case| case.questions.retain(|q| is_answerable(q) == answerable));
        part.cases.retain(|case| !case.questions.is_empty());
        drawn(part, most)
    };
    let (answerable, adversarial) = (of(true, PER_SET), of(false, UNANSWERABLE_PER_SET));
    cases.add("locomo", answerable);
    for case in adversarial.cases {
        let id = format!("locomo:{}", case.id);
        let questions = case.questions.iter().map(|q| unanswerable(&q.id, &q.text, "locomo category 5"));
        match cases.cases.iter_mut().find(|known| known.id == id) {
            Some(known) => known.questions.extend(questions),
            None => cases.cases.push(Case { id, questions: questions.collect(), sources: case.sources }),
        }
    }
}

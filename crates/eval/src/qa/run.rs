//! Asking: each case is remembered, each question asked by each method, and everything written down at once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use calls::{CallError, Caller, Lane, Role, WorkflowId};
use futures_util::StreamExt;
use futures_util::stream;
use memory::mindgraph::{self, Focus};
use memory::{Event, MemoryError, Method, Session, Settings, Trace};
use store::{Corpora, Corpus, PassageId, Writer};

use super::case::{Case, Cases, Question};
use super::folder::QaFolder;
use super::item::{Item, Line, Prepared};
use super::plan::Plan;
use super::tape::{Scope, Tape};
use super::taped::{Machine, Taped, rounded};
use super::watch::Watch;
use crate::Result;
use crate::score::{Scorer, compaction};

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// A step of the preparation of one case.
    Preparing(memory::Progress),
    /// Questions that are answered, of all that this model is asked.
    Asked { done: usize, of: usize },
}

/// One model's part of a run.
struct Asking<'a> {
    plan: &'a Plan,
    /// The model as it was typed.
    model: &'a str,
    machine: Option<Machine<'a>>,
    tape: &'a Tape,
    scorers: Vec<Scorer>,
    corpora: Corpora,
}

/// Asks one model everything that has no answer yet. Without a machine, all that is needed must be on the tape.
///
/// # Errors
/// Those of data, store and folder; failures of the machine as a whole. A question that one method cannot answer is a
/// result.
pub async fn ask(
    folder: &QaFolder,
    plan: &Plan,
    model: &str,
    machine: Option<Machine<'_>>,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Cases> {
    let asking = Asking {
        plan,
        model,
        machine,
        tape: folder.tape(),
        scorers: plan.scorers()?,
        corpora: Corpora::new(folder.work()),
    };
    let nobody = Scope { model: model.to_owned(), method: String::new(), case: String::new(), question: None };
    let counter = Taped::new(folder.tape(), machine, nobody)?;
    let cases = plan.cases(&|text| counter.count_tokens(Role::Responder, text))?;
    let methods = plan.methods()?;
    let answered = folder.answered()?;
    let is_open = |case: &Case, method: &Method, question: &Question| {
        let column = (model.to_owned(), method.to_string());
        !answered.contains(&(column, (case.id.clone(), question.id.clone())))
    };
    let of = cases.questions() * methods.len();
    let mut done = 0;
    for case in &cases.cases {
        let pairs = methods.iter().flat_map(|method| case.questions.iter().map(move |question| (*method, question)));
        let open: Vec<(Method, &Question)> =
            pairs.filter(|(method, question)| is_open(case, method, question)).collect();
        done += case.questions.len() * methods.len() - open.len();
        let needed: Vec<Method> =
            methods.iter().copied().filter(|method| open.iter().any(|(of, _)| of == method)).collect();
        // Where questions are asked one at a time, each method ends before the next begins: what it takes is its own.
        let together = if plan.width <= 1 { 1 } else { needed.len().max(1) };
        for needed in needed.chunks(together) {
            let mut unprepared = Unprepared::new();
            for method in needed {
                if let Some(reason) = asking.prepare(case, *method, folder, progress).await? {
                    unprepared.push((*method, reason));
                }
            }
            let open = open.iter().filter(|(method, _)| needed.contains(method));
            let mut answers = stream::iter(
                open.map(|(method, question)| asking.answer(case, *method, question, folder, &unprepared)),
            )
            .buffer_unordered(plan.width.max(1));
            while let Some(item) = answers.next().await {
                folder.put(&Line::Answered(Box::new(item?)))?;
                done += 1;
                progress(Progress::Asked { done, of });
            }
        }
    }
    Ok(cases)
}

/// Methods that could not prepare a case, and why.
type Unprepared = Vec<(Method, String)>;

impl Asking<'_> {
    /// One corpus for a case and model: what methods share is made once.
    fn corpus_name(&self, case: &Case) -> String {
        let page_tokens = self.plan.page_tokens.map_or_else(String::new, |tokens| tokens.to_string());
        format!("case-{}", &store::Digest::of(&[self.model, &case.id, &page_tokens]).to_string()[..16])
    }

    /// What governs a method; MindGraph reads a text once for all questions about it.
    fn settings(&self, method: Method, case: &Case) -> Result<Settings> {
        let settings = self.plan.settings(method)?;
        let questions = case.questions.iter().map(|question| question.asked(method)).collect();
        let mindgraph = mindgraph::Options { focus: Focus::Set, questions, ..settings.mindgraph };
        Ok(Settings { mindgraph, ..settings })
    }

    fn scope(&self, method: Method, case: &Case, question: Option<&Question>) -> Scope {
        Scope {
            model: self.model.to_owned(),
            method: method.to_string(),
            case: case.id.clone(),
            question: question.map(|question| question.id.clone()),
        }
    }

    /// Puts a case's texts into its corpus and does what a method needs, as far as that is not done; or why that cannot be
    /// done.
    async fn prepare(
        &self,
        case: &Case,
        method: Method,
        folder: &QaFolder,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Option<String>> {
        let mut writer = self.writer(case)?;
        let scope = self.scope(method, case, None);
        let taped = Taped::new(self.tape, self.machine, scope.clone())?;
        let trace = Trace::off();
        let session = session(&taped, self.settings(method, case)?, &trace, Lane::Bulk, 0);
        let mut watch = Watch::begin(folder, scope.clone(), &trace);
        let (mut prepared, mut noted) = (Ok(()), Ok(()));
        for source in &case.sources {
            prepared = prepared.and_then(|()| memory::add(source, &mut writer, &session).map(|_| ()));
        }
        if prepared.is_ok() {
            let mut report = |step| {
                noted = std::mem::replace(&mut noted, Ok(())).and_then(|()| watch.tick());
                progress(Progress::Preparing(step));
            };
            prepared = memory::prepare(&mut writer, &session, &mut report).await;
        }
        noted.and_then(|()| watch.note())?;
        let text_tokens = case.sources.iter().map(|source| taped.count_tokens(Role::Responder, &source.text)).sum();
        let usage = self.tape.usage(&scope);
        let Scope { model, method, case, .. } = scope;
        folder.put(&Line::Prepared(Prepared { model, method, case, text_tokens, usage }))?;
        prepared.map_or_else(|error| excusable(error).map(Some), |()| Ok(None))
    }

    fn writer(&self, case: &Case) -> Result<Writer> {
        let name = self.corpus_name(case);
        match self.corpora.open_writer(&name) {
            Err(store::Error::UnknownCorpus { .. }) => Ok(self.corpora.create(&name)?),
            opened => Ok(opened?),
        }
    }

    /// Asks a question, and whoever has to judge the answer.
    async fn answer(
        &self,
        case: &Case,
        method: Method,
        question: &Question,
        folder: &QaFolder,
        unprepared: &Unprepared,
    ) -> Result<Item> {
        let corpus = self.corpora.open(&self.corpus_name(case))?;
        let scope = self.scope(method, case, Some(question));
        let taped = Taped::new(self.tape, self.machine, scope.clone())?;
        let trace = Trace::kept();
        let mut watch = (self.plan.width <= 1).then(|| Watch::begin(folder, scope, &trace));
        let mut settings = self.settings(method, case)?;
        settings.comorag.choices.clone_from(&question.options);
        let session = session(&taped, settings, &trace, Lane::Workflow, workflow(method, &question.id));
        let answered = match unprepared.iter().find(|(of, _)| *of == method) {
            Some((_, reason)) => Err(format!("it could not prepare the text: {reason}")),
            None => match memory::ask(&question.asked(method), &corpus, &session).await {
                Ok(answer) => Ok(answer),
                Err(error) => Err(excusable(error)?),
            },
        };
        if let Some(watch) = &mut watch {
            watch.note()?;
        }
        let (answer, citations, failed) = match answered {
            Ok(answer) => (answer.answer, answer.citations, None),
            Err(reason) => (String::new(), Vec::new(), Some(reason)),
        };
        let text_tokens = case.sources.iter().map(|source| taped.count_tokens(Role::Responder, &source.text)).sum();
        let first = taped.answer_prompt_tokens();
        let mut item = Item {
            model: self.model.to_owned(),
            method: method.to_string(),
            case: case.id.clone(),
            question: question.clone(),
            verdicts: if failed.is_none() { self.verdicts(question, &answer, &taped).await? } else { BTreeMap::new() },
            answer,
            citations,
            failed,
            scores: BTreeMap::new(),
            found: (!question.evidence.is_empty())
                .then(|| found(case, question, &corpus, &trace.events()))
                .transpose()?,
            fallbacks: trace.fallbacks(),
            usage: rounded(trace.usage()),
            compaction: first.and_then(|tokens| compaction(tokens, text_tokens)),
        };
        item.score(&self.scorers);
        Ok(item)
    }

    async fn verdicts(&self, question: &Question, answer: &str, taped: &Taped<'_>) -> Result<BTreeMap<String, String>> {
        let mut verdicts = BTreeMap::new();
        for scorer in self.scorers.iter().filter(|scorer| scorer.asks(question, answer)) {
            if let Some(judge) = scorer.judge() {
                let reply = taped.call(judge.call(question, answer)).await?;
                verdicts.insert(scorer.to_string(), reply.text);
            }
        }
        Ok(verdicts)
    }
}

fn session<'a>(taped: &'a Taped<'a>, settings: Settings, trace: &'a Trace, lane: Lane, workflow: u64) -> Session<'a> {
    Session { caller: taped, embedder: taped, settings, trace, workflow: WorkflowId(workflow), lane, on_text: None }
}

/// Calls of one question by one method belong together.
fn workflow(method: Method, question: &str) -> u64 {
    let digest = store::Digest::of(&[&method.to_string(), question]).0;
    u64::from_le_bytes([digest[0], digest[1], digest[2], digest[3], digest[4], digest[5], digest[6], digest[7]])
}

/// The words of a failure that is one question's own; any other ends the run.
fn excusable(error: MemoryError) -> Result<String> {
    use CallError::{Failed, OutOfForm, Shape, TooLong, TooLongToEmbed};
    match &error {
        MemoryError::Call(TooLong { .. } | Shape { .. } | Failed { .. } | OutOfForm { .. } | TooLongToEmbed { .. })
        | MemoryError::EmptyQuestion
        | MemoryError::EmptyCorpus { .. } => Ok(error.to_string()),
        _ => Err(error.into()),
    }
}

/// Where the passages that bear a question's evidence stand among those that were found, in the order in which searches
/// brought them.
fn found(case: &Case, question: &Question, corpus: &Corpus, events: &[Event]) -> Result<Vec<Option<usize>>> {
    let mut seen = BTreeSet::new();
    let hits = events.iter().filter_map(|event| match event {
        Event::Search { hits, .. } => Some(hits),
        _ => None,
    });
    let order: Vec<i64> = hits.flatten().map(|hit| hit.page).filter(|page| seen.insert(*page)).collect();
    let documents = corpus.documents()?;
    let mut ranks = vec![None; question.evidence.len()];
    for (rank, page) in (1..).zip(order) {
        // A method may search things that are no passages.
        let Ok(passage) = corpus.passage(PassageId(page)) else { continue };
        let path = documents.iter().find(|document| document.id == passage.document).map(|document| &document.path);
        let span = passage.span.bytes();
        for (evidence, place) in question.evidence.iter().zip(&mut ranks) {
            let is_there = case.sources.get(evidence.source).map(|source| &source.path) == path
                && span.start < evidence.bytes.end
                && evidence.bytes.start < span.end;
            if is_there && place.is_none() {
                *place = Some(rank);
            }
        }
    }
    Ok(ranks)
}

/// Replays a run from its tape, with no model, in a folder of its own; the items in it.
///
/// # Errors
/// As [`ask`].
pub async fn replay(run: &Path, plan: &Plan, progress: &mut (dyn FnMut(Progress) + Send)) -> Result<Vec<Item>> {
    let folder = tempfile::tempdir().map_err(crate::Error::Scratch)?;
    let replay = QaFolder::replaying(folder.path().to_owned(), Tape::read(run)?)?;
    for model in &plan.models {
        ask(&replay, plan, model, None, progress).await?;
    }
    Ok(replay.items()?.1)
}

/// The folder of a run's corpora.
pub(super) fn work(folder: &Path) -> PathBuf {
    folder.join("work")
}

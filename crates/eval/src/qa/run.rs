//! Runs a plan: each case is ingested, each question is asked by each method, and every result is written at once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use calls::{Agent, CallError, Caller, Priority, TenantId, WorkflowId};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use memory::{Answer, Event, MemoryError, Method, Session, Settings, Trace};
use store::{Corpora, Corpus, Writer};

use super::case::{Case, Cases, Question};
use super::cited::Cited;
use super::folder::QaFolder;
use super::item::{Column, Item, Line, Measured, Prepared};
use super::outcome::Grounding;
use super::plan::Plan;
use super::progress::{Progress, Reporter};
use super::retrieved::{brought, ranks, sessions};
use super::tape::{Scope, Tape};
use super::taped::{Backend, Taped, rounded};
use super::watch::Watch;
use crate::Result;
use crate::score::{Scorer, compaction};

/// One model's part of a run.
struct Asking<'a> {
    plan: &'a Plan,
    /// The model as typed.
    model: &'a str,
    machine: Option<Backend<'a>>,
    tape: &'a Tape,
    scorers: Vec<Scorer>,
    corpora: Corpora,
}

/// Asks one model all open questions. Without a backend, everything needed must be on the tape.
///
/// # Errors
/// Those of data, store and folder; failures of the backend as a whole. A question that one method cannot answer is a
/// result.
pub async fn ask(
    folder: &QaFolder,
    plan: &Plan,
    model: &str,
    machine: Option<Backend<'_>>,
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
    let no_case = Scope { model: model.to_owned(), method: String::new(), case: String::new(), question: None };
    let counter = Taped::new(folder.tape(), machine, no_case)?;
    let cases = plan.cases(&|text| counter.tokens().count_tokens(Agent::Responder, text))?;
    let methods = plan.methods()?;
    let answered = folder.answered()?;
    let of = cases.questions() * methods.len();
    let parts: Vec<Part> = cases.cases.iter().flat_map(|case| asking.parts(case, &methods, &answered)).collect();
    let mut done = of - parts.iter().map(|part| part.open.len()).sum::<usize>();
    let reporter = Reporter::new(progress);

    let width = plan.width.max(1);
    let mut preparations = parts.iter().enumerate().peekable();
    let mut unfinished: Vec<usize> = parts.iter().map(|part| part.open.len()).collect();
    let mut unprepared: Vec<Unprepared> = vec![Unprepared::new(); parts.len()];
    let mut questions: VecDeque<(usize, &'static dyn Method, &Question)> = VecDeque::new();
    let mut parts_open = 0;
    let mut work = FuturesUnordered::new();
    loop {
        while work.len() < width {
            if let Some((number, method, question)) = questions.pop_front() {
                let reason = unprepared[number].iter().find(|(of, _)| *of == method).map(|(_, reason)| reason.clone());
                let case = parts[number].case;
                work.push(asking.step(Step::Ask { number, case, method, question, reason }, folder, &reporter));
                continue;
            }
            // Prepared cases must not pile up.
            let Some((number, part)) = preparations.next_if(|_| parts_open < width) else { break };
            parts_open += 1;
            work.push(asking.step(Step::Prepare { number, part }, folder, &reporter));
        }
        match work.next().await.transpose()? {
            None => break,
            Some(Done::Prepared { number, reasons }) => {
                unprepared[number] = reasons;
                questions.extend(parts[number].open.iter().map(|(method, question)| (number, *method, *question)));
            }
            Some(Done::Answered { number, item }) => {
                folder.put(&Line::Answered(item))?;
                unfinished[number] -= 1;
                parts_open -= usize::from(unfinished[number] == 0);
                done += 1;
                reporter.asked(done, of);
            }
        }
    }
    drop(work);
    Ok(cases)
}

/// Questions about a case that are asked together, after all their methods have prepared it.
struct Part<'a> {
    case: &'a Case,
    methods: Vec<&'static dyn Method>,
    /// The open questions: at least one.
    open: Vec<(&'static dyn Method, &'a Question)>,
}

/// A step that runs concurrently with others.
enum Step<'a> {
    Prepare {
        number: usize,
        part: &'a Part<'a>,
    },
    /// `reason`: why the method could not prepare the case.
    Ask {
        number: usize,
        case: &'a Case,
        method: &'static dyn Method,
        question: &'a Question,
        reason: Option<String>,
    },
}

/// The outcome of a step.
enum Done {
    Prepared { number: usize, reasons: Unprepared },
    Answered { number: usize, item: Box<Item> },
}

/// Methods that could not prepare a case, with reasons.
type Unprepared = Vec<(&'static dyn Method, String)>;

impl Asking<'_> {
    /// The open work on a case. If questions are asked one at a time, each method ends before the next
    /// starts, so that its time and memory are its own.
    fn parts<'a>(
        &self,
        case: &'a Case,
        methods: &[&'static dyn Method],
        answered: &BTreeSet<(Column, (String, String))>,
    ) -> Vec<Part<'a>> {
        let is_open = |method: &'static dyn Method, question: &Question| {
            let column = (self.model.to_owned(), method.to_string());
            !answered.contains(&(column, (case.id.clone(), question.id.clone())))
        };
        let together = if self.plan.width <= 1 { 1 } else { methods.len().max(1) };
        let part = |methods: &[&'static dyn Method]| {
            let pairs =
                methods.iter().flat_map(|method| case.questions.iter().map(move |question| (*method, question)));
            let open: Vec<(&'static dyn Method, &Question)> =
                pairs.filter(|(method, question)| is_open(*method, question)).collect();
            let needed = |method: &&&'static dyn Method| open.iter().any(|(of, _)| of == *method);
            let methods = methods.iter().filter(needed).copied().collect();
            Part { case, methods, open }
        };
        methods.chunks(together).map(part).filter(|part| !part.open.is_empty()).collect()
    }

    async fn step(&self, step: Step<'_>, folder: &QaFolder, reporter: &Reporter<'_>) -> Result<Done> {
        match step {
            Step::Prepare { number, part } => {
                let mut reasons = Unprepared::new();
                for method in &part.methods {
                    let mut report = |step| reporter.preparing(number, step);
                    if let Some(reason) = self.prepare(part.case, *method, folder, &mut report).await? {
                        reasons.push((*method, reason));
                    }
                }
                reporter.prepared(number);
                Ok(Done::Prepared { number, reasons })
            }
            Step::Ask { number, case, method, question, reason } => {
                let item = self.answer(case, method, question, folder, reason).await?;
                Ok(Done::Answered { number, item: Box::new(item) })
            }
        }
    }

    /// One corpus per case, model and page size: preparation shared by methods is done once.
    fn corpus_name(&self, case: &Case, method: &'static dyn Method) -> String {
        let page_tokens = self.plan.page_tokens_of(method).map_or_else(String::new, |tokens| tokens.to_string());
        format!("case-{}", &store::Digest::of(&[self.model, &case.id, &page_tokens]).to_string()[..16])
    }

    /// The settings of a method, which may prepare a text once for all questions about it.
    fn settings(&self, method: &'static dyn Method, case: &Case) -> Result<Settings> {
        let mut settings = self.plan.settings(method)?;
        for question in &case.questions {
            method.expect_question(&question.asked(), &mut settings);
        }
        Ok(settings)
    }

    fn scope(&self, method: &'static dyn Method, case: &Case, question: Option<&Question>) -> Scope {
        Scope {
            model: self.model.to_owned(),
            method: method.to_string(),
            case: case.id.clone(),
            question: question.map(|question| question.id.clone()),
        }
    }

    /// Adds a case's texts to its corpus and prepares it for a method, as far as that is not done; returns the reason
    /// if that fails.
    async fn prepare(
        &self,
        case: &Case,
        method: &'static dyn Method,
        folder: &QaFolder,
        progress: &mut (dyn FnMut(memory::Progress) + Send),
    ) -> Result<Option<String>> {
        let mut writer = self.writer(case, method)?;
        let scope = self.scope(method, case, None);
        let taped = Taped::new(self.tape, self.machine, scope.clone())?.recording_tokens(self.plan.rollouts);
        let trace = Trace::off();
        let session = session(&taped, self.settings(method, case)?, &trace, Priority::Bulk, 0);
        let mut watch = self.is_alone().then(|| Watch::begin(folder, scope.clone(), &trace));
        let (mut prepared, mut noted) = (Ok(()), Ok(()));
        for source in &case.sources {
            prepared = prepared.and_then(|()| memory::add(source, &mut writer, &session).map(|_| ()));
        }
        if prepared.is_ok() {
            let mut report = |step| {
                noted = std::mem::replace(&mut noted, Ok(())).and_then(|()| watch.as_mut().map_or(Ok(()), Watch::tick));
                progress(step);
            };
            prepared = memory::prepare(&mut writer, &session, &mut report).await;
        }
        noted?;
        match &mut watch {
            Some(watch) => watch.note()?,
            None => folder.put(&Line::Measured(Measured::untimed(scope.clone(), trace.fallbacks())))?,
        }
        let text_tokens = text_tokens(case, &taped);
        let (usage, endings) = (self.tape.usage(&scope), self.tape.endings(&scope));
        let Scope { model, method, case, .. } = scope;
        folder.put(&Line::Prepared(Prepared { model, method, case, text_tokens, usage, endings }))?;
        prepared.map_or_else(|error| excusable(error).map(Some), |()| Ok(None))
    }

    /// Whether nothing else runs concurrently, so that times and memory are its own.
    fn is_alone(&self) -> bool {
        self.plan.width <= 1
    }

    fn writer(&self, case: &Case, method: &'static dyn Method) -> Result<Writer> {
        let name = self.corpus_name(case, method);
        match self.corpora.open_writer(&name) {
            Err(store::Error::UnknownCorpus { .. }) => Ok(self.corpora.create(&name)?),
            opened => Ok(opened?),
        }
    }

    /// Asks a question, and then the judges of its answer.
    async fn answer(
        &self,
        case: &Case,
        method: &'static dyn Method,
        question: &Question,
        folder: &QaFolder,
        unprepared: Option<String>,
    ) -> Result<Item> {
        let corpus = self.corpora.open(&self.corpus_name(case, method))?;
        let scope = self.scope(method, case, Some(question));
        let taped = Taped::new(self.tape, self.machine, scope.clone())?.recording_tokens(self.plan.rollouts);
        let trace = Trace::kept();
        let mut watch = self.is_alone().then(|| Watch::begin(folder, scope, &trace));
        let mut settings = self.settings(method, case)?;
        settings.choices.clone_from(&question.options);
        settings.answer_rules = Some(self.plan.suite()?.rules_for(question));
        let workflow = workflow(method, &case.id, &question.id);
        let session = session(&taped, settings, &trace, Priority::Workflow, workflow);
        let answered = match unprepared {
            Some(reason) => Err(format!("it could not prepare the text: {reason}")),
            None => match ask_in_conversation(question, &corpus, session).await {
                Ok(answer) => Ok(answer),
                Err(error) => Err(excusable(error)?),
            },
        };
        if let Some(watch) = &mut watch {
            watch.note()?;
        }
        let grounding = answered.as_ref().ok().and_then(|answer| Grounding::of(&serde_json::to_value(answer).ok()?));
        let (answer, citations, failed) = match answered {
            Ok(answer) => (answer.answer, answer.citations, None),
            Err(reason) => (String::new(), Vec::new(), Some(reason)),
        };
        let cited = citations.into_iter().map(|citation| Cited::of(citation, case, &corpus));
        let citations = cited.collect::<Result<Vec<Cited>>>()?;
        let (first, endings) = (taped.answer_prompt_tokens(), taped.endings());
        let events = trace.events();
        let brought = brought(case, &corpus, &events)?;
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
            outcome: None,
            grounding,
            readings: events
                .iter()
                .find_map(|event| match event {
                    Event::Short { readings, .. } => Some(readings.clone()),
                    _ => None,
                })
                .unwrap_or_default(),
            found: ranks(&question.evidence, &brought),
            found_sessions: ranks(&question.sessions, &sessions(case, &brought)),
            fallbacks: trace.fallbacks(),
            usage: rounded(trace.usage()),
            endings,
            compaction: first.and_then(|tokens| compaction(tokens, text_tokens(case, &taped))),
        };
        item.score(self.plan.suite()?, &self.scorers);
        Ok(item)
    }

    async fn verdicts(&self, question: &Question, answer: &str, taped: &Taped<'_>) -> Result<BTreeMap<String, String>> {
        let (suite, mut verdicts) = (self.plan.suite()?, BTreeMap::new());
        let asks = |scorer: &&Scorer| suite.applies(**scorer, question) && scorer.asks(question, answer);
        for scorer in self.scorers.iter().filter(asks) {
            if let Some(judge) = scorer.judge() {
                let reply = taped.call(judge.call(question, answer)).await?;
                verdicts.insert(scorer.to_string(), reply.text);
            }
        }
        Ok(verdicts)
    }
}

/// Asks a question with what it refers to in the conversation before it, as the server does.
async fn ask_in_conversation(question: &Question, corpus: &Corpus, mut session: Session<'_>) -> memory::Result<Answer> {
    let (asked, turns) = (question.asked(), question.turns());
    session.settings.search_query = memory::search_query(&asked, &turns, &session);
    let understood = memory::standalone(&asked, &turns, &session).await?;
    memory::ask(&understood, corpus, &session).await
}

/// Tokens of a case's texts, by the answering model.
fn text_tokens(case: &Case, taped: &Taped<'_>) -> usize {
    case.sources.iter().map(|source| taped.tokens().count_tokens(Agent::Responder, &source.text)).sum()
}

fn session<'a>(
    taped: &'a Taped<'a>,
    settings: Settings,
    trace: &'a Trace,
    priority: Priority,
    workflow: u64,
) -> Session<'a> {
    let (workflow, tenant) = (WorkflowId(workflow), TenantId::LOCAL);
    Session { caller: taped, embedder: taped, settings, trace, workflow, tenant, priority, on_text: None }
}

/// The workflow: the calls of one question by one method.
fn workflow(method: &'static dyn Method, case: &str, question: &str) -> u64 {
    let digest = store::Digest::of(&[&method.to_string(), case, question]).0;
    u64::from_le_bytes([digest[0], digest[1], digest[2], digest[3], digest[4], digest[5], digest[6], digest[7]])
}

/// The message of a failure that concerns one question only; any other failure ends the run.
fn excusable(error: MemoryError) -> Result<String> {
    use CallError::{CutOff, Failed, OutOfForm, OutputFormat, TooLong, TooLongToEmbed};
    match &error {
        MemoryError::Call(
            TooLong { .. }
            | OutputFormat { .. }
            | Failed { .. }
            | OutOfForm { .. }
            | CutOff { .. }
            | TooLongToEmbed { .. },
        )
        | MemoryError::EmptyQuestion
        | MemoryError::EmptyCorpus { .. } => Ok(error.to_string()),
        _ => Err(error.into()),
    }
}

/// Replays a run from its tape, without a model, in a folder of its own; returns its items.
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

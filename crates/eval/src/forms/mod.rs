//! Do answers always have the form that was asked for? Every method at work on real text, cold and hot, and every reply
//! that was to have a form held against its schema by a validator that the engine knows nothing of; what it quotes is looked
//! for in the text.
//!
//! A small model that has no idea of the matter is the hardest test: whatever it writes must parse, validate, quote what is
//! there, and not run to its limit in white space.

mod inspector;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use calls::{Lane, TenantId, WorkflowId};
use futures_util::future::{join_all, try_join_all};
use memory::mindgraph::{self, Focus};
use memory::{MemcotStore, MemoryError, Method, Session, Settings, Trace, memcot};
use serde::Serialize;
use sources::Source;
use store::Corpora;

use crate::qa::{Machine, Scope, Tape, taped::Taped};
use crate::{Error, Result};
use inspector::Inspector;

/// What was asked of every text.
const QUESTIONS: [&str; 4] = [
    "Who are the people, and what are they to one another?",
    "What happened, and in which order?",
    "Where and when did it happen?",
    "What does the text not say?",
];

/// What the answers may be where they are to be chosen.
const CHOICES: [&str; 4] =
    ["It is said at the beginning.", "It is said at the end.", "It is never said.", "It is a lie."];

/// Temperatures that rounds take in turn.
const TEMPERATURES: [f32; 3] = [0.3, 1.0, 0.0];

/// What became of the calls of one step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    pub calls: usize,
    /// Replies that parse and validate, and do not end in white space.
    pub good: usize,
    /// Of those, replies that had to be closed before the model was done.
    pub closed_early: usize,
    /// What was wrong with the others.
    pub wrong: Vec<String>,
}

/// What became of all calls, by step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Forms {
    pub steps: BTreeMap<String, Tally>,
}

impl Forms {
    /// All steps together.
    pub fn total(&self) -> Tally {
        let mut total = Tally::default();
        for tally in self.steps.values() {
            total.calls += tally.calls;
            total.good += tally.good;
            total.closed_early += tally.closed_early;
            total.wrong.extend_from_slice(&tally.wrong);
        }
        total
    }

    /// The steps line by line, for a program.
    pub fn to_csv(&self) -> String {
        let line = |(step, tally): (&String, &Tally)| {
            format!("{step},{},{},{}\n", tally.calls, tally.good, tally.closed_early)
        };
        std::iter::once("step,calls,good,closed_early\n".to_owned()).chain(self.steps.iter().map(line)).collect()
    }
}

/// Lets every method work on `sources`, round after round, until at least so many replies with a form have come. What
/// comes is kept in `folder` at once, and a run that was cut off there goes on without repeating a call. `progress` is told
/// how many replies there are.
///
/// # Errors
/// If a method fails, or the folder cannot be written.
pub async fn inspect(
    sources: &[Source],
    calls: usize,
    machine: Machine<'_>,
    folder: Option<&Path>,
    progress: &mut (dyn FnMut(usize) + Send),
) -> Result<Forms> {
    let tape = folder.map_or_else(|| Ok(Tape::default()), Tape::open)?;
    let inspector = Inspector::new(machine.caller, folder, progress)?;
    // Replies that are on the tape have been inspected.
    let inspected = Machine { caller: &inspector, ..machine };
    for round in 0.. {
        inspector.begin(round);
        let mut taped = Vec::new();
        for (pass, settings) in passes(round) {
            let (model, case) = (machine.model.to_owned(), format!("round {round}"));
            let scope = Scope { model, method: pass, case, question: None };
            taped.push((settings, Taped::new(&tape, Some(inspected), scope)?));
        }
        let passes = (1..).zip(&taped);
        try_join_all(passes.map(|(workflow, (settings, taped))| work(settings, sources, taped, WorkflowId(workflow))))
            .await?;
        if inspector.calls_up_to(round) >= calls {
            break;
        }
    }
    Ok(inspector.forms())
}

/// What is set to work in a round: every method, and those again whose agents have other forms then.
fn passes(round: u64) -> Vec<(String, Settings)> {
    let temperature = TEMPERATURES[(round % TEMPERATURES.len() as u64) as usize];
    let questions = QUESTIONS.map(str::to_owned).into();
    let mindgraph = mindgraph::Options { focus: Focus::Set, questions, ..mindgraph::Options::default() };
    let common = Settings { seed: round, temperature, mindgraph, ..Settings::default() };
    let by = |method| Settings { method, ..common.clone() };
    let memcot = memcot::Options { store: MemcotStore::Lightrag, ..memcot::Options::default() };
    let with_choices = |method| Settings { options: CHOICES.map(str::to_owned).into(), ..by(method) };
    let again = [
        ("memcot over lightrag".to_owned(), Settings { memcot, ..by(Method::Memcot) }),
        ("comorag with choices".to_owned(), with_choices(Method::Comorag)),
        ("mindgraph with choices".to_owned(), with_choices(Method::Mindgraph)),
    ];
    Method::ALL.into_iter().map(|method| (method.to_string(), by(method))).chain(again).collect()
}

/// One method on a corpus of its own: prepared, then asked everything at once.
async fn work(settings: &Settings, sources: &[Source], taped: &Taped<'_>, workflow: WorkflowId) -> Result<()> {
    let folder = tempfile::tempdir().map_err(Error::Scratch)?;
    let mut writer = Corpora::new(folder.path()).create("forms").map_err(MemoryError::from)?;
    let trace = Trace::off();
    let session = Session {
        caller: taped,
        embedder: taped,
        settings: settings.clone(),
        trace: &trace,
        workflow,
        tenant: TenantId::LOCAL,
        lane: Lane::Workflow,
        on_text: None,
    };
    for source in sources {
        memory::add(source, &mut writer, &session)?;
    }
    memory::prepare(&mut writer, &session, &mut |_| {}).await?;
    for answer in join_all(QUESTIONS.map(|question| memory::ask(question, &writer, &session))).await {
        answer?;
    }
    Ok(())
}

impl fmt::Display for Forms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# Forms\n\n| step | calls | good | closed early |\n|---|---:|---:|---:|")?;
        let all = self.total();
        for (step, tally) in self.steps.iter().map(|(step, tally)| (step.as_str(), tally)).chain([("all", &all)]) {
            writeln!(f, "| {step} | {} | {} | {} |", tally.calls, tally.good, tally.closed_early)?;
        }
        all.wrong.iter().try_for_each(|wrong| writeln!(f, "\n* {wrong}"))
    }
}

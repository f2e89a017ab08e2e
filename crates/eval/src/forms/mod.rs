//! Checks output formats: every method works on real text at several temperatures, and every reply is validated against the
//! schema of its call by a validator that shares no code with the engine; quotes are looked up in the text. Counted too is
//! how replies ended ([`crate::Endings`]).
//!
//! A small model that does not understand the text is the hardest test: its replies must parse, validate, quote the
//! text, and not fill their limit with white space.

mod inspector;
mod tally;

use std::path::Path;

use calls::{Priority, TenantId, WorkflowId};
use futures_util::future::{join_all, try_join_all};
use memory::comorag::Comorag;
use memory::memcot::{self, Memcot, MemcotStore};
use memory::mindgraph::{self, Focus, Mindgraph};
use memory::{MemoryError, Method, Session, Settings, Trace, methods};
use sources::Source;
use store::Corpora;

use crate::qa::{Backend, Scope, Tape, taped::Taped};
use crate::{Error, Result};
use inspector::Inspector;
pub use tally::{Forms, Tally};

/// The questions about every text.
const QUESTIONS: [&str; 4] = [
    "Who are the people, and what are they to one another?",
    "What happened, and in which order?",
    "Where and when did it happen?",
    "What does the text not say?",
];

/// The options of questions with options.
const CHOICES: [&str; 4] =
    ["It is said at the beginning.", "It is said at the end.", "It is never said.", "It is a lie."];

/// The temperatures of successive rounds.
const TEMPERATURES: [f32; 3] = [0.3, 1.0, 0.0];

/// Lets every method work on `sources`, round after round, until at least `calls` replies are checked. Every reply is
/// written to `folder` before it is used, and an interrupted run resumes from there without repeating a call. `progress`
/// gets the number of replies.
///
/// # Errors
/// If a method fails, or the folder cannot be written.
pub async fn inspect(
    sources: &[Source],
    calls: usize,
    machine: Backend<'_>,
    folder: Option<&Path>,
    progress: &mut (dyn FnMut(usize) + Send),
) -> Result<Forms> {
    let tape = folder.map_or_else(|| Ok(Tape::default()), Tape::open)?;
    let inspector = Inspector::new(machine.caller, folder, progress)?;
    // Replies on the tape are checked already.
    let inspected = Backend { caller: &inspector, ..machine };
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

/// The runs of a round: every method, and once more those whose agents have other formats with other settings.
fn passes(round: u64) -> Vec<(String, Settings)> {
    let temperature = TEMPERATURES[(round % TEMPERATURES.len() as u64) as usize];
    let questions = QUESTIONS.map(str::to_owned).into();
    let mindgraph = mindgraph::Options { focus: Focus::Set, questions, ..mindgraph::Options::default() };
    let common = Settings { seed: round, temperature, ..Settings::default().with_options(mindgraph) };
    let by = |method: &'static dyn Method| Settings { method, ..common.clone() };
    let memcot = memcot::Options { store: MemcotStore::Lightrag, ..memcot::Options::default() };
    let with_choices =
        |method: &'static dyn Method| Settings { choices: CHOICES.map(str::to_owned).into(), ..by(method) };
    let again = [
        ("memcot over lightrag".to_owned(), by(&Memcot).with_options(memcot)),
        ("comorag with choices".to_owned(), with_choices(&Comorag)),
        ("mindgraph with choices".to_owned(), with_choices(&Mindgraph)),
    ];
    methods::concrete().into_iter().map(|method| (method.to_string(), by(method))).chain(again).collect()
}

/// One method on a corpus of its own: prepared, then asked all questions concurrently.
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
        priority: Priority::Workflow,
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

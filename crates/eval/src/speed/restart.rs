//! Time to the first token about a long text that was read before a restart.

use std::time::Instant;

use calls::{Agent, Call, Kept, Prefixes, Prompt, Stability, TenantId, WorkflowId};

use super::item::Who;
use super::outcome::Outcome;
use super::workload;
use super::{EngineUnderTest, Items, SpeedSuite, Unit};
use crate::{Error, Result};

/// Tokens of the text, if the context is long enough.
const TOKENS: usize = 8000;
/// The workflow of all questions.
const WORKFLOW: WorkflowId = WorkflowId(1);
/// Tokens reserved for the question.
const QUESTION_TOKENS: usize = 128;

/// From the question to the first token: with the text computed, and after a restart with the text read from a file.
/// Also the time to write that file. Loading the model is not included.
pub(super) async fn measure(
    repetitions: usize,
    engine: &dyn EngineUnderTest,
    progress: &mut dyn FnMut(&str),
    items: &mut Items,
) -> Result<()> {
    let context = engine.caller().tokens().context_tokens(Agent::Researcher);
    let tokens = TOKENS.min(context.saturating_sub(QUESTION_TOKENS));
    let text = workload::text_of(tokens, engine.caller());
    let folder = tempfile::tempdir().map_err(Error::Scratch)?;
    let mut measured = Vec::new();
    for repetition in 0..repetitions {
        progress(&format!("snapshot: {} of {repetitions}", repetition + 1));
        let first = engine.fresh()?;
        let computed = ask(&text, repetition, &*first).await?;
        let started = Instant::now();
        whole(prefixes(&*first)?.keep_prefixes(TenantId::LOCAL, WORKFLOW, folder.path()).await)?;
        let saved = Outcome { seconds: started.elapsed().as_secs_f64(), ..computed };
        drop(first);

        let second = engine.fresh()?;
        let started = Instant::now();
        whole(prefixes(&*second)?.bring_prefixes(TenantId::LOCAL, folder.path()).await)?;
        let restored = ask(&text, repetitions + repetition, &*second).await?;
        let restored = Outcome { seconds: started.elapsed().as_secs_f64(), ..restored };
        measured.push([computed, restored, saved]);
    }
    for (at, case) in ["computed", "brought back", "saving"].into_iter().enumerate() {
        let item = items.item(SpeedSuite::Snapshot, &format!("{tokens} tokens {case}"), Unit::Seconds);
        measured.iter().for_each(|outcomes| item.add(Who::Ours, outcomes[at].seconds, outcomes[at]));
    }
    Ok(())
}

fn prefixes(engine: &dyn EngineUnderTest) -> Result<&dyn Prefixes> {
    engine.caller().prefixes().ok_or_else(|| Error::Prefixes("it cannot save any".into()))
}

/// An error unless all of it was saved or restored.
fn whole(kept: Kept) -> Result<()> {
    if kept.refused.is_empty() { Ok(()) } else { Err(Error::Prefixes(kept.refused.join("; "))) }
}

async fn ask(text: &str, question: usize, engine: &dyn EngineUnderTest) -> Result<Outcome> {
    let prompt = Prompt::new().system("You read closely.").user(Stability::Corpus, text);
    let prompt = prompt.user(Stability::Volatile, format!("\n\n{}", workload::words(question + 99, 24)));
    let call = Call { workflow: WORKFLOW, ..Call::new(Agent::Researcher, "bench", prompt, 1) };
    let call = workload::fixed(call, 1);
    workload::run(&[vec![call]], engine.caller()).await
}

//! A question end to end: documents are memorised by the models, then a question is asked.

use std::path::Path;
use std::time::Instant;

use calls::{Priority, TenantId, Usage, WorkflowId};
use memory::{MemoryError, Session, Settings, Trace};
use sources::ReadOptions;
use store::{Corpora, Layer};

use super::item::Who;
use super::outcome::Outcome;
use super::{EngineUnderTest, Items, SpeedSuite, Unit};
use crate::{Error, Result};

const QUESTION: &str = "Who are the people in this text, and what do they do?";

/// Each repetition uses freshly loaded models, since the prompts are equal every time.
pub(super) async fn measure(
    repetitions: usize,
    documents: &Path,
    engine: &dyn EngineUnderTest,
    progress: &mut dyn FnMut(&str),
    items: &mut Items,
) -> Result<()> {
    let found = sources::find(&[documents.to_owned()]);
    if let Some(error) = found.errors.into_iter().next() {
        return Err(error.into());
    }
    let read = found.files.iter().map(|file| sources::read(file, &ReadOptions::default()));
    let sources: Vec<_> = read.collect::<std::result::Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    let mut measured = Vec::new();
    for repetition in 0..repetitions {
        progress(&format!("ask: {} of {repetitions}", repetition + 1));
        let fresh = engine.fresh()?;
        let folder = tempfile::tempdir().map_err(Error::Scratch)?;
        let mut writer = Corpora::new(folder.path()).create("ask").map_err(MemoryError::from)?;
        let trace = Trace::off();
        let session = Session {
            caller: fresh.caller(),
            embedder: fresh.embedder(),
            settings: Settings::default(),
            trace: &trace,
            workflow: WorkflowId(1),
            tenant: TenantId::LOCAL,
            priority: Priority::Interactive,
            on_text: None,
        };
        let started = Instant::now();
        for source in &sources {
            memory::add(source, &mut writer, &session)?;
        }
        memory::prepare(&mut writer, &session, &mut |_| {}).await?;
        let memorised = outcome(started, trace.usage());
        let pages = writer.count(Layer::Page).map_err(MemoryError::from)?;
        let started = Instant::now();
        let answer = memory::ask(QUESTION, &writer, &session).await?;
        measured.push((pages, memorised, outcome(started, answer.usage)));
    }
    let pages = measured.first().map_or(0, |(pages, ..)| *pages);
    let item = items.item(SpeedSuite::Ask, &format!("memorise {pages} pages"), Unit::Seconds);
    measured.iter().for_each(|(_, memorised, _)| item.add(Who::Ours, memorised.seconds, *memorised));
    let item = items.item(SpeedSuite::Ask, "answer a question", Unit::Seconds);
    measured.iter().for_each(|(_, _, answered)| item.add(Who::Ours, answered.seconds, *answered));
    Ok(())
}

fn outcome(started: Instant, usage: Usage) -> Outcome {
    Outcome {
        seconds: started.elapsed().as_secs_f64(),
        prompt_tokens: usage.prompt_tokens,
        cached_tokens: usage.cached_tokens,
        output_tokens: usage.output_tokens,
    }
}

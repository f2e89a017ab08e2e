//! The KV cache of a method's prompt prefixes, saved beside the corpus, so that the next question need not compute it
//! again, in this process or another.

use std::path::PathBuf;

use calls::Kept;
use store::Corpus;

use crate::core::error::Result;
use crate::core::session::Session;
use crate::core::trace::Event;

/// Loads the saved prefixes, if the settings ask for it.
pub(crate) async fn bring(corpus: &Corpus, session: &Session<'_>) -> Result<()> {
    let Some(folder) = folder(corpus, session) else { return Ok(()) };
    let Some(prefixes) = session.caller.prefixes() else { return Ok(()) };
    record("prefixes.bring", prefixes.bring_prefixes(session.tenant, &folder).await, session)
}

/// Saves the prefixes of this workflow's prompts, if the settings ask for it and any of them is new.
pub(crate) async fn keep(corpus: &Corpus, session: &Session<'_>) -> Result<()> {
    let Some(folder) = folder(corpus, session) else { return Ok(()) };
    let Some(prefixes) = session.caller.prefixes() else { return Ok(()) };
    let kept = prefixes.keep_prefixes(session.tenant, session.workflow, &folder).await;
    if kept.tokens > 0 {
        // Text of a document that was removed meanwhile must not stay on disk.
        corpus.clear_outdated_cache()?;
    }
    record("prefixes.keep", kept, session)
}

/// One folder a method: methods share no prefixes.
fn folder(corpus: &Corpus, session: &Session<'_>) -> Option<PathBuf> {
    let settings = &session.settings;
    settings.keep_prefixes.then(|| corpus.cache_file("prefixes").join(settings.method.name()))
}

fn record(step: &str, kept: Kept, session: &Session<'_>) -> Result<()> {
    let Kept { tokens, refused } = kept;
    if tokens == 0 && refused.is_empty() {
        return Ok(());
    }
    session.trace.record(Event::Prefixes { step: step.to_owned(), tokens, refused })
}

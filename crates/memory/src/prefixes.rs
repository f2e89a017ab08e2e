//! What a method's prompts begin with, kept beside the corpus: the next question on it need not have that computed again, in
//! this process or another.

use std::path::PathBuf;

use calls::Kept;
use store::Corpus;

use crate::error::Result;
use crate::session::Session;
use crate::trace::Event;

/// Brings back what was kept, if it shall be.
pub(crate) async fn bring(corpus: &Corpus, session: &Session<'_>) -> Result<()> {
    let Some(folder) = folder(corpus, session) else { return Ok(()) };
    record("prefixes.bring", session.caller.bring_prefixes(session.tenant, &folder).await, session)
}

/// Keeps what this workflow's prompts have begun with, if it shall be and any of it is new.
pub(crate) async fn keep(corpus: &Corpus, session: &Session<'_>) -> Result<()> {
    let Some(folder) = folder(corpus, session) else { return Ok(()) };
    let kept = session.caller.keep_prefixes(session.tenant, session.workflow, &folder).await;
    if kept.tokens > 0 {
        // Words of a document that has gone meanwhile must not stay.
        corpus.clear_outdated_cache()?;
    }
    record("prefixes.keep", kept, session)
}

/// Methods have no prefixes in common.
fn folder(corpus: &Corpus, session: &Session<'_>) -> Option<PathBuf> {
    let settings = &session.settings;
    settings.keep_prefixes.then(|| corpus.cache_file("prefixes").join(settings.method.to_string()))
}

fn record(step: &str, kept: Kept, session: &Session<'_>) -> Result<()> {
    let Kept { tokens, refused } = kept;
    if tokens == 0 && refused.is_empty() {
        return Ok(());
    }
    session.trace.record(Event::Prefixes { step: step.to_owned(), tokens, refused })
}

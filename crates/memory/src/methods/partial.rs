//! Answering while the preparation of a corpus is incomplete.

use store::Corpus;

use super::SUBSTITUTE;
use crate::core::error::Result;
use crate::core::method::Choice;
use crate::core::outcome::Answer;
use crate::core::preparation::Prepared;
use crate::core::run;
use crate::core::session::Session;

/// Answers a question from what is ready: by the method of the session if the corpus is prepared for it, or if it can
/// answer from a part; else by [`SUBSTITUTE`]. If not all is ready, the answer says how much is, and `why`.
///
/// # Errors
/// As [`run::ask`], but never [`crate::MemoryError::NotReady`].
pub async fn ask_what_is_ready(question: &str, corpus: &Corpus, mut session: Session<'_>, why: &str) -> Result<Answer> {
    let mut chosen = None;
    if let Some(Choice { method, why }) = run::choose(corpus, &session)? {
        session.settings.method = method;
        chosen = Some(why);
    }
    let Some(prepared) = run::prepared(corpus, &session)? else {
        let answer = run::ask(question, corpus, &session).await?;
        return Ok(Answer { chosen, ..answer });
    };
    let asked = session.settings.method;
    if !asked.answers_in_part() {
        session.settings.method = SUBSTITUTE;
    }
    let answer = run::ask_in_part(question, corpus, &session).await?;
    let Prepared { ready, of } = prepared;
    let how = match asked.answers_in_part() {
        true => "the answer is from what is ready".to_owned(),
        false => format!("{SUBSTITUTE} answered instead"),
    };
    let note = format!("{ready} of {of} pages are prepared for {asked}, so {how}: {why}");
    let note = answer.note.iter().fold(note, |all, more| format!("{all}; {more}"));
    Ok(Answer { chosen, prepared: Some(prepared), note: Some(note), ..answer })
}

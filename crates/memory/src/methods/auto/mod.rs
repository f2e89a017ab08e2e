//! A choice between `direct`, `rag` and `gam`, by the size of the model and the length of the text: the whole text where
//! the model answers well from that much, else the nearest pages for a small model, or research for a large one.
//! The answer has the method that was chosen and why.
//!
//! A corpus is prepared only for the chosen method. The choice is made again for each question, so a corpus that grows
//! may get another method, and is prepared for it then.

mod table;

use calls::Agent;
use futures_util::future::LocalBoxFuture;
use store::{Corpus, Layer, Writer};

use self::table::{Class, class};
use crate::core::about::About;
use crate::core::access::Access;
use crate::core::answer;
use crate::core::error::Result;
use crate::core::method::{Choice, Method};
use crate::core::outcome::Answer;
use crate::core::preparation::{Missing, Progress};
use crate::core::session::Session;
use crate::methods::{direct::Direct, gam::Gam, rag::Rag};

/// The method.
pub struct Auto;

static ABOUT: About = About { paper: None, module: include_str!("mod.rs") };

impl Method for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn choose(&self, corpus: &Corpus, session: &Session<'_>) -> Result<Option<Choice>> {
        choose(corpus, session).map(Some)
    }

    fn may_choose(&self) -> &'static [&'static dyn Method] {
        &[&Direct, &Rag, &Gam]
    }

    fn missing(&self, corpus: &Corpus, session: &Session<'_>) -> Result<Missing> {
        let method = choose(corpus, session)?.method;
        method.missing(corpus, &session.with_method(method))
    }

    fn prepare<'a>(
        &'a self,
        writer: &'a mut Writer,
        session: &'a Session<'_>,
        progress: &'a mut dyn FnMut(Progress),
    ) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let method = choose(writer, session)?.method;
            method.prepare(writer, &session.with_method(method), progress).await
        })
    }

    fn ask<'a>(
        &'a self,
        question: &'a str,
        corpus: Access<'a>,
        session: &'a Session<'_>,
    ) -> LocalBoxFuture<'a, Result<Answer>> {
        Box::pin(async move {
            let Choice { method, why } = choose(&corpus, session)?;
            let answer = method.ask(question, corpus, &session.with_method(method)).await?;
            Ok(Answer { chosen: Some(why), ..answer })
        })
    }
}

/// The method for a corpus and the models of a session.
fn choose(corpus: &Corpus, session: &Session<'_>) -> Result<Choice> {
    let reader = class(session, Agent::Responder);
    let limit_tokens = reader.whole_text_tokens.min(session.context(Agent::Responder) / 2);
    let whole = whole_text(corpus, limit_tokens, session)?;
    let model = session.caller.models().model(Agent::Responder);
    let (length, limit) = match whole {
        Length::Tokens(tokens) => (format!("{tokens} tokens"), format!("{limit_tokens} tokens")),
        Length::Bytes(bytes) => {
            let limit_bytes = limit_tokens * MAX_BYTES_PER_TOKEN;
            (format!("{bytes} bytes"), format!("{limit_tokens} tokens (at most {limit_bytes} bytes)"))
        }
    };
    let size = size(session, Agent::Responder);
    let limit = format!("the text has {length}, and {model}{size} answers from up to {limit} at once");
    if matches!(whole, Length::Tokens(tokens) if tokens <= limit_tokens) {
        return Ok(Choice { method: &Direct, why: limit });
    }
    let Class { beyond: method, why, .. } = class(session, Agent::Researcher);
    Ok(Choice { method: *method, why: format!("{limit}; {why}") })
}

/// The size of a model, in brackets.
fn size(session: &Session<'_>, agent: Agent) -> String {
    match (session.settings.profile, session.caller.models().parameters(agent)) {
        (Some(profile), _) => format!(" (profile {profile})"),
        (None, Some(parameters)) => format!(" ({} million parameters)", parameters / 1_000_000),
        (None, None) => " (of unknown size)".to_owned(),
    }
}

/// The length of all documents.
enum Length {
    Tokens(usize),
    /// Longer than the limit; the tokens are not counted.
    Bytes(usize),
}

/// Bytes that a token has at most on average, in text of any language.
const MAX_BYTES_PER_TOKEN: usize = 8;

fn whole_text(corpus: &Corpus, limit_tokens: usize, session: &Session<'_>) -> Result<Length> {
    let span_bytes = |page: &store::Passage| (page.span.end_byte - page.span.start_byte) as usize;
    let bytes: usize = corpus.passages(Layer::Page)?.iter().map(span_bytes).sum();
    if bytes > limit_tokens * MAX_BYTES_PER_TOKEN {
        return Ok(Length::Bytes(bytes));
    }
    let text = answer::whole_text(corpus, session)?;
    Ok(Length::Tokens(session.caller.tokens().count_tokens(Agent::Responder, &text)))
}

//! The judge's word on a statement of an answer: does a text support it?
//!
//! The judge is asked from 3B parameters on (the profile `paper`), and a model of unknown size only where that profile was
//! named. Benchmarks, which ask for a short form of the answer, do not ask it: its calls are no part of a method's cost.

use calls::{Agent, Call, CallError, OutputFormat, Sampling, Stability};

use crate::core::error::{MemoryError, Result};
use crate::core::profile::Profile;
use crate::core::prompt::{Input, Instructions, build};
use crate::core::session::{Ask, Session};
use crate::core::trace::Event;

const STEP: &str = "answer.verify";

const VERIFY: Instructions = Instructions {
    task: "You are the verifying agent. You check whether a text supports a statement.",
    rules: "\
TEXT is a part of a document. STATEMENT is a sentence of an answer, or a question with its answer behind it, which states \
that this is the answer.
- Answer yes only if TEXT says all of STATEMENT, in whatever words: the same people and things in the same roles, the same \
numbers, dates and places.
- Answer no if TEXT says otherwise, if it says only a part of STATEMENT, or if more must be known than TEXT says.
Answer with yes or no alone.",
    cue: "Does TEXT support STATEMENT? Answer yes or no.",
};

const YES: &str = "yes";

/// Tokens of a reply, which is one word.
const MAX_OUTPUT_TOKENS: usize = 8;

/// Whether the judge is asked about the statements of an answer.
pub(crate) fn applies(session: &Session<'_>) -> bool {
    let settings = &session.settings;
    let is_known = settings.profile.is_some() || session.caller.models().parameters(Agent::Judge).is_some();
    session.profile(Agent::Judge) == Profile::Paper && is_known && settings.answer_rules.is_none()
}

/// Whether a text supports a statement; `None`, with the reason in the trace, if the judge cannot read them, or its reply was
/// cut or is neither yes nor no.
pub(crate) async fn supports(statement: &str, text: &str, session: &Session<'_>) -> Result<Option<bool>> {
    use CallError::{CutOff, OutOfForm, TooLong};
    let inputs =
        vec![Input::new("TEXT", Stability::Volatile, text), Input::new("STATEMENT", Stability::Volatile, statement)];
    let ask = Ask {
        agent: Agent::Judge,
        step: STEP,
        prompt: build(session.settings.layout, VERIFY, inputs),
        thinking_tokens: 0,
        max_output_tokens: session.output_tokens(Agent::Judge, MAX_OUTPUT_TOKENS),
        draw: 0,
    };
    let call = session.call(ask, OutputFormat::Choice(vec![YES.to_owned(), "no".to_owned()]));
    // A verdict is no matter of chance.
    let call = Call { sampling: Sampling::at(0.0, session.settings.seed), ..call };
    match session.send(call).await {
        Ok(reply) if reply.finish.is_cut() => Ok(None),
        Ok(reply) => Ok(Some(reply.text.trim() == YES)),
        Err(MemoryError::Call(error @ (TooLong { .. } | CutOff { .. } | OutOfForm { .. }))) => {
            session.trace.record(Event::Fallback { step: STEP.to_owned(), reason: error.to_string() })?;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

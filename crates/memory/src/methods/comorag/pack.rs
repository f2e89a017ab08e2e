//! Packs texts into a prompt: chosen by rank, whole, within a token budget, then put in the order of the text.

use calls::Agent;
use store::PassageId;

use crate::core::cite::sentences;
use crate::core::error::Result;
use crate::core::session::{Ask, Session};
use crate::core::trace::Event;

/// A text that a prompt may show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub id: i64,
    /// Its position in the text.
    pub place: (i64, i64),
    pub text: String,
    /// The chunks that support it.
    pub sources: Vec<PassageId>,
}

/// Pieces in the form in which a prompt shows them.
#[derive(Debug, Clone, Default)]
pub(super) struct Packed {
    pub text: String,
    pub pieces: Vec<Piece>,
}

/// Packs pieces by rank while they fit; the trace lists the others.
pub(super) fn pack(
    step: String,
    agent: Agent,
    ranked: Vec<Piece>,
    budget_tokens: usize,
    session: &Session<'_>,
) -> Result<Packed> {
    let (mut pieces, mut left_out, mut used_tokens) = (Vec::new(), Vec::new(), 0);
    for piece in ranked {
        // A blank line separates two pieces.
        let seam_tokens = if pieces.is_empty() { 0 } else { 2 };
        let tokens = session.caller.tokens().count_tokens(agent, &piece.text) + seam_tokens;
        if used_tokens + tokens > budget_tokens {
            left_out.push(piece.id);
            continue;
        }
        used_tokens += tokens;
        pieces.push(piece);
    }
    let pages = pieces.iter().map(|piece| piece.id).collect();
    session.trace.record(Event::Evidence { step, budget_tokens, used_tokens, pages, left_out })?;
    pieces.sort_by_key(|piece| piece.place);
    let text = pieces.iter().map(|piece| piece.text.as_str()).collect::<Vec<_>>().join("\n\n");
    Ok(Packed { text, pieces })
}

/// The beginning of a text that fits a budget: whole sentences if the first one fits, else as many tokens as do.
pub(super) fn fitting<'a>(text: &'a str, agent: Agent, budget_tokens: usize, session: &Session<'_>) -> &'a str {
    let tokens = session.caller.tokens();
    let fits = |text: &&str| tokens.count_tokens(agent, text) <= budget_tokens;
    let spans = tokens.token_spans(agent, text);
    if spans.len() <= budget_tokens {
        return text;
    }
    let sentence_ends = sentences(text).into_iter().rev().map(|sentence| sentence.end);
    // A cut text may have other tokens than the same part of the whole.
    let token_ends = spans[..budget_tokens].iter().rev().map(|span| span.end);
    let beginnings = sentence_ends.chain(token_ends).filter_map(|end| text.get(..end)).map(str::trim_end);
    beginnings.into_iter().find(fits).unwrap_or_default()
}

/// Tokens that are free in the context beside a prompt without its evidence.
pub(super) fn room(bare: &Ask, session: &Session<'_>) -> usize {
    let other_tokens = session.prompt_tokens(bare) + bare.reply_tokens() + SEAM_TOKENS;
    session.context(bare.agent).saturating_sub(other_tokens)
}

/// Tokens kept free because the tokens of the parts do not add up exactly to those of the whole.
const SEAM_TOKENS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::method::Settings;
    use crate::core::trace::Trace;
    use calls::{Priority, Scripted, ScriptedEmbedder, TenantId, WorkflowId};

    fn session<'a>(caller: &'a Scripted, trace: &'a Trace) -> Session<'a> {
        Session {
            caller,
            embedder: &ScriptedEmbedder,
            settings: Settings::default(),
            trace,
            workflow: WorkflowId(1),
            tenant: TenantId::LOCAL,
            priority: Priority::Bulk,
            on_text: None,
        }
    }

    #[test]
    fn a_text_that_is_too_long_ends_with_a_sentence_or_else_with_a_token() {
        let (caller, trace) = (Scripted::new(1000), Trace::kept());
        let check = |text: &str, budget_tokens: usize, want: &str| {
            let found = fitting(text, Agent::Responder, budget_tokens, &session(&caller, &trace));
            assert_eq!(found, want, "{budget_tokens} tokens of {text:?}");
        };
        let text = "Ada lit it. Tom saw Ada. Both went home.";
        check(text, 12, text);
        check(text, 11, "Ada lit it. Tom saw Ada.");
        check(text, 7, "Ada lit it.");
        check(text, 3, "Ada lit it");
        check(text, 0, "");
        check("没有 one two three", 2, "没有 one");
    }

    #[test]
    fn the_best_are_taken_and_stand_in_the_order_of_the_text() {
        let check = |budget_tokens: usize, ranked: &[(i64, &str)], want: &str, want_left_out: &[i64]| {
            let (caller, trace) = (Scripted::new(1000), Trace::kept());
            let session = session(&caller, &trace);
            let piece = |(id, text): &(i64, &str)| Piece {
                id: *id,
                place: (*id, 0),
                text: (*text).to_owned(),
                sources: vec![PassageId(*id)],
            };
            let ranked = ranked.iter().map(piece).collect();
            let packed = pack("test".to_owned(), Agent::Responder, ranked, budget_tokens, &session);
            assert_eq!(packed.expect("the trace is kept in memory").text, want);
            let [Event::Evidence { left_out, .. }] = &trace.events()[..] else { panic!("one event") };
            assert_eq!(left_out, want_left_out);
        };
        let ranked = [(7, "seven seven"), (9, "nine"), (2, "two two two"), (1, "one")];
        check(100, &ranked, "one\n\ntwo two two\n\nseven seven\n\nnine", &[]);
        check(12, &ranked, "two two two\n\nseven seven\n\nnine", &[1]);
        // A piece that does not fit is skipped, and the next one is tried.
        check(9, &ranked, "one\n\nseven seven\n\nnine", &[2]);
        // A piece as long as the budget fills it alone.
        check(2, &ranked, "seven seven", &[9, 2, 1]);
        check(0, &ranked, "", &[7, 9, 2, 1]);
        check(100, &[], "", &[]);
    }
}

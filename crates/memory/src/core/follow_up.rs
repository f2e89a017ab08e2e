//! A question of a conversation: what it refers to in the turns before it. Large models rewrite it; for small ones rules replace
//! its pronouns, and the search query has the words of the questions before it.

use calls::{Agent, Stability, schema};
use serde::Deserialize;

use crate::core::error::Result;
use crate::core::profile::Profile;
use crate::core::prompt::{Input, Instructions, build};
use crate::core::pronouns;
use crate::core::session::{Ask, Session};
use crate::core::trace::Event;

/// A question with its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    pub question: String,
    pub answer: String,
    /// The answer in a few words, where there was one.
    pub short: Option<String>,
}

const REWRITE: Instructions<'static> = Instructions {
    task: "You rewrite the last question of a conversation so that it is understood alone.",
    rules: "\
Read CONVERSATION and QUESTION.
- Replace words of QUESTION that refer to CONVERSATION (he, she, it, they, there, then, \"and the other?\") with the names that they mean.
- Change nothing else. If QUESTION is understood alone, repeat it word for word.
- Do not answer it. Use the language of QUESTION. Add at most 25 words to it.",
    cue: "Rewrite QUESTION so that it is understood alone.",
};

const STEP: &str = "follow_up.rewrite";

/// Characters that a rewrite may have more than its question: room for the words that the prompt allows.
const MAX_ADDED_CHARS: usize = 200;

/// Tokens for them, and for the JSON around the question.
const ADDED_TOKENS: usize = 100;

/// Turns that are read: what a question refers to is rarely further back.
const MAX_TURNS: usize = 4;

#[derive(Deserialize)]
struct Rewritten {
    question: String,
}

/// The question with what it refers to in the latest turns, which come in order. Models of the small profile rewrite badly,
/// so with them rules replace the pronouns of an English question whose referent is clear, and any other question is as it was
/// ([`search_query`]). So is one that is too long for a reply of the model, and one whose rewrite is cut or is an answer.
///
/// # Errors
/// If a call fails.
pub async fn standalone(question: &str, turns: &[Turn], session: &Session<'_>) -> Result<String> {
    let agent = Agent::Researcher;
    if turns.is_empty() {
        return Ok(question.to_owned());
    }
    if session.profile(agent) == Profile::Small {
        return Ok(without_pronouns(question, turns));
    }
    let latest = latest(turns, agent, session);
    let left_out = turns.len() - latest.len();
    session.trace.record(Event::Memo { step: STEP.into(), entries: turns.len(), left_out })?;
    if latest.is_empty() {
        return Ok(question.to_owned());
    }
    let inputs = vec![
        Input::new("CONVERSATION", Stability::AppendOnly, latest.join("\n")),
        Input::new("QUESTION", Stability::Volatile, question),
    ];
    let prompt = build(session.settings.layout, REWRITE, inputs);
    let needed_tokens = session.caller.tokens().count_tokens(agent, question) + ADDED_TOKENS;
    let max_output_tokens = session.output_tokens(agent, needed_tokens);
    if max_output_tokens < needed_tokens {
        given_up(format!("a rewrite needs {needed_tokens} tokens, and a reply may have {max_output_tokens}"), session)?;
        return Ok(question.to_owned());
    }
    let ask = Ask { agent, step: STEP, prompt, thinking_tokens: 0, max_output_tokens, draw: 0 };
    let max_chars = question.chars().count() + MAX_ADDED_CHARS;
    let form = schema::object([("question", schema::phrase(max_chars))]);
    let check = |reply: &Rewritten| match asks(question) && !asks(&reply.question) {
        true => Err("it is no question".to_owned()),
        false => Ok(()),
    };
    let reply = session.json_if_it_fits(ask, form, check).await?;
    let Some(Rewritten { question: rewritten }) = reply else { return Ok(question.to_owned()) };
    // The output format ends a string at its limit, in the middle of a sentence.
    if rewritten.chars().count() >= max_chars {
        given_up(format!("the rewrite reached its limit of {max_chars} characters"), session)?;
        return Ok(question.to_owned());
    }
    let rewritten = rewritten.trim();
    Ok(if rewritten.is_empty() { question } else { rewritten }.to_owned())
}

/// Whether a text has a question mark.
fn asks(text: &str) -> bool {
    text.contains(['?', '？', '؟'])
}

/// Records that the question is left as it is.
fn given_up(reason: String, session: &Session<'_>) -> Result<()> {
    session.trace.record(Event::Fallback { step: STEP.to_owned(), reason })
}

/// English words that refer to what was named before.
const REFERRING: [&str; 34] = [
    "he",
    "she",
    "it",
    "they",
    "him",
    "her",
    "them",
    "his",
    "hers",
    "its",
    "their",
    "theirs",
    "this",
    "these",
    "those",
    "one",
    "ones",
    "there",
    "then",
    "such",
    "else",
    "same",
    "he's",
    "she's",
    "it's",
    "they're",
    "former",
    "latter",
    "himself",
    "herself",
    "itself",
    "themselves",
    "another",
    "others",
];

/// English words that begin a question which continues the one before it.
const CONTINUING: [&str; 4] = ["and", "or", "but", "also"];

/// An English question with its pronouns replaced by what the latest turns name, where that is clear.
fn without_pronouns(question: &str, turns: &[Turn]) -> String {
    let latest = &turns[turns.len().saturating_sub(MAX_TURNS)..];
    let latest: Vec<(&str, &str)> =
        latest.iter().map(|turn| (&*turn.question, turn.short.as_ref().unwrap_or(&turn.answer).as_str())).collect();
    pronouns::resolved(question, &latest).unwrap_or_else(|| question.to_owned())
}

/// What to search for with a model of the small profile, if that is not the question alone: an English question that refers to
/// earlier turns, with its pronouns replaced as by [`standalone`], has the words of the questions before it in front, back to one
/// that refers to nothing. Only retrieval uses it. `None` if the question names its subject or nothing is before it.
pub fn search_query(question: &str, turns: &[Turn], session: &Session<'_>) -> Option<String> {
    if session.profile(Agent::Researcher) != Profile::Small || turns.is_empty() || !refers(question) {
        return None;
    }
    let understood = without_pronouns(question, turns);
    let mut questions = vec![understood.as_str()];
    for turn in turns.iter().rev().take(MAX_TURNS) {
        questions.push(&turn.question);
        if !refers(&turn.question) {
            break;
        }
    }
    questions.reverse();
    Some(questions.join(" "))
}

/// True if an English question points to something before it and has no name of its own.
fn refers(question: &str) -> bool {
    let apart = |letter: char| !letter.is_alphanumeric() && !matches!(letter, '\'' | '-');
    let question = question.replace('\u{2019}', "'");
    let words: Vec<&str> = question.split(apart).filter(|word| !word.is_empty()).collect();
    let names = words.iter().skip(1).any(|word| word.starts_with(char::is_uppercase) && *word != "I");
    if names {
        return false;
    }
    let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let goes_on = words.first().is_some_and(|first| CONTINUING.contains(&first.as_str()));
    // Scripts without spaces have no words to count.
    let is_ellipsis = question.is_ascii() && words.len() <= MAX_WORDS_OF_ELLIPSIS;
    goes_on || is_ellipsis || words.iter().any(|word| REFERRING.contains(&word.as_str()))
}

/// A question of so few words ("When?", "For whom?") continues the one before it.
const MAX_WORDS_OF_ELLIPSIS: usize = 2;

/// The latest turns that fit into a quarter of the context, as text, in order.
fn latest(turns: &[Turn], agent: Agent, session: &Session<'_>) -> Vec<String> {
    let mut budget_tokens = session.context(agent) / 4;
    let mut texts = Vec::new();
    for turn in turns.iter().rev().take(MAX_TURNS) {
        let text = format!("Q: {}\nA: {}", turn.question, turn.answer);
        let tokens = session.caller.tokens().count_tokens(agent, &text) + 1;
        if tokens > budget_tokens {
            break;
        }
        budget_tokens -= tokens;
        texts.push(text);
    }
    texts.reverse();
    texts
}

#[cfg(test)]
mod tests {
    use super::refers;

    #[test]
    fn questions_that_go_on_from_another_are_told_from_those_that_name_their_subject() {
        for question in [
            "When?",
            "And by 2000?",
            "What did he tell monks and nuns?",
            "Who else received one?",
            "What\u{2019}s it for?",
        ] {
            assert!(refers(question), "{question}");
        }
        let alone = [
            "How many Huguenots fled?",
            "Where did she marry Tom Reed?",
            "Which instrument measures the performance of engines?",
            "灯塔是谁看守的？",
        ];
        for question in alone {
            assert!(!refers(question), "{question}");
        }
    }
}

//! Prompts in the two layouts, from the same parts.

use std::borrow::Cow;

use calls::{Prompt, Stability, schema};
use serde_json::Value;

use crate::core::method::Settings;
use crate::core::settings::Layout;

/// An agent's instructions: its task and inputs, then its rules and its output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Instructions<'a> {
    /// Before the inputs in the paper's layout.
    pub task: &'static str,
    /// Follows the inputs in the paper's layout.
    pub rules: &'a str,
    /// Repeats the task in one sentence at the end of the shared-first layout, where the rules come first. The paper's layout
    /// ends with the rules instead.
    pub cue: &'static str,
}

/// A named input; inputs are given in the paper's order.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    pub name: &'static str,
    pub stability: Stability,
    pub text: String,
}

impl Input {
    pub fn new(name: &'static str, stability: Stability, text: impl Into<String>) -> Input {
        Input { name, stability, text: text.into() }
    }

    fn render(&self) -> String {
        format!("{}:\n{}\n\n", self.name, self.text)
    }
}

/// An agent's rules, with the settings' answer rules for `what`, if there are any.
pub(crate) fn in_form<'a>(rules: &'a str, what: &str, settings: &Settings) -> Cow<'a, str> {
    let Some(form) = settings.answer_rules else { return rules.into() };
    format!("{rules}\nThis is the form of {what}; it counts more than what is said of it above:\n{form}").into()
}

/// Rules that ask for a thought about `what` before the reply; unchanged if there is no room for one.
pub(crate) fn think_first<'a>(rules: &'a str, what: &str, thinking_tokens: usize) -> Cow<'a, str> {
    if thinking_tokens == 0 {
        return rules.into();
    }
    let words = words(thinking_tokens);
    format!(
        "{rules}\nThink first, in at most {words} words: {what}. Write </think> on a line of its own when you are done, and \
         then the JSON object alone."
    )
    .into()
}

/// Words for which `tokens` are enough in most languages that are written with Latin letters; prompts state limits in words.
pub(crate) fn words(tokens: usize) -> usize {
    (tokens * 2 / 3).max(1)
}

/// The most characters of a text of `words` words; long words have room.
pub(crate) fn chars(words: usize) -> usize {
    7 * words
}

/// A string of at most `words` words, a limit that the prompt states.
pub(crate) fn string_of(words: usize) -> Value {
    schema::string(chars(words))
}

/// The same, but not empty.
pub(crate) fn phrase_of(words: usize) -> Value {
    schema::phrase(chars(words))
}

/// Builds a prompt from instructions and inputs. The shared-first layout sorts the inputs by stability and keeps the
/// paper's order among equals.
pub(crate) fn build(layout: Layout, instructions: Instructions<'_>, mut inputs: Vec<Input>) -> Prompt {
    let Instructions { task, rules, cue } = instructions;
    match layout {
        Layout::Paper => {
            let prompt = Prompt::new().user(Stability::Static, format!("{task}\n\n"));
            let prompt = inputs.iter().fold(prompt, |prompt, input| prompt.user(input.stability, input.render()));
            prompt.user(Stability::Static, rules)
        }
        Layout::SharedFirst => {
            inputs.sort_by_key(|input| input.stability);
            let prompt = Prompt::new().system(format!("{task}\n\n{rules}"));
            let prompt = inputs.iter().fold(prompt, |prompt, input| prompt.user(input.stability, input.render()));
            prompt.user(Stability::Volatile, cue)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(layout: Layout) -> Vec<String> {
        let inputs = vec![
            Input::new("QUESTION", Stability::Volatile, "who?"),
            Input::new("MEMORY", Stability::AppendOnly, "Page 1: ..."),
        ];
        let prompt = build(layout, Instructions { task: "Plan.", rules: "Be brief.", cue: "Plan now." }, inputs);
        prompt.messages().into_iter().map(|turn| format!("{}|{}", turn.role.as_str(), turn.content)).collect()
    }

    #[test]
    fn the_paper_puts_the_question_first_and_the_rules_last() {
        assert_eq!(messages(Layout::Paper), ["user|Plan.\n\nQUESTION:\nwho?\n\nMEMORY:\nPage 1: ...\n\nBe brief."]);
    }

    #[test]
    fn a_thought_is_asked_for_only_where_there_is_room() {
        assert_eq!(think_first("Be brief.", "what is missing", 0), "Be brief.");
        let asked = think_first("Be brief.", "what is missing", 300);
        assert!(asked.starts_with("Be brief.\nThink first, in at most 200 words: what is missing."), "{asked}");
    }

    #[test]
    fn shared_first_puts_what_changes_last() {
        let want = ["system|Plan.\n\nBe brief.", "user|MEMORY:\nPage 1: ...\n\nQUESTION:\nwho?\n\nPlan now."];
        assert_eq!(messages(Layout::SharedFirst), want);
    }
}

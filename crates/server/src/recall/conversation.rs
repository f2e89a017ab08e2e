//! The question of a chat, and the turns before it.

use calls::{Message, Role};
use memory::Turn;

use super::cited::without_marks;
use crate::error::{Result, ServerError};

/// A chat as a question and what came before it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Conversation {
    /// The last message of the user.
    pub question: String,
    /// True if the client put texts before it, in the same message.
    pub has_context: bool,
    pub turns: Vec<Turn>,
}

/// What coding agents put before or behind the words of the user, in the same message.
const REMARKS: [(&str, &str); 2] =
    [("<system-reminder>", "</system-reminder>"), ("<environment_context>", "</environment_context>")];

/// How Open WebUI begins the prompts by which it asks for titles, tags, follow-ups and searches of a chat, and those of texts
/// that the user attached, which end with the question.
const TASK: &str = "### Task:";

/// How it begins those for an emoji and for one reply out of several.
const OTHER_TASKS: [&str; 2] = [
    "Your task is to reflect the speaker's likely facial expression",
    "You have been provided with a set of responses from various models",
];

/// What ends the texts that the user attached.
const CONTEXT_END: &str = "</context>";

impl Conversation {
    /// System messages and results of tools are not part of it: the methods have prompts of their own, and tools are not
    /// called.
    ///
    /// # Errors
    /// [`ServerError::Invalid`] if the user says nothing.
    pub fn of(messages: Vec<Message>) -> Result<Conversation> {
        let mut turns: Vec<Turn> = Vec::new();
        for Message { role, content, .. } in messages {
            match (role, turns.last_mut()) {
                (Role::User, last) => {
                    let question = without_remarks(&content);
                    match last {
                        _ if question.is_empty() => {}
                        // Of several messages without an answer the last is the question.
                        Some(turn) if turn.answer.is_empty() => turn.question = question,
                        _ => turns.push(Turn { question, answer: String::new(), short: None }),
                    }
                }
                (Role::Assistant, Some(turn)) => turn.answer = joined(&turn.answer, &without_marks(&content)),
                (Role::Assistant, None) | (Role::System | Role::Tool, _) => {}
            }
        }
        // After the last answer there is no new question; it is asked again.
        let last = turns.pop().map(|turn| turn.question);
        let question =
            last.ok_or_else(|| ServerError::invalid("a chat with a corpus needs a message of the user", "messages"))?;
        turns.iter_mut().for_each(|turn| turn.question = behind_context(&turn.question).to_owned());
        let words = behind_context(&question);
        Ok(Conversation { has_context: words != question, question: words.to_owned(), turns })
    }

    /// True if the client asks about the chat itself, which is not in the corpus.
    pub fn is_task(&self) -> bool {
        [TASK].iter().chain(&OTHER_TASKS).any(|task| self.question.starts_with(task))
    }
}

/// The question behind texts that the user attached; all of it if there are none.
fn behind_context(text: &str) -> &str {
    let question = text.starts_with(TASK).then(|| text.rsplit_once(CONTEXT_END)).flatten();
    question.map(|(_, question)| question.trim()).filter(|question| !question.is_empty()).unwrap_or(text)
}

/// The words of the user.
fn without_remarks(text: &str) -> String {
    let mut text = text.to_owned();
    for (begin, end) in REMARKS {
        let (mut kept, mut rest) = (String::new(), text.as_str());
        while let Some(start) = rest.find(begin)
            && let Some(length) = rest[start..].find(end)
        {
            kept.push_str(&rest[..start]);
            rest = &rest[start + length + end.len()..];
        }
        kept.push_str(rest);
        text = kept;
    }
    text.trim().to_owned()
}

fn joined(one: &str, other: &str) -> String {
    let texts = [one, other].map(str::trim);
    texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use calls::{Prompt, Stability};

    use super::Conversation;

    fn of(prompt: Prompt) -> Conversation {
        Conversation::of(prompt.messages()).expect("a question")
    }

    #[test]
    fn the_last_text_of_the_user_is_the_question() {
        let prompt = Prompt::new()
            .system("Be brief.")
            .user(Stability::Volatile, "What broke?")
            .assistant("The wall [1].\n\n---\n[1] [wall.txt](http://a/#/c/b): “It broke.”")
            .user(Stability::Volatile, "When?");
        let chat = of(prompt);
        assert_eq!(chat.question, "When?");
        let turns: Vec<(&str, &str)> = chat.turns.iter().map(|turn| (&*turn.question, &*turn.answer)).collect();
        assert_eq!(turns, [("What broke?", "The wall.")]);
    }

    #[test]
    fn what_agents_add_is_not_part_of_the_question() {
        let user = |prompt: Prompt, text: &str| prompt.turn(calls::Role::User, text, calls::Turn::default());
        let codex = user(Prompt::new(), "<environment_context>\n  <cwd>/a</cwd>\n</environment_context>");
        assert_eq!(of(user(codex, "What broke?")).question, "What broke?");
        let context = user(Prompt::new(), "These are my notes: ...");
        assert_eq!(of(user(context, "What broke?")).question, "What broke?");
        let claude = "<system-reminder>\nToday is Monday.\n</system-reminder>\n\nWhat broke?\n<system-reminder>b</system-reminder>";
        assert_eq!(of(user(Prompt::new(), claude)).question, "What broke?");
        let still = user(user(Prompt::new(), "What broke?"), "<system-reminder>c</system-reminder>");
        assert_eq!(of(still).question, "What broke?");
    }

    #[test]
    fn an_answer_at_the_end_leaves_the_question_before_it() {
        let prompt = Prompt::new().user(Stability::Volatile, "What broke?").assistant("The");
        assert_eq!(of(prompt).question, "What broke?");
    }

    #[test]
    fn a_chat_without_a_question_is_refused() {
        for prompt in [Prompt::new().system("Be brief."), Prompt::new().user(Stability::Volatile, " ")] {
            Conversation::of(prompt.messages()).expect_err("it asks nothing");
        }
    }

    #[test]
    fn prompts_about_the_chat_are_no_questions() {
        let prompt = |text: &str| of(Prompt::new().user(Stability::Volatile, text));
        assert!(prompt("### Task:\nGenerate a concise title").is_task());
        assert!(prompt("Your task is to reflect the speaker's likely facial expression through an emoji").is_task());
        assert!(prompt("You have been provided with a set of responses from various models to ...").is_task());
        for question in ["What is a task?", "Your task is to find the wall.", "You have been here?"] {
            assert!(!prompt(question).is_task(), "{question}");
        }
    }

    #[test]
    fn a_question_behind_attached_texts_is_one() {
        let attached = |question: &str| {
            let texts = "<context>\n<source id=\"1\">Cheddar. </context> Gouda.</source>\n</context>";
            format!("### Task:\nRespond to the user query using the provided context.\n\n{texts}\n\n{question}")
        };
        let chat = of(Prompt::new()
            .user(Stability::Volatile, attached("What broke?"))
            .assistant("The wall.")
            .user(Stability::Volatile, attached("When?")));
        assert_eq!((&*chat.question, chat.has_context, chat.is_task()), ("When?", true, false));
        assert_eq!(chat.turns[0].question, "What broke?");
        let plain = of(Prompt::new().user(Stability::Volatile, "What is in <context>a</context> here?"));
        assert_eq!((&*plain.question, plain.has_context), ("What is in <context>a</context> here?", false));
        assert!(of(Prompt::new().user(Stability::Volatile, attached(""))).is_task(), "without a question");
    }
}

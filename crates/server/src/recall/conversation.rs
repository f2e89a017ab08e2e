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
    pub turns: Vec<Turn>,
}

/// How Open WebUI begins the prompts by which it asks for titles, tags and follow-ups of a chat.
const TASK: &str = "### Task:";

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
                (Role::User, Some(turn)) if turn.answer.is_empty() => turn.question = joined(&turn.question, &content),
                (Role::User, _) => turns.push(Turn { question: content, answer: String::new() }),
                (Role::Assistant, Some(turn)) => turn.answer = joined(&turn.answer, &without_marks(&content)),
                (Role::Assistant, None) | (Role::System | Role::Tool, _) => {}
            }
        }
        let last = turns.pop().map(|turn| turn.question).filter(|question| !question.trim().is_empty());
        let question =
            last.ok_or_else(|| ServerError::invalid("a chat with a corpus needs a message of the user", "messages"))?;
        Ok(Conversation { question, turns })
    }

    /// True if the client asks about the chat itself, which is not in the corpus.
    pub fn is_task(&self) -> bool {
        self.question.starts_with(TASK)
    }
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
        assert!(!prompt("What is a task?").is_task());
    }
}

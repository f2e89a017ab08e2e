//! The chat after which candidates are scored.
//!
//! The candidate is the beginning of the assistant's turn and the end of that turn is scored with it. Small models get one
//! worked example, models from 3B parameters on the instruction alone.

use calls::{Prompt, Stability};

use crate::Profile;

const COPY: &str = "Answer the question with a few words copied from the text.";
const EXAMPLE_TEXT: &str = "In 1931 Tom Hill opened a small bakery in Leeds with his sister Ann.";
const EXAMPLE_QUESTION: &str = "Who helped Tom Hill to open the bakery?";
const EXAMPLE_ANSWER: &str = "his sister Ann";

/// The chat with the shown sentences, data before the question.
pub fn chat(question: &str, shown: &str, profile: Profile) -> Prompt {
    let rules = match profile {
        Profile::Small => COPY.to_owned(),
        Profile::Paper => format!("{COPY} If the text does not hold the answer, say: {}", super::NOT_THERE),
    };
    let turn = |text: &str, question: &str| format!("Text: {text}\n\nQuestion: {question}");
    let prompt = match profile {
        Profile::Small => Prompt::new()
            .system(rules)
            .user(Stability::Static, turn(EXAMPLE_TEXT, EXAMPLE_QUESTION))
            .assistant(EXAMPLE_ANSWER),
        Profile::Paper => Prompt::new().system(rules),
    };
    prompt.user(Stability::Volatile, turn(shown, question))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_models_see_one_worked_example_and_large_ones_none() {
        let turns = |profile| chat("Who?", "Ann came.", profile).messages().len();
        assert_eq!((turns(Profile::Small), turns(Profile::Paper)), (4, 2));
        let last = chat("Who?", "Ann came.", Profile::Small).messages().pop().unwrap();
        assert_eq!(last.content, "Text: Ann came.\n\nQuestion: Who?");
    }
}

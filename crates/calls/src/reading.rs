//! The prompt by which a small model reads a short answer out of passages. Adapters are trained on exactly this wording, so
//! it is defined once; changing it requires a new adapter.

/// The name of the adapter that is trained on this prompt. A caller that has an adapter of this name is asked with it.
pub const ADAPTER: &str = "reader";

/// The system turn.
pub const SYSTEM: &str = "You answer questions from documents. Answer with the fewest words, copied from the text. \
    If the answer is not there, write: Not in the documents.";

/// The answer where the passages hold none.
pub const NOT_FOUND: &str = "Not in the documents.";

/// The user turn: passages, each with a line above it (title, or speaker and date; may be empty), then the question.
pub fn user<'a>(passages: impl IntoIterator<Item = (&'a str, &'a str)>, question: &str) -> String {
    let mut text = String::from("CONTEXT\n");
    for (number, (heading, passage)) in (1..).zip(passages) {
        let heading = format!("[{number}] {}", heading.trim());
        text.push_str(heading.trim_end());
        text.push('\n');
        text.push_str(passage.trim());
        text.push_str("\n\n");
    }
    text.push_str("QUESTION\n");
    text.push_str(question.trim());
    text
}

#[cfg(test)]
mod tests {
    use super::user;

    #[test]
    fn passages_are_numbered_under_their_headings() {
        let text = user([("Lisbon", "A city.\n"), ("", "A river.")], " Which city? ");
        assert_eq!(text, "CONTEXT\n[1] Lisbon\nA city.\n\n[2]\nA river.\n\nQUESTION\nWhich city?");
    }
}

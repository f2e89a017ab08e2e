//! Loop detection: over all of free text, and within one string of constrained output.
//!
//! Repetition between the strings of constrained output comes from the format: a list of `{"useful":false}` is natural,
//! and the format bounds its length. The detector is therefore reset at every quotation mark that opens or closes a
//! string.

use calls::OutputFormat;
use calls::loops::LoopDetector;

/// Monitors one reply.
#[derive(Debug)]
pub(crate) struct RepetitionGuard {
    detector: LoopDetector,
    scope: Scope,
}

/// Which tokens are counted.
#[derive(Debug)]
enum Scope {
    None,
    All,
    Strings(JsonString),
}

/// Tracks whether JSON text is inside a string.
#[derive(Debug, Default)]
struct JsonString {
    inside: bool,
    escaped: bool,
}

impl RepetitionGuard {
    /// A guard for a reply with this output format; without `stop_loops` it never fires.
    pub fn new(stop_loops: bool, output_format: &OutputFormat) -> RepetitionGuard {
        let scope = match output_format {
            // A choice is one of several texts given by the caller.
            OutputFormat::Choice(_) => Scope::None,
            _ if !stop_loops => Scope::None,
            OutputFormat::Text => Scope::All,
            OutputFormat::Json(_) => Scope::Strings(JsonString::default()),
        };
        RepetitionGuard { detector: LoopDetector::default(), scope }
    }

    /// Adds a token with its bytes; true if the reply is looping.
    pub fn push(&mut self, token: u32, bytes: &[u8]) -> bool {
        match &mut self.scope {
            Scope::None => false,
            Scope::All => self.detector.push(token).is_some(),
            Scope::Strings(string) => {
                if string.crosses_border(bytes) {
                    self.detector.reset();
                    return false;
                }
                string.inside && self.detector.push(token).is_some()
            }
        }
    }
}

impl JsonString {
    /// Advances over bytes; true if a string began or ended.
    fn crosses_border(&mut self, bytes: &[u8]) -> bool {
        let mut crossed = false;
        for byte in bytes {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = self.inside,
                b'"' => {
                    self.inside = !self.inside;
                    crossed = true;
                }
                _ => {}
            }
        }
        crossed
    }
}

#[cfg(test)]
mod natural;

#[cfg(test)]
mod tests {
    use calls::schema;

    use super::*;

    /// The number of words after which a text is found to loop; a word with the whitespace before it is one token.
    fn fires(output_format: &OutputFormat, text: &str) -> Option<usize> {
        let mut guard = RepetitionGuard::new(true, output_format);
        let ends = text.match_indices(' ').map(|(at, _)| at).chain([text.len()]);
        let mut start = 0;
        (1..).zip(ends).find_map(|(count, end)| {
            let word = &text[start..end];
            start = end;
            let token = word.bytes().fold(0u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
            guard.push(token, word.as_bytes()).then_some(count)
        })
    }

    fn json() -> OutputFormat {
        OutputFormat::Json(schema::object([("a", schema::string(100))]))
    }

    #[test]
    fn free_text_is_watched_whole() {
        assert_eq!(fires(&OutputFormat::Text, &" one two".repeat(16)), Some(33));
        assert_eq!(fires(&OutputFormat::Text, &" one two".repeat(15)), None);
        assert_eq!(fires(&OutputFormat::Text, &" \"one\" \"two\"".repeat(40)), Some(33), "quotation marks are text");
    }

    #[test]
    fn the_count_begins_anew_at_the_borders_of_strings() {
        assert_eq!(fires(&json(), &r#" {"useful": false},"#.repeat(200)), None);
        assert_eq!(fires(&json(), &r#" "no more than this""#.repeat(200)), None);
        assert!(fires(&json(), &format!("{{\"a\": \"so{}", " and on".repeat(16))).is_some());
        let split = format!("\"so{}\", \"so{}\"", " and on".repeat(12), " and on".repeat(12));
        assert_eq!(fires(&json(), &split), None, "two strings are not one");
        assert_eq!(fires(&json(), &" 0,".repeat(300)), None, "numbers are no string");
    }

    #[test]
    fn escaped_quotation_marks_are_within_a_string() {
        assert!(fires(&json(), &format!("\"so{}", r#" \"and\" on"#.repeat(16))).is_some());
        assert!(fires(&json(), &format!("\"so{}", r" \\ on".repeat(16))).is_some());
        // An escaped backslash does not escape the quotation mark after it.
        assert_eq!(fires(&json(), &format!("\"so \\\\\"{}", ", 1".repeat(64))), None);
    }

    #[test]
    fn choices_and_calls_without_the_guard_are_not_watched() {
        let choice = OutputFormat::Choice(vec!["la ".repeat(50)]);
        assert_eq!(fires(&choice, &" la".repeat(50)), None);
        let mut off = RepetitionGuard::new(false, &OutputFormat::Text);
        assert!((0..1000).all(|_| !off.push(1, b"la")));
    }
}

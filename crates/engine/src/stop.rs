//! Stop strings: where a reply ends, and which text may be streamed before that is known.

/// The stop strings of a reply, and how much of it has been streamed.
#[derive(Debug, Default)]
pub(crate) struct Stops {
    strings: Vec<String>,
    shown_bytes: usize,
    /// The index of the string that was found.
    found: Option<usize>,
}

impl Stops {
    /// Empty strings are ignored.
    pub fn new(mut strings: Vec<String>) -> Stops {
        strings.retain(|string| !string.is_empty());
        Stops { strings, shown_bytes: 0, found: None }
    }

    /// The text that can be streamed now, and true if a stop string follows it: the one that is complete first, of
    /// several the longest. It does not depend on how the text was cut into tokens.
    pub fn show<'a>(&mut self, text: &'a str) -> (&'a str, bool) {
        let new = &text[self.shown_bytes..];
        let find = |(index, string): (usize, &String)| {
            let start = new.find(string.as_str())?;
            Some((start + string.len(), start, index))
        };
        let stop = self.strings.iter().enumerate().filter_map(find).min();
        let end = stop.map_or_else(|| new.len() - self.held_bytes(new), |(_, start, _)| start);
        self.shown_bytes += end;
        self.found = stop.map(|(.., index)| index);
        (&new[..end], stop.is_some())
    }

    /// What can still be streamed of a text that is complete: all of it, or up to a stop string.
    pub fn show_rest<'a>(&mut self, text: &'a str) -> &'a str {
        let start = self.shown_bytes;
        if !self.show(text).1 {
            self.shown_bytes = text.len();
        }
        &text[start..self.shown_bytes]
    }

    /// The stop string that was found, if one was.
    pub fn found(&self) -> Option<&str> {
        self.found.map(|index| self.strings[index].as_str())
    }

    /// Bytes streamed so far.
    pub fn shown_bytes(&self) -> usize {
        self.shown_bytes
    }

    /// Length of the longest suffix of a text that a stop string may begin with.
    fn held_bytes(&self, text: &str) -> usize {
        let begins = |at: &usize| self.strings.iter().any(|string| string.starts_with(&text[*at..]));
        text.char_indices().map(|(at, _)| at).find(begins).map_or(0, |at| text.len() - at)
    }
}

#[cfg(test)]
mod tests {
    use super::Stops;

    /// Streams the pieces one after the other; the streamed text, and whether a stop string ended it.
    fn check(stops: &[&str], pieces: &[&str], shown: &[&str], stopped: bool) {
        let mut watch = Stops::new(stops.iter().map(ToString::to_string).collect());
        let (mut text, mut seen, mut ended) = (String::new(), Vec::new(), false);
        for piece in pieces {
            text.push_str(piece);
            let (piece, stop) = watch.show(&text);
            seen.push(piece.to_owned());
            ended = stop;
        }
        assert_eq!((seen, ended), (shown.iter().map(ToString::to_string).collect(), stopped), "{stops:?}");
        assert_eq!(watch.shown_bytes(), shown.concat().len());
        assert_eq!(watch.found().is_some(), stopped);
    }

    #[test]
    fn the_first_stop_string_of_the_text_is_known_however_it_is_cut() {
        let check = |stops: &[&str], text: &str, shown: &str, found: &str| {
            for size in 1..=text.len() {
                let mut watch = Stops::new(stops.iter().map(ToString::to_string).collect());
                let mut ends = (0..text.len()).step_by(size).map(|start| text.len().min(start + size));
                assert!(ends.any(|end| watch.show(&text[..end]).1), "{stops:?}");
                assert_eq!((&text[..watch.shown_bytes()], watch.found()), (shown, Some(found)), "{stops:?} by {size}");
            }
        };
        check(&["c", "bc", "b"], "abc", "a", "b");
        check(&["bcd", "c"], "abcd", "ab", "c");
        check(&["c", "bc"], "abcd", "a", "bc");
        check(&["abcd", "bc", "cd"], "xabcd", "xa", "bc");
        check(&["abcd", "e"], "xabcde", "x", "abcd");
    }

    #[test]
    fn the_rest_of_a_complete_text_ends_before_a_stop_string() {
        let check = |stops: [&str; 2], text: &str, whole: &str, rest: &str, found: Option<&str>| {
            let mut watch = Stops::new(stops.map(str::to_owned).to_vec());
            assert_eq!(watch.show(text), ("x", false));
            assert_eq!((watch.show_rest(whole), watch.found()), (rest, found), "{stops:?}");
            assert_eq!(watch.shown_bytes(), 1 + rest.len());
        };
        check(["ab!", "q"], "xab", "xab", "ab", None);
        // The last character was incomplete.
        check(["ab!", "b\u{fffd}"], "xab", "xab\u{fffd}", "a", Some("b\u{fffd}"));
        check(["ab!", "\u{fffd}"], "xab", "xab\u{fffd}", "ab", Some("\u{fffd}"));
        check(["ab!", "ab\u{fffd}"], "xab", "xab\u{fffd}", "", Some("ab\u{fffd}"));
        let mut stopped = Stops::new(vec!["b".into()]);
        assert_eq!((stopped.show("ab"), stopped.show_rest("abc")), (("a", true), ""));
    }

    #[test]
    fn a_stop_string_ends_the_text_however_it_is_cut() {
        check(&[], &["a", "b"], &["a", "b"], false);
        check(&[""], &["a"], &["a"], false);
        check(&["END"], &["one E", "ND two"], &["one ", ""], true);
        check(&["END"], &["one E", "N", "t"], &["one ", "", "ENt"], false);
        check(&["\n\n", "."], &["a\n", "b", ".c"], &["a", "\nb", ""], true);
        check(&["b", "ab"], &["xaby"], &["x"], true);
        check(&["aab"], &["aa", "ab"], &["", "a"], true);
        check(&["é!"], &["cafe", "é", "?"], &["cafe", "", "é?"], false);
    }
}

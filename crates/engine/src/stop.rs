//! Stop strings: where a reply ends, and which text may be streamed before that is known.

/// The stop strings of a reply, and how much of it has been streamed.
#[derive(Debug, Default)]
pub(crate) struct Stops {
    strings: Vec<String>,
    shown_bytes: usize,
}

impl Stops {
    /// Empty strings are ignored.
    pub fn new(mut strings: Vec<String>) -> Stops {
        strings.retain(|string| !string.is_empty());
        Stops { strings, shown_bytes: 0 }
    }

    /// The text that can be streamed now, and true if a stop string follows it.
    pub fn show<'a>(&mut self, text: &'a str) -> (&'a str, bool) {
        let new = &text[self.shown_bytes..];
        let stop = self.strings.iter().filter_map(|string| new.find(string.as_str())).min();
        let end = stop.unwrap_or_else(|| new.len() - self.held_bytes(new));
        self.shown_bytes += end;
        (&new[..end], stop.is_some())
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

//! Decodes text from tokens that may end inside a character.

/// Collects bytes and returns whole characters.
#[derive(Debug, Default)]
pub(crate) struct TextStream {
    text: String,
    /// The first bytes of an incomplete character.
    pending: Vec<u8>,
}

impl TextStream {
    /// Adds bytes and returns the characters that they complete. Invalid bytes become U+FFFD.
    pub fn push(&mut self, bytes: &[u8]) -> &str {
        let start = self.text.len();
        self.pending.extend_from_slice(bytes);
        let mut taken = 0;
        for chunk in self.pending.utf8_chunks() {
            self.text.push_str(chunk.valid());
            taken += chunk.valid().len();
            let rest = self.pending.len() - taken;
            // An incomplete character at the very end may still be completed.
            if chunk.invalid().len() == rest && is_unfinished(chunk.invalid()) {
                break;
            }
            if !chunk.invalid().is_empty() {
                self.text.push(char::REPLACEMENT_CHARACTER);
                taken += chunk.invalid().len();
            }
        }
        self.pending.drain(..taken);
        &self.text[start..]
    }

    /// The characters so far.
    pub fn so_far(&self) -> &str {
        &self.text
    }

    /// Ends the text: an incomplete character becomes U+FFFD.
    pub fn complete(&mut self) {
        if !self.pending.is_empty() {
            self.pending.clear();
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
    }

    /// The whole text, completed.
    pub fn finish(mut self) -> String {
        self.complete();
        self.text
    }
}

/// True for the first bytes of some character.
fn is_unfinished(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::TextStream;

    #[test]
    fn characters_come_out_whole_however_their_bytes_are_cut() {
        let text = "aé€😀\u{301}z";
        for size in 1..=text.len() {
            let mut stream = TextStream::default();
            let pieces: String = text.as_bytes().chunks(size).map(|bytes| stream.push(bytes).to_owned()).collect();
            assert_eq!((pieces.as_str(), stream.finish().as_str()), (text, text), "pieces of {size}");
        }
    }

    #[test]
    fn bytes_of_no_character_are_replaced() {
        let mut stream = TextStream::default();
        assert_eq!(stream.push(b"a\xffb"), "a\u{fffd}b");
        assert_eq!(stream.push(b"\xe2\x82"), "");
        assert_eq!(stream.push(b"x"), "\u{fffd}x");
        stream.push(b"\xf0\x9f");
        assert_eq!(stream.finish(), "a\u{fffd}b\u{fffd}x\u{fffd}");
    }
}

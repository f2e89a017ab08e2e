//! Keys of JSON objects that occur twice, which no grammar forbids, or hide behind escapes.
//!
//! Parsers disagree about the meaning of the former. The latter (`\\u0061` for `a`) are free keys to the grammar, though
//! they may equal a named one.

use std::collections::HashSet;

/// Reads JSON text and remembers the keys of each open object.
#[derive(Default)]
struct Reader {
    /// The keys of each open object, and none for an array.
    open: Vec<Option<HashSet<Vec<u8>>>>,
    /// True if the next string is a key.
    awaits_key: bool,
    /// The text of a started string, and whether it is a key.
    string: Option<(Vec<u8>, bool)>,
    escaped: bool,
    repeated: usize,
}

impl Reader {
    fn read(&mut self, byte: u8) {
        if let Some((text, _)) = &mut self.string {
            if self.escaped {
                self.escaped = false;
            } else if byte == b'"' {
                return self.end_string();
            } else {
                self.escaped = byte == b'\\';
            }
            text.push(byte);
            return;
        }
        match byte {
            b'"' => self.string = Some((Vec::new(), self.awaits_key)),
            b'{' => self.open.push(Some(HashSet::new())),
            b'[' => self.open.push(None),
            b'}' | b']' => drop(self.open.pop()),
            _ => {}
        }
        self.awaits_key = match byte {
            b'{' | b',' => matches!(self.open.last(), Some(Some(_))),
            b' ' | b'\n' | b'\r' | b'\t' => self.awaits_key,
            _ => false,
        };
    }

    fn end_string(&mut self) {
        let Some((text, true)) = self.string.take() else { return };
        self.awaits_key = false;
        let is_hidden = hides(&text);
        if let Some(Some(keys)) = self.open.last_mut()
            && (!keys.insert(unescaped(text)) || is_hidden)
        {
            self.repeated += 1;
        }
    }
}

/// Number of keys that repeat an earlier key of their object or hide behind escapes; the text may end anywhere.
pub(super) fn repeated(text: &[u8]) -> usize {
    let mut reader = Reader::default();
    text.iter().for_each(|byte| reader.read(*byte));
    reader.repeated
}

/// A key that a text ends in.
pub(crate) struct OpenKey {
    text: Vec<u8>,
    taken: HashSet<Vec<u8>>,
}

impl OpenKey {
    /// The key in which a text ends, if its object has keys already.
    pub fn of(text: &[u8]) -> Option<OpenKey> {
        let mut reader = Reader::default();
        text.iter().for_each(|byte| reader.read(*byte));
        let (text, true) = reader.string? else { return None };
        let taken = reader.open.pop()??;
        (!taken.is_empty()).then_some(OpenKey { text, taken })
    }

    /// True if the key would end within these bytes and repeat another.
    pub fn would_repeat(&self, bytes: &[u8]) -> bool {
        let Some(end) = bytes.iter().position(|byte| *byte == b'"') else { return false };
        let key = [&self.text, &bytes[..end]].concat();
        // An odd number of backslashes before the quote escapes it.
        let slashes = key.iter().rev().take_while(|byte| **byte == b'\\').count();
        slashes % 2 == 0 && self.taken.contains(&unescaped(key))
    }
}

/// True if a character is escaped by its number that needs no escape.
fn hides(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        let digits = rest.get(at + 2..at + 6).and_then(|digits| std::str::from_utf8(digits).ok());
        let number = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        if rest.get(at + 1) == Some(&b'u') && number.is_some_and(|number| number >= 0x20) {
            return true;
        }
        rest = rest.get(at + 2..).unwrap_or_default();
    }
    false
}

/// The value of a JSON string; its text if it is not valid.
fn unescaped(text: Vec<u8>) -> Vec<u8> {
    if !text.contains(&b'\\') {
        return text;
    }
    let quoted = [b"\"", &text[..], b"\""].concat();
    serde_json::from_slice::<String>(&quoted).map_or(text, String::into_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_compared_within_their_object_and_without_escapes() {
        for (text, want) in [
            (r#"{"a":1,"b":{"a":2},"c":[{"a":1},{"a":1}]}"#, 0),
            (r#"{"a":1,"a":2}"#, 1),
            (r#"{"a":1,"\u0061":2}"#, 1),
            (r#"{"\u0061":2,"\n":1,"\u0001":1,"\\\\u0061":1}"#, 1),
            (r#"[{"x":{"":1,"":2,"":3}}"#, 2),
            (r#"{"a":"a","b":["a","a"]}"#, 0),
            (r#"{"a\"":1,"a\"":2"#, 1),
            (r#"{"a":1,"a"#, 0),
        ] {
            assert_eq!(repeated(text.as_bytes()), want, "{text}");
        }
    }

    #[test]
    fn tokens_that_end_a_taken_key_are_known() {
        let open = OpenKey::of(br#"{"ab":1,"a"#).unwrap();
        assert!(open.would_repeat(b"b\":"));
        assert!(!open.would_repeat(b"\":") && !open.would_repeat(b"b") && !open.would_repeat(b"b\\\":"));
        assert!(OpenKey::of(br#"{"ab":"a"#).is_none());
        assert!(OpenKey::of(br#"{"a"#).is_none(), "the first key repeats none");
    }
}

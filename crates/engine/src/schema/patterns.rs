//! Regular expressions of schemas (ECMA 262) in the syntax of Rust's, where the two differ, and digits of divisors.

use std::fmt::Write;

use serde_json::Value;

/// White space and line ends (ECMA 262, 12.2 and 12.3), for a class. Rust's has U+0085 instead of U+FEFF.
const SPACE: &str = r"\t\n\x0b\x0c\r \u{a0}\u{1680}\u{2000}-\u{200a}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}\u{feff}";

/// The pattern with `\cX`, `\s` and `\S` written out; a `\S` within a class stays as it is.
pub(super) fn plain(pattern: &str) -> String {
    let (mut out, mut in_class) = (String::with_capacity(pattern.len()), false);
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            in_class = if in_class { c != ']' } else { c == '[' };
            out.push(c);
            continue;
        }
        let after = rest.clone().nth(1);
        match (rest.next(), after) {
            (Some('c'), Some(letter)) if letter.is_ascii_alphabetic() => {
                rest.next();
                let _ = write!(out, "\\x{:02x}", u32::from(letter) % 32);
            }
            (Some('s'), _) if in_class => out.push_str(SPACE),
            (Some('s'), _) => out.extend(["[", SPACE, "]"]),
            (Some('S'), _) if !in_class => out.extend(["[^", SPACE, "]"]),
            (escaped, _) => {
                out.push('\\');
                out.extend(escaped);
            }
        }
    }
    out
}

/// Digits behind the decimal point of a number as it is written shortest.
pub(super) fn digits_behind_point(number: &Value) -> usize {
    let text = number.as_f64().map_or_else(String::new, |number| number.to_string());
    text.split_once('.').map_or(0, |(_, digits)| digits.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn control_letters_and_white_space_are_written_out() {
        assert_eq!(plain(r"^\cC\cj$"), r"^\x03\x0a$");
        assert_eq!(plain(r"^a\s[b\s]\\s$"), format!(r"^a[{SPACE}][b{SPACE}]\\s$"));
        assert_eq!(plain(r"\S[\S\]\s]\"), format!(r"[^{SPACE}][\S\]{SPACE}]\"));
        for same in [r"^\d+\.\w$", "é[^]]", r"\c", r"\c1", ""] {
            assert_eq!(plain(same), same);
        }
    }

    #[test]
    fn digits_of_divisors_are_counted() {
        let count = |number| digits_behind_point(&number);
        assert_eq!([json!(0.123_456_789), json!(0.01), json!(7), json!("x")].map(count), [9, 2, 0, 0]);
    }
}

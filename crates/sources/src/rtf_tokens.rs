//! The tokens of Rich Text Format.

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Token<'a> {
    /// `{`
    Open,
    /// `}`
    Close,
    /// `\*`
    Optional,
    /// A control word or symbol without its backslash, with its number.
    Word(&'a str, Option<i32>),
    /// A byte of text.
    Byte(u8),
    /// A control word whose end is missing; always the last token.
    Cut,
}

/// The tokens of a file. The data of `\bin` are left out.
pub(crate) fn tokens(mut rest: &[u8]) -> impl Iterator<Item = Token<'_>> {
    std::iter::from_fn(move || {
        loop {
            let (&first, after) = rest.split_first()?;
            rest = after;
            match first {
                b'\r' | b'\n' | 0 => {}
                b'{' => return Some(Token::Open),
                b'}' => return Some(Token::Close),
                b'\\' => {
                    let token = control(&mut rest);
                    if token == Token::Cut {
                        rest = &[];
                    }
                    return Some(token);
                }
                byte => return Some(Token::Byte(byte)),
            }
        }
    })
}

fn control<'a>(rest: &mut &'a [u8]) -> Token<'a> {
    let Some((&first, after)) = rest.split_first() else { return Token::Cut };
    if first.is_ascii_alphabetic() {
        return word(rest);
    }
    *rest = after;
    match first {
        b'*' => Token::Optional,
        b'\r' | b'\n' => Token::Word("par", None),
        b'~' => Token::Word("~", None),
        b'_' => Token::Word("_", None),
        b'-' => Token::Word("-", None),
        b'\'' => {
            let digits = after.get(..2).and_then(|digits| str::from_utf8(digits).ok());
            let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) else { return Token::Cut };
            *rest = &after[2..];
            Token::Byte(byte)
        }
        byte => Token::Byte(byte),
    }
}

fn word<'a>(rest: &mut &'a [u8]) -> Token<'a> {
    let letters = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let (name, after) = rest.split_at(letters);
    let minus = usize::from(after.first() == Some(&b'-'));
    let digits = after[minus..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, after) = if digits > 0 { after.split_at(minus + digits) } else { after.split_at(0) };
    let number = str::from_utf8(number).ok().and_then(|number| number.parse().ok());
    *rest = after.strip_prefix(b" ").unwrap_or(after);
    // Letters are ASCII.
    let name = str::from_utf8(name).unwrap_or_default();
    if name == "bin" {
        let Some(after) = number.and_then(|bytes: i32| rest.get(usize::try_from(bytes).ok()?..)) else {
            return Token::Cut;
        };
        *rest = after;
    }
    Token::Word(name, number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_end_at_a_space_that_belongs_to_them() {
        let check = |rtf: &'static str, expect: &[Token<'static>]| {
            assert_eq!(tokens(rtf.as_bytes()).collect::<Vec<_>>(), expect);
        };
        check("\\b0 a", &[Token::Word("b", Some(0)), Token::Byte(b'a')]);
        check("\\u-10179?\\'e9", &[Token::Word("u", Some(-10179)), Token::Byte(b'?'), Token::Byte(0xE9)]);
        check("\\bin3 {}{}\\par\n", &[Token::Word("bin", Some(3)), Token::Close, Token::Word("par", None)]);
        check(
            "\\\\\\{\\par-x",
            &[Token::Byte(b'\\'), Token::Byte(b'{'), Token::Word("par", None), Token::Byte(b'-'), Token::Byte(b'x')],
        );
        check("{\\*\\x", &[Token::Open, Token::Optional, Token::Word("x", None)]);
        check("\\bin9 a", &[Token::Cut]);
        check("\\'e", &[Token::Cut]);
    }
}

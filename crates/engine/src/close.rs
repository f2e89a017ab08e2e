//! The shortest way from anywhere in an answer to its valid end.
//!
//! Where the form forces a text, its tokens are taken; elsewhere the way is searched byte by byte: an end if the form
//! allows it, else the first allowed of a fixed order of bytes in which closing marks come first. For the closed forms of [`calls::schema`] that is the shortest end
//! in bytes; any other form gets a valid one. `false` is tried before `true`: an answer cut short claims less.

use llguidance::Matcher;
use models::Tokenizer;

/// Bytes in the order in which they are tried.
const ORDER: &[u8] = b"\"]}:,{[0123456789ftn -.abcdeghijklmopqrsuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_/\\";

/// Longest way that is looked for.
const MOST_STEPS: usize = 4096;

/// One-byte tokens of a tokenizer, in the order in which they are tried.
#[derive(Clone)]
pub(crate) struct Closer {
    order: std::sync::Arc<[u32]>,
}

impl Closer {
    /// Finds the one-byte tokens.
    pub fn new(tokenizer: &Tokenizer) -> Result<Closer, String> {
        let ids = 0..u32::try_from(tokenizer.len()).map_err(|error| error.to_string())?;
        let mut of_byte = [None; 256];
        for id in ids {
            if let [byte] = tokenizer.bytes(id) {
                of_byte[usize::from(*byte)].get_or_insert(id);
            }
        }
        let rest = (0..=u8::MAX).filter(|byte| !ORDER.contains(byte));
        let order = ORDER.iter().copied().chain(rest).filter_map(|byte| of_byte[usize::from(byte)]).collect();
        Ok(Closer { order })
    }
}

/// The tokens that end the answer of `matcher`.
pub(crate) fn close(matcher: &Matcher, closer: &Closer) -> Result<Vec<u32>, String> {
    let mut matcher = matcher.deep_clone();
    let mut way = Vec::new();
    while !matcher.is_stopped() && !matcher.is_accepting().unwrap_or(false) {
        if way.len() >= MOST_STEPS {
            return Err(format!("it has no end within {MOST_STEPS} tokens"));
        }
        let forced = matcher.consume_ff_tokens();
        if !forced.is_empty() {
            way.extend(forced);
            continue;
        }
        let allowed = |token: &&u32| matcher.validate_tokens(&[**token]).is_ok_and(|count| count == 1);
        let token = *closer.order.iter().find(allowed).ok_or("it has no end that can be written byte by byte")?;
        matcher.consume_token(token).map_err(|error| error.to_string())?;
        way.push(token);
    }
    match matcher.get_error() {
        Some(error) => Err(error.lines().next().unwrap_or_default().to_owned()),
        None => Ok(way),
    }
}

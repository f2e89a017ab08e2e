//! The access token of the Hugging Face Hub.

use std::env;
use std::fmt;
use std::fs;
use std::path::PathBuf;

/// An access token; its text is in no debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// The token that the Hugging Face tools would use: `HF_TOKEN`, the file of `HF_TOKEN_PATH`, `HF_HOME/token`,
    /// `~/.cache/huggingface/token`.
    pub fn from_environment() -> Option<Token> {
        let named = |variable: &str| env::var_os(variable).filter(|value| !value.is_empty());
        if let Some(token) = named("HF_TOKEN") {
            return Token::new(&token.to_string_lossy());
        }
        let home = || {
            let cache = named("XDG_CACHE_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cache")));
            named("HF_HOME").map(PathBuf::from).or_else(|| Some(cache?.join("huggingface")))
        };
        let path = named("HF_TOKEN_PATH").map(PathBuf::from).or_else(|| Some(home()?.join("token")))?;
        Token::new(&fs::read_to_string(path).ok()?)
    }

    /// A token, without the white space around it; `None` for an empty one.
    pub fn new(text: &str) -> Option<Token> {
        let text = text.trim();
        (!text.is_empty()).then(|| Token(text.to_owned()))
    }

    /// The value of the header `Authorization`.
    #[cfg(feature = "hub")]
    pub(super) fn authorization(&self) -> String {
        format!("Bearer {}", self.0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::Token;

    #[test]
    fn a_token_is_trimmed_and_hidden_from_debug_output() {
        let token = Token::new(" hf_secret\n").unwrap();
        assert_eq!(token, Token::new("hf_secret").unwrap());
        assert_eq!(format!("{token:?}"), "Token(..)");
        assert_eq!(Token::new(" \n"), None);
    }
}

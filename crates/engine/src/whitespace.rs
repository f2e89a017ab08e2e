//! Bounds runs of white space in constrained output: a small model that has started one may continue it for long.

use std::cmp::Reverse;
use std::sync::Arc;

use models::Tokenizer;
use toktrie::SimpleVob;

/// The white space in a tokenizer's tokens.
pub(crate) struct Whitespace {
    tokenizer: Arc<Tokenizer>,
    /// The tokens that contain white space, the longest runs first.
    tokens: Vec<Token>,
}

struct Token {
    id: u32,
    /// Length of its leading run.
    leading: usize,
    /// Length of its longest run.
    longest: usize,
}

impl Whitespace {
    pub fn new(tokenizer: &Arc<Tokenizer>) -> Whitespace {
        let token = |id: u32| {
            let text = std::str::from_utf8(tokenizer.bytes(id)).ok()?;
            let longest = text.split(|c: char| !c.is_whitespace()).map(|run| run.chars().count()).max()?;
            (longest > 0).then(|| Token { id, leading: leading(text.chars()), longest })
        };
        let ids = 0..u32::try_from(tokenizer.len()).unwrap_or(u32::MAX);
        let mut tokens: Vec<Token> = ids.filter_map(token).collect();
        tokens.sort_by_key(|token| Reverse(token.longest));
        Whitespace { tokenizer: Arc::clone(tokenizer), tokens }
    }

    /// Removes from `mask` the tokens that would extend a run of length `run` beyond `most` characters, unless the
    /// grammar allows nothing else.
    pub fn forbid(&self, mask: &mut SimpleVob, run: usize, most: usize) {
        let may = self.tokens.iter().take_while(|token| run + token.longest > most);
        let does = may.filter(|token| run + token.leading > most || token.longest > most);
        let over: Vec<u32> = does.map(|token| token.id).filter(|id| mask.is_allowed(*id)).collect();
        if !over.is_empty() && over.len() < mask.num_set() {
            over.into_iter().for_each(|id| mask.disallow_token(id));
        }
    }

    /// The length of the run at the end of the text after one more token.
    pub fn run_after(&self, run: usize, token: u32) -> usize {
        let text = String::from_utf8_lossy(self.tokenizer.bytes(token));
        let trailing = leading(text.chars().rev());
        if trailing == text.chars().count() { run + trailing } else { trailing }
    }
}

/// Length of the leading run of white space.
fn leading(characters: impl Iterator<Item = char>) -> usize {
    characters.take_while(|c| c.is_whitespace()).count()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use calls::{OutputFormat, TenantId, schema};

    use super::*;
    use crate::grammar::Grammar;
    use crate::grammars::Grammars;

    /// A tokenizer with one token per byte.
    fn bytes() -> Arc<Tokenizer> {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/decoder/llama/tokenizer.json");
        Arc::new(Tokenizer::from_file(&golden).unwrap())
    }

    fn write(grammar: &mut Grammar, text: &str, tokenizer: &Tokenizer) {
        for token in tokenizer.encode(text).unwrap() {
            assert!(grammar.mask().unwrap().is_allowed(token), "{text:?}");
            grammar.accept(token).unwrap();
        }
    }

    #[test]
    fn a_run_of_white_space_ends() {
        let tokenizer = bytes();
        let grammars = Grammars::new(Arc::clone(&tokenizer), tokenizer.len(), vec![258]);
        let form = schema::object([("a", schema::string(60))]);
        let [space, letter] = [" ", "x"].map(|text| tokenizer.encode(text).unwrap()[0]);
        let written = |most: usize, text: &str| {
            let mut grammar = grammars
                .grammar(TenantId::LOCAL, &OutputFormat::Json(form.clone()))
                .unwrap()
                .unwrap()
                .with_max_whitespace(most);
            write(&mut grammar, &format!("{{\"a\":\"{text}"), &tokenizer);
            let mask = grammar.mask().unwrap();
            (mask.is_allowed(space), mask.is_allowed(letter))
        };
        assert_eq!(written(3, "  "), (true, true));
        assert_eq!(written(3, "   "), (false, true));
        assert_eq!(written(3, "   x"), (true, true));
        assert_eq!(written(3, "   x   "), (false, true));
        assert_eq!(written(0, &" ".repeat(40)), (true, true), "there is no limit");
    }

    #[test]
    fn white_space_that_the_grammar_requires_is_allowed() {
        let tokenizer = bytes();
        let grammars = Grammars::new(Arc::clone(&tokenizer), tokenizer.len(), vec![258]);
        let options = OutputFormat::Choice(vec!["a          b".into(), "a c".into()]);
        let mut grammar = grammars.grammar(TenantId::LOCAL, &options).unwrap().unwrap().with_max_whitespace(3);
        write(&mut grammar, "a          b", &tokenizer);
        assert!(grammar.is_complete());
    }

    #[test]
    fn long_runs_within_one_token_count() {
        let mut mask = SimpleVob::alloc(5);
        (0..5).for_each(|id| mask.set(id, true));
        let token = |id, leading, longest| Token { id, leading, longest };
        let tokens = vec![token(1, 20, 20), token(2, 1, 9), token(3, 2, 2), token(4, 1, 1)];
        let whitespace = Whitespace { tokenizer: bytes(), tokens };
        whitespace.forbid(&mut mask, 7, 8);
        assert_eq!(mask.iter().collect::<Vec<_>>(), [0, 4]);
    }
}

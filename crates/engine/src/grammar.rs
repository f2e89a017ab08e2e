//! Answers that always have the form that was asked for.
//!
//! A [`Grammar`] says before each token which tokens keep the answer on a path to a valid end. It fails closed: a form
//! that cannot be compiled is refused when the call is submitted. White space between JSON tokens is fixed, since a small
//! model given the choice can write blanks for ever.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use calls::Shape;
use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use models::Tokenizer;
use serde_json::{Value, json};
use toktrie::{SimpleVob, TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv};

use crate::blanks::Blanks;
use crate::close::{Closer, close};
use crate::quote::{self, quotes};

/// Compiles and keeps the grammars of one tokenizer.
pub struct Grammars {
    tokenizer: Arc<Tokenizer>,
    vocab: usize,
    eos: u32,
    /// Made for the first form, since it takes as long as reading the tokenizer.
    workshop: OnceLock<Result<Workshop, String>>,
    compiled: Mutex<HashMap<String, Grammar>>,
}

/// What grammars are made with.
struct Workshop {
    factory: ParserFactory,
    closer: Closer,
    blanks: Arc<Blanks>,
}

/// Where an answer stands within its form.
#[derive(Clone)]
pub struct Grammar {
    matcher: Matcher,
    closer: Closer,
    blanks: Arc<Blanks>,
    /// Blanks at the end of what has been accepted, and how many there may be; 0 for any number.
    run: usize,
    most_blanks: usize,
    eos: u32,
    /// Tokens of the shortest answer.
    shortest: usize,
}

impl Grammars {
    /// The grammars of a tokenizer; `eos` is what ends a complete answer.
    pub fn new(tokenizer: Arc<Tokenizer>, vocab: usize, eos: u32) -> Grammars {
        Grammars { tokenizer, vocab, eos, workshop: OnceLock::new(), compiled: Mutex::default() }
    }

    /// The grammar of a form; `None` for free text.
    ///
    /// # Errors
    /// A sentence that says why the form cannot be enforced, or no form can with this tokenizer.
    pub fn grammar(&self, shape: &Shape) -> Result<Option<Grammar>, String> {
        let (key, top) = match shape {
            Shape::Text => return Ok(None),
            Shape::Choice(options) => choice(options)?,
            // A text is quoted from once or twice, and its grammar is large: it is not kept.
            Shape::Json(schema) if quotes(schema) => {
                return self.compile(TopLevelGrammar::from_lark(quote::lark(schema)?)).map(Some);
            }
            Shape::Json(schema) => json_schema(schema)?,
        };
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(grammar) = compiled.get(&key) {
            return Ok(Some(grammar.clone()));
        }
        let grammar = self.compile(top)?;
        // Ids that differ from call to call make ever new forms: keep the recent ones.
        if compiled.len() >= MOST_COMPILED {
            compiled.clear();
        }
        compiled.insert(key, grammar.clone());
        Ok(Some(grammar))
    }

    fn compile(&self, top: TopLevelGrammar) -> Result<Grammar, String> {
        let workshop = self.workshop.get_or_init(|| Workshop::new(&self.tokenizer, self.vocab, self.eos));
        let Workshop { factory, closer, blanks } = workshop.as_ref().map_err(String::clone)?;
        let matcher = Matcher::new(factory.create_parser(top));
        if let Some(error) = matcher.get_error() {
            return Err(error.lines().next().unwrap_or_default().to_owned());
        }
        let (closer, blanks) = (closer.clone(), Arc::clone(blanks));
        let mut grammar = Grammar { matcher, closer, blanks, run: 0, most_blanks: 0, eos: self.eos, shortest: 0 };
        grammar.shortest = grammar.closing()?.len();
        Ok(grammar)
    }
}

impl Workshop {
    fn new(tokenizer: &Arc<Tokenizer>, vocab: usize, eos: u32) -> Result<Workshop, String> {
        let env: TokEnv = Arc::new(Env::new(Arc::clone(tokenizer), vocab, eos)?);
        let mut factory = ParserFactory::new_simple(&env).map_err(|error| error.to_string())?;
        factory.quiet();
        Ok(Workshop { factory, closer: Closer::new(tokenizer)?, blanks: Arc::new(Blanks::new(tokenizer)) })
    }
}

const MOST_COMPILED: usize = 256;

impl Grammar {
    /// The same form without runs of more than so many blanks, where it leaves a choice; 0 lets them be.
    #[must_use]
    pub fn with_blanks(self, most_blanks: usize) -> Grammar {
        Grammar { most_blanks, ..self }
    }

    /// Tokens of the shortest answer.
    pub fn shortest(&self) -> usize {
        self.shortest
    }

    /// The token that ends an answer which could go on.
    pub fn eos(&self) -> u32 {
        self.eos
    }

    /// The tokens that may come next.
    ///
    /// # Errors
    /// If the grammar has failed; the answer must then be given up.
    pub fn mask(&mut self) -> Result<SimpleVob, String> {
        let mut mask = self.matcher.compute_mask_or_eos().map_err(|error| error.to_string())?;
        if self.most_blanks > 0 {
            self.blanks.forbid(&mut mask, self.run, self.most_blanks);
        }
        Ok(mask)
    }

    /// Takes a token that the mask allows.
    ///
    /// # Errors
    /// If it was not allowed.
    pub fn accept(&mut self, token: u32) -> Result<(), String> {
        self.matcher.consume_token(token).map_err(|error| error.to_string())?;
        self.run = self.blanks.run_after(self.run, token);
        Ok(())
    }

    /// True if the answer is complete and nothing may follow.
    pub fn is_complete(&self) -> bool {
        self.matcher.is_stopped()
    }

    /// Tokens that must come next, if the form leaves no choice of text. The model may still cut that text into other
    /// tokens.
    pub fn forced(&mut self) -> Vec<u32> {
        self.matcher.compute_ff_tokens()
    }

    /// The rest of the answer, if the form leaves no choice about it from here to its end.
    pub fn forced_end(&mut self) -> Option<Vec<u32>> {
        // Most tokens leave a choice, and a matcher over a long text takes milliseconds to copy.
        if self.matcher.compute_ff_tokens().is_empty() {
            return None;
        }
        let mut matcher = self.matcher.deep_clone();
        let mut end = Vec::new();
        while !matcher.is_stopped() {
            let forced = matcher.consume_ff_tokens();
            if forced.is_empty() {
                return None;
            }
            end.extend(forced);
        }
        matcher.get_error().is_none().then_some(end)
    }

    /// How many of these tokens may follow one another from here.
    pub fn allowed_of(&mut self, tokens: &[u32]) -> usize {
        if tokens.is_empty() { 0 } else { self.matcher.validate_tokens(tokens).unwrap_or(0) }
    }

    /// Tokens that lead from here to a valid end, about as few as possible; none if it is complete.
    ///
    /// # Errors
    /// If no end is in sight.
    pub fn closing(&self) -> Result<Vec<u32>, String> {
        close(&self.matcher, &self.closer)
    }
}

fn choice(options: &[String]) -> Result<(String, TopLevelGrammar), String> {
    if options.is_empty() || options.iter().any(String::is_empty) {
        return Err("a choice needs options, and none of them empty".into());
    }
    let rule: Vec<String> = options.iter().map(|option| Value::from(option.as_str()).to_string()).collect();
    let lark = format!("start: {}", rule.join(" | "));
    Ok((format!("choice {lark}"), TopLevelGrammar::from_lark(lark)))
}

fn json_schema(schema: &Value) -> Result<(String, TopLevelGrammar), String> {
    let mut schema = schema.clone();
    let object = schema.as_object_mut().ok_or("a JSON schema is an object")?;
    object.insert("x-guidance".into(), json!({ "whitespace_flexible": false }));
    Ok((format!("json {schema}"), TopLevelGrammar::from_json_schema(schema)))
}

/// Our tokenizer as llguidance sees it.
struct Env {
    tokenizer: Arc<Tokenizer>,
    trie: TokTrie,
}

impl Env {
    fn new(tokenizer: Arc<Tokenizer>, vocab: usize, eos: u32) -> Result<Env, String> {
        let size = u32::try_from(vocab).map_err(|error| error.to_string())?;
        let mut words: Vec<Vec<u8>> = (0..size).map(|id| tokenizer.bytes(id).to_vec()).collect();
        for special in tokenizer.specials().filter(|special| *special < size) {
            words[special as usize].insert(0, TokTrie::SPECIAL_TOKEN_MARKER);
        }
        Ok(Env { trie: TokTrie::from(&TokRxInfo::new(size, eos), &words), tokenizer })
    }
}

impl TokenizerEnv for Env {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.trie.tokenize_with_greedy_fallback(bytes, |text| self.tokenizer.encode(text).unwrap_or_default())
    }
}

//! Constrained decoding: replies that always have the requested output format.
//!
//! A [`Grammar`] gives a logits mask before each token, and the shortest completion of the reply so far. It fails
//! closed: a format that cannot be compiled is refused when the call is submitted. White space between JSON tokens is
//! fixed, since a small model given the choice can generate it without end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use calls::{Shape, TenantId};
use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use models::Tokenizer;
use serde_json::{Value, json};
use toktrie::{SimpleVob, TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv};

use crate::completion::{Closer, ParseState};
use crate::quote::{self, quotes};
use crate::schema::{self, Check};
use crate::whitespace::Whitespace;

/// Compiles and caches the grammars of one tokenizer.
pub struct Grammars {
    tokenizer: Arc<Tokenizer>,
    vocab: usize,
    eos: u32,
    /// Built for the first constrained call, since it takes as long as reading the tokenizer.
    workshop: OnceLock<Result<Workshop, String>>,
    /// Cached per tenant: the time to compile a format must not reveal that another tenant has used it.
    compiled: Mutex<HashMap<TenantId, HashMap<String, Grammar>>>,
}

/// The inputs of grammar compilation.
struct Workshop {
    factory: ParserFactory,
    env: Arc<Env>,
    whitespace: Arc<Whitespace>,
}

/// The parse state of one reply.
#[derive(Clone)]
pub struct Grammar {
    matcher: Matcher,
    /// The matcher's state in our chart, for the distance to the end.
    state: ParseState,
    closer: Arc<Closer>,
    env: Arc<Env>,
    whitespace: Arc<Whitespace>,
    /// Length of the white-space run at the end of the accepted text, and its maximum; 0 for no limit.
    run: usize,
    max_whitespace: usize,
    eos: u32,
    /// Tokens of the shortest reply.
    shortest: usize,
    /// Validation of what the grammar does not enforce.
    check: Option<Arc<Check>>,
}

impl Grammars {
    /// The grammars of a tokenizer; `eos` ends a complete reply.
    pub fn new(tokenizer: Arc<Tokenizer>, vocab: usize, eos: u32) -> Grammars {
        Grammars { tokenizer, vocab, eos, workshop: OnceLock::new(), compiled: Mutex::default() }
    }

    /// The grammar of an output format for a call of this tenant; `None` for free text.
    ///
    /// # Errors
    /// A sentence that states why the format cannot be enforced, or none can with this tokenizer.
    pub fn grammar(&self, tenant: TenantId, shape: &Shape) -> Result<Option<Grammar>, String> {
        let key = match shape {
            Shape::Text => return Ok(None),
            // A text is quoted from once or twice, and its grammar is large: it is not cached.
            Shape::Json(schema) if quotes(schema) => {
                return self.compile(TopLevelGrammar::from_lark(quote::lark(schema)?)).map(Some);
            }
            Shape::Choice(options) => format!("choice {}", choice(options)?),
            Shape::Json(schema) => format!("json {schema}"),
        };
        let mut by_tenant = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let compiled = by_tenant.entry(tenant).or_default();
        if let Some(grammar) = compiled.get(&key) {
            return Ok(Some(grammar.clone()));
        }
        let grammar = match shape {
            Shape::Json(schema) => self.compile_json(schema)?,
            Shape::Choice(options) => self.compile(TopLevelGrammar::from_lark(choice(options)?))?,
            Shape::Text => return Ok(None),
        };
        // Ids that differ from call to call create ever new formats: keep the recent ones.
        if compiled.len() >= MAX_COMPILED {
            compiled.clear();
        }
        compiled.insert(key, grammar.clone());
        Ok(Some(grammar))
    }

    /// The validation that a complete reply must pass besides the grammar; `None` if the grammar enforces the whole
    /// format.
    ///
    /// # Errors
    /// As [`Self::grammar`].
    pub fn check(&self, tenant: TenantId, shape: &Shape) -> Result<Option<Arc<Check>>, String> {
        match shape {
            Shape::Json(schema) if !quotes(schema) => {
                Ok(self.grammar(tenant, shape)?.and_then(|grammar| grammar.check))
            }
            _ => Ok(None),
        }
    }

    /// The grammar of a JSON schema; the rest is validated by a [`Check`].
    fn compile_json(&self, schema: &Value) -> Result<Grammar, String> {
        if !schema.is_object() {
            return Err("a JSON schema is an object".into());
        }
        let mut prepared = schema::prepare(schema)?;
        let mut compiled = self.compile(guided(&prepared.schema, false));
        // `oneOf` is enforced only if its alternatives are plainly disjoint.
        if compiled.as_ref().is_err_and(|error| error.contains("oneOf")) {
            prepared.unchecked.push("oneOf".into());
            compiled = self.compile(guided(&prepared.schema, true));
        }
        let mut grammar = compiled.map_err(|error| self.with_place(&prepared.schema, error))?;
        if !prepared.unchecked.is_empty() {
            grammar.check = Some(Arc::new(Check::new(schema, &prepared.unchecked)?));
        }
        Ok(grammar)
    }

    /// An error with the location of the innermost schema that causes it.
    fn with_place(&self, schema: &Value, error: String) -> String {
        let definitions = schema.get("$defs");
        let (mut place, mut error, mut here, mut tries) = (String::new(), error, schema, MAX_TRIES);
        'inward: loop {
            for (path, child) in children(here) {
                let Some(alone) = child.as_object().filter(|_| tries > 0) else { continue };
                tries -= 1;
                let mut alone = alone.clone();
                if let Some(definitions) = definitions {
                    alone.insert("$defs".into(), definitions.clone());
                }
                if let Err(cause) = self.compile(guided(&Value::Object(alone), true)) {
                    (place, error, here) = (place + &path, cause, child);
                    continue 'inward;
                }
            }
            return if place.is_empty() { error } else { format!("{place}: {error}") };
        }
    }

    fn compile(&self, top: TopLevelGrammar) -> Result<Grammar, String> {
        let workshop = self.workshop.get_or_init(|| Workshop::new(&self.tokenizer, self.vocab, self.eos));
        let Workshop { factory, env, whitespace } = workshop.as_ref().map_err(String::clone)?;
        let parser = factory.create_parser(top).map_err(|error| summary(&error.to_string()))?;
        let closer = Arc::new(Closer::new(parser.parser.grammar())?);
        let matcher = Matcher::new(Ok(parser));
        if let Some(error) = matcher.get_error() {
            return Err(summary(&error));
        }
        let mut grammar = Grammar {
            matcher,
            state: closer.begin(),
            closer,
            env: Arc::clone(env),
            whitespace: Arc::clone(whitespace),
            run: 0,
            max_whitespace: 0,
            eos: self.eos,
            shortest: 0,
            check: None,
        };
        grammar.shortest = grammar.closing()?.len();
        Ok(grammar)
    }
}

impl Workshop {
    fn new(tokenizer: &Arc<Tokenizer>, vocab: usize, eos: u32) -> Result<Workshop, String> {
        let env = Arc::new(Env::new(Arc::clone(tokenizer), vocab, eos)?);
        let shared: TokEnv = Arc::<Env>::clone(&env);
        let mut factory = ParserFactory::new_simple(&shared).map_err(|error| error.to_string())?;
        factory.quiet();
        Ok(Workshop { factory, env, whitespace: Arc::new(Whitespace::new(tokenizer)) })
    }
}

const MAX_COMPILED: usize = 256;

/// Maximum schemas compiled to locate the cause of an error.
const MAX_TRIES: usize = 64;

impl Grammar {
    /// The same grammar with a maximum length of white-space runs; 0 for no limit.
    #[must_use]
    pub fn with_max_whitespace(self, max_whitespace: usize) -> Grammar {
        Grammar { max_whitespace, ..self }
    }

    /// Tokens of the shortest reply.
    pub fn shortest(&self) -> usize {
        self.shortest
    }

    /// The token that ends a reply which could continue.
    pub fn eos(&self) -> u32 {
        self.eos
    }

    /// The tokens that may come next.
    ///
    /// # Errors
    /// If the grammar has failed; the reply must then be aborted.
    pub fn mask(&mut self) -> Result<SimpleVob, String> {
        let mut mask = self.matcher.compute_mask_or_eos().map_err(|error| error.to_string())?;
        if self.max_whitespace > 0 {
            self.whitespace.forbid(&mut mask, self.run, self.max_whitespace);
        }
        Ok(mask)
    }

    /// Accepts a token that the mask allows.
    ///
    /// # Errors
    /// If it was not allowed.
    pub fn accept(&mut self, token: u32) -> Result<(), String> {
        self.closer.read(&mut self.state, self.env.tokenizer.bytes(token));
        self.consume(token)
    }

    /// Accepts a token that the mask allows if the reply can be closed within `left` tokens after it; otherwise returns
    /// false and changes nothing.
    ///
    /// # Errors
    /// If the token was not allowed.
    pub fn accept_within(&mut self, token: u32, left: usize) -> Result<bool, String> {
        let before = self.state.mark();
        let known = self.closer.read(&mut self.state, self.env.tokenizer.bytes(token));
        let distance = if known { self.closer.distance(&mut self.state) } else { None };
        // A completion never has more tokens than bytes.
        let fits = match distance {
            Some(bytes) if bytes <= left => true,
            Some(_) => {
                let mut after = self.clone();
                after.consume(token)?;
                after.closing().is_ok_and(|end| end.len() <= left)
            }
            None => false,
        };
        if fits {
            self.consume(token)?;
        } else {
            self.state.restore(before);
        }
        Ok(fits)
    }

    fn consume(&mut self, token: u32) -> Result<(), String> {
        self.matcher.consume_token(token).map_err(|error| error.to_string())?;
        self.run = self.whitespace.run_after(self.run, token);
        Ok(())
    }

    /// True if the reply is complete and nothing may follow.
    pub fn is_complete(&self) -> bool {
        self.matcher.is_stopped()
    }

    /// Tokens that must come next, if the grammar forces the text. The model may still split that text into other
    /// tokens.
    pub fn forced(&mut self) -> Vec<u32> {
        self.matcher.compute_ff_tokens()
    }

    /// The rest of the reply, if the grammar forces it up to its end.
    pub fn forced_end(&mut self) -> Option<Vec<u32>> {
        // At most tokens there is a choice, and copying a matcher over a long text takes milliseconds.
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

    /// How many of these tokens may follow one another.
    pub fn allowed_of(&mut self, tokens: &[u32]) -> usize {
        if tokens.is_empty() { 0 } else { self.matcher.validate_tokens(tokens).unwrap_or(0) }
    }

    /// The tokens of the shortest completion; none if the reply is complete.
    ///
    /// # Errors
    /// If no completion has been found.
    pub fn closing(&self) -> Result<Vec<u32>, String> {
        let bytes = self.closer.completion(&mut self.state.clone()).ok_or("no completion was found")?;
        let tokens = self.env.tokens(&bytes)?;
        let mut matcher = self.matcher.clone();
        let taken = matcher.consume_tokens(&tokens);
        if taken.is_ok() && (matcher.is_stopped() || matcher.is_accepting().unwrap_or(false)) {
            return Ok(tokens);
        }
        Err(format!("its shortest completion {:?} is not accepted", String::from_utf8_lossy(&bytes)))
    }
}

/// The first line of llguidance's error, with the cause of an error in a regular expression that it gives further down.
fn summary(error: &str) -> String {
    let first = error.lines().next().unwrap_or_default();
    let cause = error.lines().find_map(|line| line.strip_prefix("error: "));
    cause.map_or_else(|| first.to_owned(), |cause| format!("{first} {cause}"))
}

/// The grammar of a choice.
fn choice(options: &[String]) -> Result<String, String> {
    if options.is_empty() || options.iter().any(String::is_empty) {
        return Err("a choice needs options, and none of them empty".into());
    }
    let rule: Vec<String> = options.iter().map(|option| Value::from(option.as_str()).to_string()).collect();
    Ok(format!("start: {}", rule.join(" | ")))
}

/// A schema for compact JSON; `coerced` lets several alternatives of a `oneOf` match.
fn guided(schema: &Value, coerced: bool) -> TopLevelGrammar {
    let mut schema = schema.clone();
    if let Some(object) = schema.as_object_mut() {
        object.insert("x-guidance".into(), json!({ "whitespace_flexible": false, "coerce_one_of": coerced }));
    }
    TopLevelGrammar::from_json_schema(schema)
}

/// The schemas directly within a schema, with the paths to them.
fn children(schema: &Value) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    for (key, value) in schema.as_object().into_iter().flatten() {
        match (key.as_str(), value) {
            ("properties" | "patternProperties" | "$defs", Value::Object(fields)) => {
                found.extend(fields.iter().map(|(name, value)| (format!("/{key}/{name}"), value)));
            }
            ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(values)) => {
                found.extend(values.iter().enumerate().map(|(number, value)| (format!("/{key}/{number}"), value)));
            }
            ("items" | "additionalItems" | "additionalProperties", Value::Object(_)) => {
                found.push((format!("/{key}"), value));
            }
            _ => {}
        }
    }
    found
}

/// Our tokenizer through llguidance's interface.
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

    /// Tokens with exactly these bytes: the tokenizer's own where possible, otherwise the longest that match.
    fn tokens(&self, bytes: &[u8]) -> Result<Vec<u32>, String> {
        let own = std::str::from_utf8(bytes).ok().and_then(|text| self.tokenizer.encode(text).ok()).unwrap_or_default();
        let is_same = |tokens: &[u32]| tokens.iter().flat_map(|token| self.tokenizer.bytes(*token)).eq(bytes);
        if own.len() <= bytes.len()
            && own.iter().all(|token| (*token as usize) < self.trie.vocab_size())
            && is_same(&own)
        {
            return Ok(own);
        }
        let longest = self.trie.greedy_tokenize(bytes);
        if is_same(&longest) { Ok(longest) } else { Err("the tokenizer has no token for one of its bytes".into()) }
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

//! Constrained decoding: replies that always have the requested output format.
//!
//! A [`Grammar`] gives a logits mask before each token, and the shortest completion of the reply so far. It fails
//! closed: a format that cannot be compiled is refused when the call is submitted. Where the format has keywords that no
//! grammar enforces, a token is accepted only if a completion is known that makes the reply valid. White space between JSON tokens is
//! fixed, since a small model given the choice can generate it without end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use calls::{OutputFormat, TenantId};
use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use models::Tokenizer;
use serde_json::{Value, json};
use toktrie::{SimpleVob, TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv};

use crate::completion::{Closer, Condition, Effort, ParseState};
use crate::quote::{self, quotes};
use crate::schema::{self, Check, Extent, Prepared};
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
    /// Judges what the grammar does not enforce.
    check: Option<Arc<Check>>,
    /// With a check: the accepted text, and a completion that makes it valid.
    text: Vec<u8>,
    ending: Option<Vec<u8>>,
}

/// Whether a token was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceptance {
    Accepted,
    /// The reply could not be closed within its limit after it.
    NoRoom,
    /// No valid reply is known that begins with it.
    Invalid,
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
    pub fn grammar(&self, tenant: TenantId, output_format: &OutputFormat) -> Result<Option<Grammar>, String> {
        let key = match output_format {
            OutputFormat::Text => return Ok(None),
            // A text is quoted from once or twice, and its grammar is large: it is not cached.
            OutputFormat::Json(schema) if quotes(schema) => {
                return self.compile(TopLevelGrammar::from_lark(quote::lark(schema)?)).map(Some);
            }
            OutputFormat::Choice(options) => format!("choice {}", choice(options)?),
            OutputFormat::Json(schema) => format!("json {schema}"),
        };
        let mut by_tenant = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let compiled = by_tenant.entry(tenant).or_default();
        if let Some(grammar) = compiled.get(&key) {
            return Ok(Some(grammar.clone()));
        }
        let grammar = match output_format {
            OutputFormat::Json(schema) => self.compile_json(schema)?,
            OutputFormat::Choice(options) => self.compile(TopLevelGrammar::from_lark(choice(options)?))?,
            OutputFormat::Text => return Ok(None),
        };
        // Ids that differ from call to call create ever new formats: keep the recent ones.
        if compiled.len() >= MAX_COMPILED {
            compiled.clear();
        }
        compiled.insert(key, grammar.clone());
        Ok(Some(grammar))
    }

    /// The grammar of a JSON schema, with a [`Check`] for what it does not enforce.
    fn compile_json(&self, schema: &Value) -> Result<Grammar, String> {
        let any = json!({});
        let schema = if schema == &json!(true) { &any } else { schema };
        if !schema.is_object() {
            return Err("a JSON schema is an object".into());
        }
        let (prepared, mut grammar) = self.compile_prepared(schema)?;
        let Some(check) = Check::new(schema, &prepared)? else { return Ok(grammar) };
        let keywords = if check.validates() { check.keywords().to_owned() } else { "unique keys".into() };
        grammar.check = Some(Arc::new(check));
        grammar.ending = grammar.find_ending(&[], COMPILE_EFFORT);
        if grammar.ending.is_none() {
            return Err(format!("no valid reply was found (searched because no grammar enforces {keywords})"));
        }
        grammar.shortest = grammar.closing()?.len();
        Ok(grammar)
    }

    /// The grammar of as much of a schema as can be enforced.
    fn compile_prepared(&self, schema: &Value) -> Result<(Prepared, Grammar), String> {
        let mut first = None;
        for extent in [Extent::Full, Extent::Reduced] {
            let mut prepared = schema::prepare(schema, extent)?;
            let mut compiled = self.compile(guided(&prepared.schema, false));
            // Perhaps because of a `oneOf`, which is enforced only if its alternatives are plainly disjoint.
            if compiled.is_err() && !prepared.alternatives.is_empty() {
                compiled = self.compile(guided(&prepared.schema, true));
                prepared.unchecked.append(&mut prepared.alternatives);
            }
            match compiled {
                Ok(grammar) => return Ok((prepared, grammar)),
                Err(error) => {
                    first.get_or_insert((prepared, error));
                }
            }
        }
        let (prepared, error) = first.ok_or("no extent was tried")?;
        Err(self.with_place(&prepared.schema, error))
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
            text: Vec::new(),
            ending: None,
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

/// Effort of the search for a first valid reply.
const COMPILE_EFFORT: Effort = Effort { tries: 10_000 };
/// The same after a token.
const TOKEN_EFFORT: Effort = Effort { tries: 1_000 };

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

    /// True if tokens that the mask allows may prove [`Acceptance::Invalid`]: another must then be drawn.
    pub fn is_validated(&self) -> bool {
        self.check.as_ref().is_some_and(|check| check.validates())
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
        let Some(check) = &self.check else { return Ok(mask) };
        if mask.is_allowed(self.eos) && check.violations(&self.text) != 0 {
            mask.disallow_token(self.eos);
        }
        if let Some(key) = check.open_key(&self.text) {
            let bytes = |token: u32| self.env.tokenizer.bytes(token);
            let repeats: Vec<u32> = mask.iter().filter(|token| key.would_repeat(bytes(*token))).collect();
            repeats.into_iter().for_each(|token| mask.disallow_token(token));
        }
        Ok(mask)
    }

    /// Accepts a token that the mask allows.
    ///
    /// # Errors
    /// If it was not allowed.
    pub fn accept(&mut self, token: u32) -> Result<(), String> {
        let bytes = self.env.tokenizer.bytes(token);
        self.closer.read(&mut self.state, bytes);
        if self.check.is_some() {
            self.text.extend_from_slice(bytes);
            self.ending = self.ending.take().and_then(|ending| ending.strip_prefix(bytes).map(<[u8]>::to_vec));
        }
        self.consume(token)
    }

    /// Accepts a token that the mask allows if the reply can be closed validly within `left` tokens after it; otherwise
    /// changes nothing.
    ///
    /// # Errors
    /// If the token was not allowed.
    pub fn accept_within(&mut self, token: u32, left: usize) -> Result<Acceptance, String> {
        let (before, length) = (self.state.mark(), self.text.len());
        let bytes = self.env.tokenizer.bytes(token);
        let distance =
            if self.closer.read(&mut self.state, bytes) { self.closer.distance(&mut self.state) } else { None };
        let (mut acceptance, mut ending) = (Acceptance::NoRoom, None);
        if let Some(mut distance) = distance {
            acceptance = Acceptance::Accepted;
            if self.check.is_some() {
                self.text.extend_from_slice(bytes);
                let rest = self.ending.as_deref().and_then(|ending| ending.strip_prefix(bytes));
                ending = match rest {
                    Some(rest) if rest.len() <= distance => Some(rest.to_vec()),
                    _ => self.find_ending(self.ending.as_deref().unwrap_or_default(), TOKEN_EFFORT),
                };
                match &ending {
                    Some(ending) => distance = ending.len(),
                    None => acceptance = Acceptance::Invalid,
                }
            }
            // A completion never has more tokens than bytes.
            if acceptance == Acceptance::Accepted && distance > left {
                let mut after = self.clone();
                after.ending.clone_from(&ending);
                after.consume(token)?;
                if !after.closing().is_ok_and(|end| end.len() <= left) {
                    acceptance = Acceptance::NoRoom;
                }
            }
        }
        if acceptance == Acceptance::Accepted {
            self.ending = ending;
            self.consume(token)?;
        } else {
            self.text.truncate(length);
            self.state.restore(before);
        }
        Ok(acceptance)
    }

    /// A completion that makes the text valid; `earlier` did so before the last token.
    fn find_ending(&self, earlier: &[u8], effort: Effort) -> Option<Vec<u8>> {
        let check = self.check.as_ref()?;
        let violations = |rest: &[u8]| check.violations(&[&self.text, rest].concat());
        let condition = Condition { violations: &violations, literals: &check.literals };
        self.closer.valid_completion(&mut self.state.clone(), &condition, earlier, effort)
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

    /// The tokens of the shortest completion, or of a short valid one; none if the reply is complete.
    ///
    /// # Errors
    /// If no completion has been found.
    pub fn closing(&self) -> Result<Vec<u32>, String> {
        let bytes = match (&self.ending, &self.check) {
            (Some(ending), _) => Some(ending.clone()),
            (None, Some(_)) => self.find_ending(&[], COMPILE_EFFORT),
            (None, None) => self.closer.completion(&mut self.state.clone()),
        };
        let bytes = bytes.ok_or("no completion was found")?;
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

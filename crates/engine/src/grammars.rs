//! Compilation of output formats to grammars, cached by tenant.
//!
//! It fails closed: a format that cannot be compiled is refused when the call is submitted. White space between JSON tokens
//! is fixed, since a small model given the choice can generate it without end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use calls::{OutputFormat, TenantId};
use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory, TokenParser};
use models::Tokenizer;
use serde_json::{Value, json};
use toktrie::TokEnv;

use crate::completion::Closer;
use crate::format_threads;
use crate::grammar::{Grammar, Unused};
use crate::quote::{self, quotes};
use crate::schema::{self, Check, Prepared};
use crate::token_env::TokenEnv;
use crate::whitespace::Whitespace;

/// Compiles and caches the grammars of one tokenizer.
pub struct Grammars {
    tokenizer: Arc<Tokenizer>,
    vocab: usize,
    eos: Vec<u32>,
    /// Built for the first constrained call, since it takes as long as reading the tokenizer.
    workshop: OnceLock<Result<Arc<Workshop>, String>>,
    /// Cached per tenant: the time to compile a format must not reveal that another tenant has used it.
    compiled: Mutex<HashMap<TenantId, HashMap<String, Compiled>>>,
}

/// A format, or why there is no grammar of it. Calls of the same format wait until it is compiled, others do not.
type Compiled = Arc<OnceLock<Result<Format, String>>>;

/// A compiled format: one grammar, or several with automata of their own, so that as many threads can compute masks at the same
/// time.
struct Format(Mutex<Vec<Grammar>>);

impl Format {
    fn new(grammar: Grammar) -> Format {
        Format(Mutex::new(vec![grammar]))
    }

    /// A grammar for a reply: the one that the fewest replies use, or another one if all are in use or have exceeded
    /// their limits.
    ///
    /// # Errors
    /// If all have exceeded their limits, and the format cannot be compiled again.
    fn grammar(&self) -> Result<Grammar, String> {
        let known = {
            let mut grammars = self.grammars();
            if let Some(usable) = grammars.iter().position(|grammar| !grammar.is_exhausted()) {
                grammars.swap(0, usable);
            }
            keep_first_and(&mut grammars, |grammar| !grammar.is_exhausted());
            let is_full = grammars.len() >= format_threads::threads();
            let least = grammars.iter().min_by_key(|grammar| grammar.clones()).expect("there is always one");
            if !least.is_exhausted() && (is_full || least.clones() == 0) {
                return Ok(least.clone());
            }
            least.clone()
        };
        // Copying automata takes time, during which other calls get theirs.
        let separate = if known.is_exhausted() { known.renewed()? } else { known.separate() };
        let mut grammars = self.grammars();
        grammars.retain(|grammar| !grammar.is_exhausted());
        grammars.push(separate.clone());
        Ok(separate)
    }

    /// Drops the automata that no reply uses, except one.
    fn release(&self) {
        keep_first_and(&mut self.grammars(), |grammar| grammar.clones() > 0);
    }

    fn grammars(&self) -> MutexGuard<'_, Vec<Grammar>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Drops all grammars but the first and those that satisfy a condition.
fn keep_first_and(grammars: &mut Vec<Grammar>, is_kept: impl Fn(&Grammar) -> bool) {
    let mut is_first = true;
    grammars.retain(|grammar| std::mem::take(&mut is_first) || is_kept(grammar));
}

/// The inputs of grammar compilation.
struct Workshop {
    factory: ParserFactory,
    env: Arc<TokenEnv>,
    whitespace: Arc<Whitespace>,
}

impl Grammars {
    /// The grammars of a tokenizer; each of `eos` ends a complete reply.
    pub fn new(tokenizer: Arc<Tokenizer>, vocab: usize, eos: Vec<u32>) -> Grammars {
        Grammars { tokenizer, vocab, eos, workshop: OnceLock::new(), compiled: Mutex::default() }
    }

    /// The grammar of an output format for a call of this tenant; `None` for free text.
    ///
    /// # Errors
    /// A sentence that states why the format cannot be enforced, or none can with this tokenizer.
    pub fn grammar(&self, tenant: TenantId, output_format: &OutputFormat) -> Result<Option<Grammar>, String> {
        match output_format {
            OutputFormat::Text => Ok(None),
            // A text is quoted from once or twice, and its grammar is large: it is not cached.
            OutputFormat::Json(schema) if quotes(schema) => {
                self.compile(TopLevelGrammar::from_lark(quote::lark(schema)?)).map(Some)
            }
            OutputFormat::Choice(options) => {
                let lark = choice(options)?;
                let key = format!("choice {lark}");
                self.cached(tenant, key, || self.compile_shared(TopLevelGrammar::from_lark(lark))).map(Some)
            }
            OutputFormat::Json(schema) => {
                let compile = || on_large_stack(|| self.compile_json(schema));
                self.cached(tenant, format!("json {schema}"), compile).map(Some)
            }
        }
    }

    /// The grammar of a format, compiled if it is not known.
    fn cached(
        &self,
        tenant: TenantId,
        key: String,
        compile: impl FnOnce() -> Result<Grammar, String>,
    ) -> Result<Grammar, String> {
        let mut by_tenant = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let compiled = by_tenant.entry(tenant).or_default();
        // Ids that differ from call to call create ever new formats: keep the recent ones.
        if compiled.len() >= MAX_COMPILED && !compiled.contains_key(&key) {
            compiled.clear();
        }
        let format = Arc::clone(compiled.entry(key).or_default());
        compiled.values().filter_map(|format| format.get()?.as_ref().ok()).for_each(Format::release);
        drop(by_tenant);
        let format = format.get_or_init(|| compile().map(Format::new));
        format.as_ref().map_err(String::clone)?.grammar()
    }

    /// The grammar of a JSON schema, with a [`Check`] for what it does not enforce.
    fn compile_json(&self, schema: &Value) -> Result<Grammar, String> {
        let any = json!({});
        let schema = if schema == &json!(true) { &any } else { schema };
        if !schema.is_object() {
            return Err("a JSON schema is an object".into());
        }
        let (prepared, grammar) = self.compile_prepared(schema)?;
        match Check::new(schema, &prepared)? {
            Some(check) => grammar.checked_by(check),
            None => Ok(grammar),
        }
    }

    /// The grammar of as much of a schema as can be enforced.
    fn compile_prepared(&self, schema: &Value) -> Result<(Prepared, Grammar), String> {
        let mut first = None;
        for extent in schema::extents(schema) {
            let mut prepared = schema::prepare(schema, *extent)?;
            let mut compiled = self.compile_guided(&prepared.schema, false);
            // Perhaps because of a `oneOf`, which is enforced only if its alternatives are plainly disjoint.
            if compiled.is_err() && !prepared.alternatives.is_empty() {
                compiled = self.compile_guided(&prepared.schema, true);
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
                if let Err(cause) = self.compile_guided(&Value::Object(alone), true) {
                    (place, error, here) = (place + &path, cause, child);
                    continue 'inward;
                }
            }
            return if place.is_empty() { error } else { format!("{place}: {error}") };
        }
    }

    /// The grammar of a rewritten schema; `coerced` lets several alternatives of a `oneOf` match.
    fn compile_guided(&self, schema: &Value, coerced: bool) -> Result<Grammar, String> {
        schema::check_intersections(schema)?;
        self.compile_shared(guided(schema, coerced))
    }

    /// The grammar of a format that several replies may have.
    fn compile_shared(&self, top: TopLevelGrammar) -> Result<Grammar, String> {
        let (grammar, workshop) = (self.compile(top.clone())?, Arc::clone(self.workshop()?));
        let compile_again = move || on_large_stack(|| workshop.parser(top.clone()).and_then(matcher));
        Ok(grammar.shared(Unused::new(compile_again)))
    }

    fn compile(&self, top: TopLevelGrammar) -> Result<Grammar, String> {
        let workshop = self.workshop()?;
        let parser = workshop.parser(top)?;
        let closer = Arc::new(Closer::new(parser.parser.grammar())?);
        Grammar::new(matcher(parser)?, closer, Arc::clone(&workshop.env), Arc::clone(&workshop.whitespace))
    }

    fn workshop(&self) -> Result<&Arc<Workshop>, String> {
        let build = || Workshop::new(&self.tokenizer, self.vocab, &self.eos).map(Arc::new);
        self.workshop.get_or_init(build).as_ref().map_err(String::clone)
    }
}

impl Workshop {
    fn new(tokenizer: &Arc<Tokenizer>, vocab: usize, eos: &[u32]) -> Result<Workshop, String> {
        let env = Arc::new(TokenEnv::new(Arc::clone(tokenizer), vocab, eos)?);
        let shared: TokEnv = Arc::<TokenEnv>::clone(&env);
        let mut factory = ParserFactory::new_simple(&shared).map_err(|error| error.to_string())?;
        factory.quiet();
        Ok(Workshop { factory, env, whitespace: Arc::new(Whitespace::new(tokenizer)) })
    }

    fn parser(&self, top: TopLevelGrammar) -> Result<TokenParser, String> {
        self.factory.create_parser(top).map_err(|error| summary(&error.to_string()))
    }
}

/// The matcher of a parser before the first token.
fn matcher(parser: TokenParser) -> Result<Matcher, String> {
    let matcher = Matcher::new(Ok(parser));
    match matcher.get_error() {
        Some(error) => Err(summary(&error)),
        None => Ok(matcher),
    }
}

const MAX_COMPILED: usize = 256;

/// Bytes of the stack on which schemas are compiled: llguidance takes some 4 KB of it for each schema that a reference leads to
/// from another. Only what is used takes memory.
const STACK: usize = 256 << 20;

/// The result of a compilation that recurses deeply.
fn on_large_stack<T: Send>(compile: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String> {
    thread::scope(|scope| {
        let started = thread::Builder::new().name("grammar".into()).stack_size(STACK).spawn_scoped(scope, compile);
        let compiling = started.map_err(|error| format!("no thread could be started to compile it: {error}"))?;
        compiling.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Maximum schemas compiled to locate the cause of an error.
const MAX_TRIES: usize = 64;

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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn grammars(ends: Vec<u32>) -> Grammars {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/decoder/llama/tokenizer.json");
        let tokenizer = Arc::new(Tokenizer::from_file(&golden).unwrap());
        let vocab = tokenizer.len();
        Grammars::new(tokenizer, vocab, ends)
    }

    #[test]
    fn a_format_that_is_being_compiled_holds_up_no_other() {
        let grammars = grammars(vec![257]);
        let other = OutputFormat::Choice(vec!["yes".into()]);
        let compile = || grammars.grammar(TenantId::LOCAL, &other).map(Option::unwrap);
        assert!(grammars.cached(TenantId::LOCAL, "this one".into(), compile).is_ok());
    }

    #[test]
    fn a_grammar_whose_matcher_panicked_is_not_used_again() {
        let grammars = grammars(vec![257]);
        let format = OutputFormat::Choice(vec!["yes".into()]);
        let compiled = || grammars.grammar(TenantId::LOCAL, &format).unwrap().unwrap();
        let mut broken = compiled();
        assert_eq!(broken.complete_without_matcher("not allowed"), Err("not allowed".into()));
        assert!(!compiled().is_exhausted());
        assert_eq!(broken.complete_without_matcher("panic: at 3"), Err("panic: at 3".into()));
        assert!(broken.is_exhausted() && !compiled().is_exhausted());
    }

    #[test]
    fn concurrent_replies_in_a_format_have_separate_automata() {
        let grammars = grammars(vec![257]);
        let format = OutputFormat::Choice(vec!["yes".into(), "no".into()]);
        let compiled = || grammars.grammar(TenantId::LOCAL, &format).unwrap().unwrap();
        let (mut one, mut other) = (compiled(), compiled());
        assert_eq!((one.clones(), other.clones()), (1, 1));
        let beginning = one.mask().unwrap().num_set();
        let [no] = grammars.tokenizer.encode("n").unwrap()[..] else { panic!() };
        other.accept(no).unwrap();
        drop(one);
        assert_eq!(compiled().mask().unwrap().num_set(), beginning);
        // There are as many as threads, and replies are distributed evenly.
        let replies: Vec<Grammar> = (0..2 * format_threads::threads() - 1).map(|_| compiled()).collect();
        assert!(replies.iter().all(|reply| reply.clones() == 2));
        // Those that no reply uses are dropped.
        drop((other, replies));
        drop(compiled());
        let by_tenant = grammars.compiled.lock().unwrap();
        let format =
            by_tenant[&TenantId::LOCAL].values().next().and_then(|format| format.get()?.as_ref().ok()).unwrap();
        assert_eq!(format.grammars().len(), 1);
    }

    #[test]
    fn a_format_keeps_automata_that_no_reply_has_used_only_once_others_have_exceeded_their_limits() {
        let grammars = grammars(vec![257]);
        let answer = json!({ "type": "string", "maxLength": 300 });
        let pages = json!({ "type": "array", "items": { "type": "integer" }, "maxItems": 5 });
        let schema = json!({ "type": "object", "properties": { "answer": answer, "pages": pages },
            "required": ["answer", "pages"], "additionalProperties": false });
        let format = OutputFormat::Json(schema.clone());
        let compiled = || grammars.grammar(TenantId::LOCAL, &format).unwrap().unwrap();
        let (mut one, mut other) = (compiled(), compiled());
        let beginning = one.mask().unwrap().num_set();
        assert_eq!(other.mask().unwrap().num_set(), beginning);
        assert!(!one.has_unused());
        for grammar in [&mut one, &mut other] {
            assert!(grammar.complete_without_matcher("panic: at 3").is_err());
        }
        let mut renewed = compiled();
        assert!(renewed.has_unused() && !renewed.is_exhausted());
        assert_eq!(renewed.mask().unwrap().num_set(), beginning);
        let parser = grammars.workshop().unwrap().parser(guided(&schema, false)).unwrap();
        println!("its automata take {} bytes before the first token", parser.parser.lexer_stats().num_bytes);
    }

    #[test]
    fn each_end_token_ends_a_reply_that_could_continue() {
        let ends = vec![257, 258];
        let grammars = grammars(ends.clone());
        let options = OutputFormat::Choice(vec!["no".into(), "no one".into()]);
        let mut grammar = grammars.grammar(TenantId::LOCAL, &options).unwrap().unwrap();
        let allowed = |grammar: &mut Grammar| grammar.mask().unwrap().iter().collect::<Vec<_>>();
        let encode = |text: &str| grammars.tokenizer.encode(text).unwrap();
        for token in encode("no") {
            assert_eq!(allowed(&mut grammar), [token]);
            grammar.accept(token).unwrap();
        }
        assert_eq!(allowed(&mut grammar), [encode(" "), ends].concat());
        assert!(grammar.is_end(257) && grammar.is_end(258) && !grammar.is_end(256));
    }
}

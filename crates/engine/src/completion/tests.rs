//! Formats that must be accepted, and random replies in them under every token limit.

use std::sync::Arc;

use calls::{OutputFormat, TenantId};
use models::Tokenizer;
use serde_json::{Value, json};

use crate::grammar::{Acceptance, Grammar};
use crate::grammars::Grammars;

/// A tokenizer of bytes with a few longer tokens, some of which span the boundaries of lexemes.
fn tokenizer() -> Arc<Tokenizer> {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/decoder/llama/tokenizer.json");
    let mut json: Value = serde_json::from_slice(&std::fs::read(golden).unwrap()).unwrap();
    let merges = [["{", "\""], ["\"", ":"], ["\"", ","], ["\"", "}"], ["}", "}"], ["t", "r"], ["u", "e"], ["tr", "ue"]];
    let merges = merges.iter().chain(&[["f", "a"], ["l", "s"], ["fa", "ls"], ["fals", "e"], ["0", "0"], ["\":", "\""]]);
    let first = json["model"]["vocab"].as_object().unwrap().len() as u64;
    for (number, [left, right]) in merges.enumerate() {
        json["model"]["vocab"][format!("{left}{right}")] = json!(first + number as u64);
        json["model"]["merges"].as_array_mut().unwrap().push(json!(format!("{left} {right}")));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    std::fs::write(&path, json.to_string()).unwrap();
    Arc::new(Tokenizer::from_file(&path).unwrap())
}

pub(super) struct Bench {
    pub tokenizer: Arc<Tokenizer>,
    grammars: Grammars,
}

impl Bench {
    pub fn new() -> Bench {
        let tokenizer = tokenizer();
        let eos = tokenizer.specials().max().unwrap();
        let grammars = Grammars::new(Arc::clone(&tokenizer), tokenizer.len(), vec![eos]);
        Bench { tokenizer, grammars }
    }

    pub fn grammar(&self, schema: &Value) -> Result<Grammar, String> {
        self.grammars.grammar(TenantId::LOCAL, &OutputFormat::Json(schema.clone())).map(Option::unwrap)
    }

    pub fn text(&self, tokens: &[u32]) -> String {
        let bytes = tokens.iter().flat_map(|token| self.tokenizer.bytes(*token)).copied().collect();
        String::from_utf8(bytes).unwrap()
    }

    pub fn shortest(&self, schema: &Value) -> String {
        let grammar = self.grammar(schema).unwrap_or_else(|error| panic!("{schema}: {error}"));
        self.text(&grammar.closing().unwrap())
    }

    /// Generates a reply of random tokens that must end within `most` tokens, as a model would: a token that makes the
    /// reply invalid is drawn again.
    pub fn answer(&self, mut grammar: Grammar, most: usize, random: &mut u64) -> Result<String, String> {
        let mut written = Vec::new();
        let mut drawn = |of: usize| {
            *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(*random >> 33).unwrap() % of
        };
        while !grammar.is_complete() {
            if let Some(token) = grammar.accept_forced(most - written.len())? {
                // As many numbers as if it were drawn.
                drawn(1);
                written.push(token);
                continue;
            }
            let mut allowed: Vec<u32> = grammar.mask()?.iter().collect();
            let token = loop {
                if allowed.is_empty() || written.len() == most {
                    break None;
                }
                let token = allowed.swap_remove(drawn(allowed.len()));
                if grammar.is_end(token) {
                    return Ok(self.text(&written));
                }
                match grammar.accept_within(token, most - written.len() - 1)? {
                    Acceptance::Accepted => break Some(token),
                    Acceptance::NoRoom => break None,
                    Acceptance::Invalid => {}
                }
            };
            let Some(token) = token else {
                let end = grammar.closing()?;
                if end.len() > most - written.len() {
                    return Err(format!("{} tokens to the end of {:?}", end.len(), self.text(&written)));
                }
                written.extend(end);
                break;
            };
            written.push(token);
        }
        Ok(self.text(&written))
    }
}

/// A JSON text as a value; none if it has a number outside the range of 64-bit floats, which JSON allows.
pub(super) fn parsed(text: &str) -> Option<Value> {
    match serde_json::from_str(text) {
        Ok(value) => Some(value),
        Err(error) if error.to_string().starts_with("number out of range") => None,
        Err(error) => panic!("{text}: {error}"),
    }
}

fn form(properties: Value) -> Value {
    let required: Vec<&String> = properties.as_object().unwrap().keys().collect();
    json!({ "type": "object", "required": required, "properties": properties, "additionalProperties": false })
}

/// True if a grammar takes a whole text and lets it end there.
fn takes(bench: &Bench, schema: &Value, text: &str) -> bool {
    let mut grammar = bench.grammar(schema).unwrap_or_else(|error| panic!("{schema}: {error}"));
    let tokens = bench.tokenizer.encode(text).unwrap();
    tokens.iter().all(|token| grammar.accept(*token).is_ok()) && grammar.closing().is_ok_and(|rest| rest.is_empty())
}

/// A number whose automaton exceeds llguidance's limits once a reply begins with it.
fn complex_number() -> Value {
    let divisors = [6.75, 19.0, 9.5, 2.125].map(|divisor| json!({ "multipleOf": divisor }));
    json!({ "allOf": divisors, "exclusiveMinimum": -100_000, "exclusiveMaximum": -10_000,
        "not": { "anyOf": [{ "multipleOf": 2 }, { "multipleOf": 5 }, { "multipleOf": 7 }, { "multipleOf": 11 }] } })
}

#[test]
fn a_reply_whose_automaton_grows_too_large_is_completed() {
    let bench = Bench::new();
    let grammar = bench.grammar(&complex_number()).unwrap();
    for (most, mut random) in [(grammar.shortest(), 1), (grammar.shortest() + 1, 2), (120, 3)] {
        let text = bench.answer(grammar.clone(), most, &mut random).unwrap();
        assert!(["-26163", "-78489"].contains(&text.as_str()), "{text} within {most} tokens");
    }
}

#[test]
fn an_automaton_that_grew_too_large_is_not_used_for_the_next_reply() {
    let bench = Bench::new();
    let schema = form(json!({ "a": { "type": "string" }, "n": complex_number() }));
    let after = |text: &str| {
        let mut grammar = bench.grammar(&schema).unwrap();
        bench.tokenizer.encode(text).unwrap().into_iter().for_each(|token| grammar.accept(token).unwrap());
        grammar
    };
    let number = bench.answer(after("{\"a\":\"\",\"n\":"), 120, &mut 3).unwrap();
    assert!(["-26163}", "-78489}"].contains(&number.as_str()), "{number}");
    assert!(after("{\"a\":\"").mask().unwrap().num_set() > 100, "any string may follow");
}

#[test]
fn a_reply_whose_automata_another_one_took_to_their_limits_gets_new_ones() {
    let bench = Bench::new();
    let schema = form(json!({ "a": { "type": "string" }, "n": complex_number() }));
    let begin = |grammar: &mut Grammar, text: &str| {
        bench.tokenizer.encode(text).unwrap().into_iter().for_each(|token| grammar.accept(token).unwrap());
    };
    let mut one = bench.grammar(&schema).unwrap();
    let mut other = one.clone();
    begin(&mut other, "{\"a\":\"x");
    let mut waiting = other.clone();
    begin(&mut one, "{\"a\":\"\",\"n\":");
    bench.answer(one, 120, &mut 3).unwrap();
    assert!(other.is_exhausted());
    assert!(other.mask().unwrap().num_set() > 100, "any character may follow");
    begin(&mut waiting, "yz");
    assert!(!waiting.is_closing() && !other.is_closing());
    assert!(!waiting.is_exhausted() && !other.is_exhausted());
    begin(&mut other, "\",\"n\":");
}

#[test]
fn an_integer_is_never_written_as_negative_zero() {
    let bench = Bench::new();
    for (schema, taken, refused) in [
        (
            json!({ "type": "integer" }),
            &["0", "-1", "-10", "7", "-123456789012345678901234567890"][..],
            &["-0", "-00", "-01"][..],
        ),
        (json!({ "type": "integer", "minimum": -5, "maximum": 10 }), &["-5", "-1", "0", "10"], &["-0", "-6", "11"]),
        (json!({ "type": "integer", "multipleOf": 5 }), &["-5", "0", "10"], &["-0", "-3"]),
        (json!({ "type": "integer", "exclusiveMinimum": -3.5 }), &["-3", "0", "9"], &["-0", "-4"]),
        (json!({ "type": ["integer", "null"] }), &["-1", "0", "null"], &["-0"]),
        (
            json!({ "type": "integer", "minimum": -1, "exclusiveMinimum": true,
            "$schema": "http://json-schema.org/draft-04/schema#" }),
            &["0", "3"],
            &["-0", "-1"],
        ),
        (json!({ "$ref": "#/$defs/a", "$defs": { "a": { "type": "integer" } } }), &["-2", "0"], &["-0"]),
        (json!({ "type": "integer", "maximum": -1 }), &["-1"], &["-0", "0"]),
        (json!({ "type": "array", "items": { "type": "integer" } }), &["[0,-1]", "[]"], &["[-0]", "[0,-0]"]),
        (json!({ "type": "number" }), &["-0.5", "-0"], &["-00"]),
    ] {
        taken.iter().for_each(|text| assert!(takes(&bench, &schema, text), "{schema}: {text}"));
        refused.iter().for_each(|text| assert!(!takes(&bench, &schema, text), "{schema}: {text}"));
    }
}

/// Schemas that agents and libraries commonly use.
pub(super) fn everyday() -> Vec<Value> {
    let patterns = [
        "^[a-z]+b$",
        "foo",
        "^a+b$",
        r"^\d+ (USD|EUR)$",
        "^[a-z]+-[a-z]+$",
        r"^.*\.txt$",
        r"^[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}$",
        "[0-9]{3}",
        r"\.txt$",
        r"^\d+\.\d+\.\d+$",
        r"^\$[0-9]+\.[0-9]{2}$",
        "^[A-Z][a-z]+ [A-Z][a-z]+$",
        r"^\w+\s\w+$",
        "^[A-Z]{2,3}-[0-9]{4}$",
        r"^\+?[1-9]\d{1,14}$",
        "^#([0-9a-f]{3}|[0-9a-f]{6})$",
        "^https?://[^ ]+$",
        r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
        r"^(?:[01]\d|2[0-3]):[0-5]\d$",
        "^(yes|no|maybe)$",
        r"^\S+\cI[^\s]$",
    ];
    let formats = ["email", "duration", "date-time", "date", "time", "uuid", "ipv4", "ipv6", "hostname", "uri"];
    let strings = patterns.iter().map(|pattern| json!({ "type": "string", "pattern": pattern }));
    let formats = formats.iter().map(|format| json!({ "type": "string", "format": format }));
    strings.chain(formats).chain(models()).collect()
}

/// Recursive schemas, and those that pydantic and OpenAI's guide generate.
fn models() -> Vec<Value> {
    let node = form(
        json!({ "value": { "type": "number" }, "next": { "anyOf": [{ "$ref": "#/$defs/node" }, { "type": "null" }] } }),
    );
    let list = json!({ "type": "object", "properties": { "linked_list": { "$ref": "#/$defs/node" } },
        "$defs": { "node": node }, "required": ["linked_list"], "additionalProperties": false });
    let tree = json!({ "$ref": "#/$defs/expression", "$defs": {
        "expression": { "anyOf": [{ "$ref": "#/$defs/operation" }, { "$ref": "#/$defs/number" }] },
        "operation": form(json!({ "operator": { "enum": ["add", "multiply"] },
            "left": { "$ref": "#/$defs/expression" }, "right": { "$ref": "#/$defs/expression" } })),
        "number": form(json!({ "value": { "type": "integer" } })) } });
    let interface = json!({ "type": "object", "properties": {
        "type": { "type": "string", "enum": ["div", "button", "form"] },
        "label": { "type": "string" },
        "children": { "type": "array", "items": { "$ref": "#" } },
        "attributes": { "type": "array", "items": form(json!({ "name": { "type": "string" }, "value": { "type": "string" } })) } },
        "required": ["type", "label", "children", "attributes"], "additionalProperties": false });
    let order = json!({ "$defs": { "Line": { "title": "Line", "type": "object", "properties": {
            "name": { "title": "Name", "type": "string" },
            "price": { "exclusiveMinimum": 0, "title": "Price", "type": "number" },
            "count": { "exclusiveMinimum": 0, "maximum": 100, "type": "integer" },
            "note": { "anyOf": [{ "type": "string" }, { "type": "null" }], "default": null } },
        "required": ["name", "price", "count"] } },
        "title": "Order", "type": "object",
        "properties": { "lines": { "items": { "$ref": "#/$defs/Line" }, "type": "array" },
            "when": { "type": "string", "format": "date-time" }, "paid": { "type": "boolean" } },
        "required": ["lines", "when", "paid"] });
    let twenty: serde_json::Map<String, Value> =
        (0..20).map(|n| (format!("field_{n}"), json!({ "type": "string" }))).collect();
    let wide = json!({ "type": "object", "properties": { "items": { "type": "array", "items": form(Value::Object(twenty)) } } });
    let mutual = json!({ "$ref": "#/$defs/a", "$defs": {
        "a": form(json!({ "b": { "anyOf": [{ "$ref": "#/$defs/b" }, { "type": "null" }] } })),
        "b": form(json!({ "a": { "$ref": "#/$defs/a" } })) } });
    vec![
        list,
        tree,
        interface,
        order,
        wide,
        mutual,
        form(json!({ "a": {} })),
        form(json!({ "a": { "type": "array" } })),
        json!({ "type": "object" }),
        json!({ "type": "number", "exclusiveMinimum": 0 }),
        json!({ "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1 }),
        json!({ "type": "integer", "multipleOf": 7, "minimum": 50, "maximum": 9999 }),
        json!({ "type": "array", "items": { "type": "string", "minLength": 3 }, "minItems": 2 }),
        json!({ "enum": ["x", 1, null, { "a": [true] }] }),
        json!({ "type": "object", "patternProperties": { "^x-": { "type": "integer" } }, "additionalProperties": false }),
    ]
}

#[test]
fn everyday_schemas_are_accepted_and_every_random_answer_is_valid_within_its_limit() {
    let bench = Bench::new();
    let mut random = 1;
    for schema in everyday() {
        let valid = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
        let grammar = bench.grammar(&schema).unwrap_or_else(|error| panic!("{schema}: {error}"));
        let shortest = grammar.shortest();
        for most in [shortest, shortest + 1, shortest + 7, shortest.max(120)] {
            for _ in 0..4 {
                let text = bench.answer(grammar.clone(), most, &mut random);
                let text = text.unwrap_or_else(|error| panic!("{schema} within {most}: {error}"));
                let Some(value) = parsed(&text) else { continue };
                assert!(valid.is_valid(&value), "{schema}: {text}");
            }
        }
    }
}

#[test]
fn the_shortest_answer_holds_nothing_that_may_be_left_out() {
    let bench = Bench::new();
    let shortest = |schema: Value, want: &str| assert_eq!(bench.shortest(&schema), want, "{schema}");
    shortest(json!({ "type": "string", "pattern": "^[a-z]+b$" }), "\"ab\"");
    shortest(json!({ "type": "string", "pattern": "[0-9]{3}" }), "\"000\"");
    shortest(json!({ "type": "string" }), "\"\"");
    shortest(json!({ "type": "boolean" }), "false");
    shortest(json!({ "type": ["boolean", "null"] }), "null");
    shortest(json!({ "type": "number", "exclusiveMinimum": 0 }), "1");
    shortest(json!({ "type": "object" }), "{}");
    shortest(json!({ "enum": ["perhaps", "no", "yes"] }), "\"no\"");
    shortest(
        form(json!({ "a": { "type": "array" }, "b": { "anyOf": [{ "type": "string" }, { "type": "integer" }] } })),
        "{\"a\":[],\"b\":0}",
    );
    let [list, tree, ..] = &models()[..] else { unreachable!() };
    shortest(list.clone(), "{\"linked_list\":{\"value\":0,\"next\":null}}");
    shortest(tree.clone(), "{\"value\":0}");
    shortest(json!({ "type": "string", "format": "date-time" }), "\"0000-01-01T00:00:00Z\"");
}

#[test]
fn a_form_without_any_finite_answer_is_refused() {
    let bench = Bench::new();
    let endless = json!({ "$ref": "#/$defs/a", "$defs": { "a": form(json!({ "a": { "$ref": "#/$defs/a" } })) } });
    assert_eq!(bench.grammar(&endless).err().unwrap(), "/$defs/a/properties/a: no reply in this format can end");
}

#[test]
fn a_schema_that_is_none_is_refused_with_the_place_and_not_with_its_text() {
    let schema =
        json!({ "type": "array", "uniqueItems": true, "items": { "title": 5, "description": "long ".repeat(900) } });
    let error = Bench::new().grammar(&schema).err().unwrap();
    assert_eq!(error, "/items/title: the schema itself is not valid: value is not of type \"string\"");
}

#[test]
fn an_answer_is_closed_from_within_a_lexeme() {
    let bench = Bench::new();
    let schema = form(
        json!({ "a": { "type": "string", "pattern": "^[a-z]{0,9}b$" }, "t": { "type": "boolean" }, "n": { "type": "number" } }),
    );
    let close = |text: &str| {
        let mut grammar = bench.grammar(&schema).unwrap();
        for token in bench.tokenizer.encode(text).unwrap() {
            grammar.accept(token).unwrap();
        }
        bench.text(&grammar.closing().unwrap())
    };
    assert_eq!(close("{\"a\":\"xyz"), "b\",\"t\":false,\"n\":0}");
    assert_eq!(close("{\"a\":\"b\",\"t\":t"), "rue,\"n\":0}");
    assert_eq!(close("{\"a\":\"b\",\"t\":true,\"n\":-1."), "0}");
    assert_eq!(close("{\"a\":\"b\",\"t\":true,\"n\":12"), "}");
    assert_eq!(close("{\"a\":\"b\",\"t\":true,\"n\":12}"), "");
}

#[test]
fn tokens_are_forced_where_no_choice_is_left() {
    let bench = Bench::new();
    let schema = form(json!({ "a": { "type": "boolean" }, "b": { "type": "boolean" }, "c": { "const": "said" } }));
    let mut grammar = bench.grammar(&schema).unwrap();
    let tokens = |text| bench.tokenizer.encode(text).unwrap();
    tokens("{\"a\":false,\"b\":").into_iter().for_each(|token| grammar.accept(token).unwrap());
    assert_eq!(grammar.forced_token(), Ok(None), "a value is to be chosen");
    tokens("true").into_iter().for_each(|token| grammar.accept(token).unwrap());
    let mut forced = Vec::new();
    while let Some(token) = grammar.forced_token().unwrap() {
        grammar.accept(token).unwrap();
        forced.push(token);
    }
    assert_eq!(bench.text(&forced), ",\"c\":\"said\"}");
    assert!(grammar.is_complete());
}

#[test]
fn forced_tokens_are_accepted_if_the_reply_can_be_closed_after_them() {
    let bench = Bench::new();
    let said = json!({ "const": "said, and said again" });
    // The keys of the second are checked beside the grammar.
    for last in [json!({ "type": "boolean" }), json!({ "type": "object" })] {
        let schema = form(json!({ "a": said, "b": { "type": "boolean" }, "c": last }));
        let grammar = bench.grammar(&schema).unwrap();
        let (shortest, text) = (grammar.shortest(), bench.shortest(&schema));
        for most in [shortest, shortest + 1, text.len(), text.len() + 1] {
            let (mut grammar, mut forced) = (grammar.clone(), Vec::new());
            let run = grammar.forced();
            while let Some(token) = grammar.accept_forced(most - forced.len()).unwrap() {
                forced.push(token);
                assert_eq!(grammar.forced(), run[forced.len().min(run.len())..], "the text is tokenised once");
            }
            assert_eq!(bench.text(&forced), "{\"a\":\"said, and said again\",\"b\":", "within {most}");
            assert!(grammar.closing().unwrap().len() <= most - forced.len());
        }
        let mut grammar = grammar.clone();
        for most in [0, 1, shortest - 1] {
            assert_eq!(grammar.accept_forced(most), Ok(None), "within {most}");
            assert_eq!(grammar.closing().unwrap().len(), shortest, "nothing was accepted");
        }
    }
}

/// Schemas with keywords that no grammar enforces.
pub(super) fn validated() -> Vec<Value> {
    let words = json!({ "type": "array", "items": { "type": "string" }, "minItems": 2, "uniqueItems": true });
    let line = form(json!({ "id": { "type": "integer" }, "name": { "type": "string" } }));
    vec![
        words.clone(),
        form(json!({ "tags": words, "lines": { "type": "array", "items": line, "minItems": 3, "uniqueItems": true } })),
        json!({ "type": "array", "items": { "enum": ["a", "b", "c", "d"] }, "minItems": 4, "uniqueItems": true }),
        json!({ "type": "string", "not": { "const": "" } }),
        json!({ "not": { "enum": [0, 1, "", [], {}] } }),
        json!({ "type": "array", "items": { "type": "integer" }, "contains": { "const": 57 } }),
        json!({ "type": "array", "contains": { "type": "string" }, "minContains": 2, "maxContains": 3 }),
        // Recursion through alternatives with a keyword beside them, and names that match a pattern beside them.
        json!({ "type": "object", "anyOf": [{ "$ref": "#/$defs/list" }, { "$ref": "#/$defs/text" }], "$defs": {
            "list": form(json!({ "kind": { "enum": ["list"] }, "items": { "type": "array", "items": { "$ref": "#" } } })),
            "text": form(json!({ "kind": { "enum": ["text"] }, "content": { "type": "string" } })) } }),
        json!({ "type": "object", "patternProperties": { "^[a-z]+$": { "$ref": "#/$defs/one" } },
            "properties": { "by": { "$ref": "#/$defs/one" } }, "additionalProperties": false, "$defs": {
            "one": { "type": "array", "items": { "type": "array", "allOf": [{ "$ref": "#/$defs/one" }, { "minItems": 0 }] } } } }),
        json!({ "type": "object", "properties": { "kind": { "enum": ["a", "b"] }, "x": { "type": "integer" } },
            "required": ["kind"], "if": { "properties": { "kind": { "const": "a" } } }, "then": { "required": ["x"] },
            "else": { "not": { "required": ["x"] } }, "additionalProperties": false }),
        json!({ "oneOf": [{ "type": "integer" }, { "minimum": 2 }] }),
        json!({ "oneOf": [{ "properties": { "a": { "type": "string" } }, "required": ["a"] },
            { "properties": { "b": { "type": "string" } }, "required": ["b"] }] }),
        json!({ "type": "string", "pattern": "^(?!a)[a-c]{2,}$" }),
        json!({ "type": "integer", "multipleOf": 0.123_456_789 }),
        json!({ "type": "object", "minProperties": 3, "maxProperties": 4 }),
        json!({ "type": "object", "properties": { "a": {}, "b": {}, "c": {} }, "minProperties": 2, "additionalProperties": false }),
        json!({ "type": "object", "patternProperties": { "^x{1,2}$": { "type": "null" } }, "additionalProperties": false }),
        json!({ "type": "object", "propertyNames": { "enum": ["p", "q"] }, "minProperties": 2 }),
    ]
}

#[test]
fn replies_satisfy_what_no_grammar_enforces_within_every_limit() {
    let bench = Bench::new();
    let mut random = 3;
    for schema in validated() {
        let valid = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
        let grammar = bench.grammar(&schema).unwrap_or_else(|error| panic!("{schema}: {error}"));
        let shortest = grammar.shortest();
        for most in [shortest, shortest + 1, shortest + 7, shortest.max(60)] {
            for _ in 0..4 {
                let text = bench.answer(grammar.clone(), most, &mut random);
                let text = text.unwrap_or_else(|error| panic!("{schema} within {most}: {error}"));
                let Some(value) = parsed(&text) else { continue };
                assert!(valid.is_valid(&value), "{schema}: {text}");
            }
        }
    }
}

#[test]
fn a_completion_that_is_not_valid_is_replaced_by_the_next_shortest() {
    let bench = Bench::new();
    let shortest = |schema: Value, want: &str| assert_eq!(bench.shortest(&schema), want, "{schema}");
    let words = |least: usize| json!({ "type": "array", "items": { "type": "string" }, "minItems": least, "uniqueItems": true });
    shortest(words(2), "[\"0\",\"\"]");
    shortest(json!({ "type": "string", "not": { "const": "" } }), "\"0\"");
    shortest(json!({ "type": "array", "items": { "type": "integer" }, "contains": { "const": 57 } }), "[57]");
    // Without the name, `kind` violates least, and no key after it mends that.
    let properties =
        json!({ "name": { "type": "string" }, "size": { "type": "integer" }, "kind": { "enum": ["cup", "pan"] } });
    let schema = json!({ "type": "object", "properties": properties, "if": { "properties": { "kind": { "const": "pan" } } },
        "then": { "required": ["name", "size", "kind"] }, "else": { "required": ["name", "kind"] } });
    shortest(schema, r#"{"name":"","kind":"cup"}"#);
    let distinct: std::collections::HashSet<String> = serde_json::from_str(&bench.shortest(&words(6))).unwrap();
    assert_eq!(distinct.len(), 6);
}

/// JSONSchemaBench's `Handwritten---object4`: one key of four characters, which two patterns require.
fn one_name_with_two_parts() -> Value {
    let some_name = |part: &str| json!({ "not": { "propertyNames": { "not": { "pattern": part } } } });
    json!({ "type": "object", "allOf": [some_name("a1"), some_name("b2"), { "propertyNames": { "pattern": "^....$" } },
        { "maxProperties": 1 }, { "minProperties": 1 }] })
}

/// What makes JSONSchemaBench's `catalogue-entry-schema` hard: an anchor within a pattern, of which there is an example behind
/// many other values, and keywords beside references.
fn catalogue() -> Value {
    let owners: Vec<String> = (0..80).map(|number| format!("owner {number}")).collect();
    let filters = json!({ "type": "object", "required": ["owner", "profile", "access"],
        "properties": { "owner": { "enum": owners }, "profile": { "enum": ["new", "old"] }, "access": { "enum": ["open", "shut"] } },
        "allOf": [{ "$ref": "#/$defs/first" }, { "$ref": "#/$defs/second" }], "additionalProperties": false });
    json!({ "type": "object", "required": ["filters", "tags"], "additionalProperties": false, "properties": {
            "path": { "type": "string", "pattern": "((?:[^/]*/)*)(?=\\.(yaml|yml|json))" },
            "filters": filters,
            "tags": { "type": "string", "pattern": "^([^,]+(,|$)){3,}$", "examples": ["one, two, three"] } },
        "$defs": {
            "first": { "if": { "properties": { "profile": { "const": "new" } } }, "then": { "properties": { "access": { "const": "shut" } } } },
            "second": { "if": { "properties": { "profile": { "const": "old" } } }, "then": { "properties": { "access": { "const": "open" } } } } } })
}

#[test]
fn texts_that_patterns_require_are_found_where_the_schema_mentions_them() {
    let bench = Bench::new();
    let shortest = |schema: &Value| -> Value {
        let valid = jsonschema::options().build(schema).unwrap();
        let value = serde_json::from_str(&bench.shortest(schema)).unwrap();
        assert!(valid.is_valid(&value), "{schema}: {value}");
        value
    };
    let value = shortest(&one_name_with_two_parts());
    assert!(["a1b2", "b2a1"].iter().any(|name| value.get(name).is_some()), "{value}");
    assert_eq!(shortest(&catalogue())["tags"], "one, two, three");
}

#[test]
fn a_key_never_occurs_twice_in_an_object() {
    let bench = Bench::new();
    let schema = json!({ "type": "object", "patternProperties": { "^[ab]$": { "type": "boolean" } }, "additionalProperties": false });
    let mut random = 5;
    let mut longest = 0;
    for _ in 0..40 {
        let text = bench.answer(bench.grammar(&schema).unwrap(), 60, &mut random).unwrap();
        let keys = text.matches(':').count();
        let value: serde_json::Map<String, Value> = serde_json::from_str(&text).unwrap();
        assert_eq!(value.len(), keys, "{text}");
        longest = longest.max(keys);
    }
    assert_eq!(longest, 2, "both keys occur");
}

#[test]
fn a_format_without_a_valid_reply_is_refused() {
    let bench = Bench::new();
    let refused = |schema: Value| bench.grammar(&schema).err().unwrap_or_else(|| panic!("{schema}"));
    assert_eq!(
        refused(json!({ "type": "array", "items": { "enum": [1, 2] }, "minItems": 3, "uniqueItems": true })),
        "no valid reply was found (searched because no grammar enforces /uniqueItems)"
    );
    assert!(refused(json!({ "const": 1, "not": { "minimum": 0 } })).contains("/not"));
}

#[test]
fn many_patterns_are_compiled_or_refused() {
    let bench = Bench::new();
    let all: Value = (0..40).map(|at| json!({ "pattern": format!("word{at}") })).collect();
    let error = bench.grammar(&json!({ "type": "string", "allOf": all })).err().unwrap();
    assert_eq!(error, "more than 12 patterns apply to the same text");
    let named = |number: i32| -> serde_json::Map<String, Value> {
        (0..number).map(|at| (format!("^word{at}$"), json!({ "const": at }))).collect()
    };
    let many = json!({ "type": "object", "patternProperties": named(600), "additionalProperties": false });
    assert_eq!(bench.shortest(&many), "{}");
}

/// Schemas of which each refers to the next, `number` in all.
fn referring(number: usize, refer: impl Fn(&Value) -> Value, last: &Value) -> Value {
    let refers = |at: usize| refer(&json!({ "$ref": format!("#/$defs/{}", at + 1) }));
    let mut all: serde_json::Map<String, Value> = (1..number).map(|at| (at.to_string(), refers(at))).collect();
    all.insert(number.to_string(), last.clone());
    json!({ "$ref": "#/$defs/1", "$defs": all })
}

#[test]
fn a_schema_may_refer_to_thousands_of_others() {
    let bench = Bench::new();
    for last in [json!({ "type": "integer" }), json!({ "type": "integer", "not": { "multipleOf": 7 } })] {
        let chain = |number| referring(number, Value::clone, &last);
        let answer = bench.answer(bench.grammar(&chain(4_000)).unwrap(), 3, &mut 1).unwrap();
        assert!(answer.parse::<i64>().is_ok(), "{answer}");
        let error = bench.grammar(&chain(5_000)).err().unwrap();
        assert_eq!(error, "/$defs/4096/$ref: a schema may refer to at most 4096 others");
        assert!(bench.grammar(&referring(2_000, |next| json!({ "items": next }), &last)).is_ok());
    }
}

/// The third was found by damaged schemas, round 70009350.
#[test]
fn the_search_ends_where_references_multiply() {
    let bench = Bench::new();
    let last = json!({ "type": "integer", "not": { "multipleOf": 7 } });
    let twice = |next: &Value| json!({ "allOf": [next, next] });
    let field = |next: &Value| json!({ "type": "object", "properties": { "x": twice(next) }, "required": ["x"], "additionalProperties": false });
    for (schema, most) in [(referring(12, twice, &last), 1), (referring(12, field, &last), 50)] {
        assert!(bench.grammar(&schema).unwrap().shortest() <= most);
    }
    for schema in [referring(60, twice, &last), referring(60, field, &last)] {
        let error = bench.grammar(&schema).err().unwrap();
        assert!(error.contains("references multiply"), "{error}");
    }
    let endless = json!({ "type": "object", "properties": { "a": { "allOf": [{ "$ref": "#" }, { "$ref": "#" }] }, "b": {}, "c": {} },
        "minProperties": u64::MAX, "additionalProperties": false });
    let error = bench.grammar(&endless).err().unwrap();
    assert_eq!(
        error,
        "no valid reply was found (searched because no grammar enforces /properties/a/allOf, /minProperties)"
    );
}

/// Found by random schemas, round 1003929.
#[test]
fn only_an_object_can_lack_a_required_key() {
    let bench = Bench::new();
    assert_eq!(bench.shortest(&json!({ "not": { "required": ["b"] } })), "{}");
    assert!(bench.grammar(&json!({ "type": "array", "not": { "required": ["b"] } })).is_err());
}

//! Formats that must be accepted, and random replies in them under every token limit.

use std::sync::Arc;

use calls::{Shape, TenantId};
use models::Tokenizer;
use serde_json::{Value, json};

use crate::grammar::{Grammar, Grammars};

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

struct Bench {
    tokenizer: Arc<Tokenizer>,
    grammars: Grammars,
}

impl Bench {
    fn new() -> Bench {
        let tokenizer = tokenizer();
        let eos = tokenizer.specials().max().unwrap();
        let grammars = Grammars::new(Arc::clone(&tokenizer), tokenizer.len(), eos);
        Bench { tokenizer, grammars }
    }

    fn grammar(&self, schema: &Value) -> Result<Grammar, String> {
        self.grammars.grammar(TenantId::LOCAL, &Shape::Json(schema.clone())).map(Option::unwrap)
    }

    fn text(&self, tokens: &[u32]) -> String {
        let bytes = tokens.iter().flat_map(|token| self.tokenizer.bytes(*token)).copied().collect();
        String::from_utf8(bytes).unwrap()
    }

    fn shortest(&self, schema: &Value) -> String {
        let grammar = self.grammar(schema).unwrap_or_else(|error| panic!("{schema}: {error}"));
        self.text(&grammar.closing().unwrap())
    }

    /// Generates a reply of random tokens that must end within `most` tokens.
    fn answer(&self, mut grammar: Grammar, most: usize, random: &mut u64) -> Result<String, String> {
        let mut written = Vec::new();
        while !grammar.is_complete() {
            let mask = grammar.mask()?;
            let allowed: Vec<u32> = mask.iter().collect();
            *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let token = allowed[usize::try_from(*random >> 33).unwrap() % allowed.len()];
            if token == grammar.eos() {
                break;
            }
            if written.len() < most && grammar.accept_within(token, most - written.len() - 1)? {
                written.push(token);
                continue;
            }
            let end = grammar.closing()?;
            if end.len() > most - written.len() {
                return Err(format!("{} tokens to the end of {:?}", end.len(), self.text(&written)));
            }
            written.extend(end);
            break;
        }
        Ok(self.text(&written))
    }
}

/// A JSON text as a value; none if it has a number outside the range of 64-bit floats, which JSON allows.
fn parsed(text: &str) -> Option<Value> {
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

/// Schemas that agents and libraries commonly use.
fn everyday() -> Vec<Value> {
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

/// Outcomes for the schemas of a folder.
#[derive(Debug, Default)]
struct Tally {
    schemas: usize,
    accepted: usize,
    enforced: usize,
    replies: usize,
    valid: usize,
    /// Invalid in a format that is validated afterwards: such a reply is regenerated or refused.
    caught: usize,
    failed: usize,
    slowest_ms: u128,
}

impl Tally {
    fn add(&mut self, bench: &Bench, schema: &Value, name: &str) {
        let valid = jsonschema::options().should_validate_formats(true).build(schema);
        self.schemas += 1;
        let start = std::time::Instant::now();
        let grammar = match bench.grammar(schema) {
            Ok(grammar) => grammar,
            Err(error) => return println!("refused {name}: {}", error.chars().take(160).collect::<String>()),
        };
        self.slowest_ms = self.slowest_ms.max(start.elapsed().as_millis());
        self.accepted += 1;
        let checked = bench.grammars.check(TenantId::LOCAL, &Shape::Json(schema.clone())).unwrap().is_some();
        self.enforced += usize::from(!checked);
        let shortest = grammar.shortest();
        let mut random = 7;
        for most in [shortest, shortest + 1, shortest + 7, shortest.max(120)] {
            self.replies += 1;
            let text = match bench.answer(grammar.clone(), most, &mut random) {
                Ok(text) => text,
                Err(error) => {
                    self.failed += 1;
                    println!("failed {name} within {most}: {error}");
                    continue;
                }
            };
            match (&valid, parsed(&text)) {
                (Ok(valid), Some(value)) if !valid.is_valid(&value) => {
                    if checked {
                        self.caught += 1;
                    } else {
                        println!("invalid {name}: {}", text.chars().take(300).collect::<String>());
                    }
                }
                _ => self.valid += 1,
            }
        }
    }
}

/// Runs the schemas of a folder: files that are schemas, hold one as `schema` (JSONSchemaBench), or hold a list of such
/// (JSON-Schema-Test-Suite). `SCHEMAS_EVERY=n` takes every n-th file only.
#[test]
#[ignore = "needs a folder of schemas in SCHEMAS"]
fn schemas_of_a_folder() {
    let folder = std::env::var("SCHEMAS").expect("SCHEMAS names a folder of JSON schemas");
    let every = std::env::var("SCHEMAS_EVERY").ok().and_then(|every| every.parse().ok()).unwrap_or(1);
    let bench = Bench::new();
    let mut tally = Tally::default();
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    files.sort();
    for path in files.iter().step_by(every) {
        let name = path.file_name().unwrap().to_string_lossy();
        let Ok(value) = serde_json::from_slice::<Value>(&std::fs::read(path).unwrap()) else { continue };
        match &value {
            Value::Array(cases) => cases
                .iter()
                .for_each(|case| tally.add(&bench, &case["schema"], &format!("{name} {}", case["description"]))),
            Value::Object(fields) => tally.add(&bench, fields.get("schema").unwrap_or(&value), &name),
            _ => {}
        }
    }
    println!("{tally:#?}");
    assert_eq!(tally.failed, 0);
}

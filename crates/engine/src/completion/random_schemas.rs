//! Random schemas: one that is accepted has a valid shortest reply, and random replies in it are valid.
//!
//! `test_support::fuzz` says how many.

use serde_json::{Map, Value, json};
use test_support::fuzz;

use super::suites::is_beyond_precision;
use super::tests::{Bench, everyday, validated};

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn pick<T: Clone>(&mut self, options: &[T]) -> T {
        options[self.below(options.len())].clone()
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 6 } else { 8 }) {
            0 => Value::Null,
            1 => json!(self.below(2) == 0),
            2 => json!(self.below(9)),
            3 => json!(-3.5),
            4 => json!(""),
            5 => json!(self.pick(&["a", "b", "a b", "\"", "ü"])),
            6 => json!([self.value(0)]),
            _ => json!({ "a": self.value(0) }),
        }
    }

    fn schemas(&mut self, depth: usize) -> Value {
        (0..=self.below(3)).map(|_| self.schema(depth)).collect()
    }

    fn named(&mut self, depth: usize) -> Value {
        let mut fields = Map::new();
        for _ in 0..self.below(3) {
            fields.insert(self.pick(&["a", "b", "c", "d e"]).into(), self.schema(depth));
        }
        Value::Object(fields)
    }

    fn schema(&mut self, depth: usize) -> Value {
        if self.below(12) == 0 {
            return json!(self.below(6) != 0);
        }
        let mut fields = Map::new();
        if self.below(3) != 0 {
            let types = ["null", "boolean", "number", "integer", "string", "array", "object"];
            let one = json!(self.pick(&types));
            fields.insert("type".into(), if self.below(4) == 0 { json!([one, "null"]) } else { one });
        }
        for _ in 0..=self.below(3) {
            let (key, value) = self.keyword(depth);
            fields.insert(key.into(), value);
        }
        if fields.get("type").and_then(Value::as_array).is_some_and(|types| types[0] == types[1]) {
            fields.remove("type");
        }
        Value::Object(fields)
    }

    fn keyword(&mut self, depth: usize) -> (&'static str, Value) {
        let inner = depth.saturating_sub(1);
        let nests = if depth == 0 { 14 } else { 29 };
        match self.below(nests) {
            0 => ("const", self.value(1)),
            1 => {
                let mut values: Vec<Value> = (0..=self.below(3)).map(|_| self.value(1)).collect();
                values.dedup();
                ("enum", values.into())
            }
            2 => ("minimum", json!(self.below(9))),
            3 => ("maximum", json!(self.below(99))),
            4 => ("multipleOf", json!(1 + self.below(5))),
            5 => ("minLength", json!(self.below(4))),
            6 => ("maxLength", json!(self.below(9))),
            7 => ("pattern", json!(self.pick(&["^a", "b$", "[0-9]{2}", "^(?!a)", "^(a|b)*$", "\\d+-\\w"]))),
            8 => ("format", json!(self.pick(&["date", "time", "email", "uuid", "ipv4", "hostname", "regex", "none"]))),
            9 => ("minItems", json!(self.below(4))),
            10 => ("maxItems", json!(self.below(5))),
            11 => ("uniqueItems", json!(true)),
            12 => ("required", json!([self.pick(&["a", "b", "c"])])),
            13 => (self.pick(&["minProperties", "maxProperties"]), json!(self.below(4))),
            14 => ("not", self.schema(inner)),
            15 => ("anyOf", self.schemas(inner)),
            16 => ("oneOf", self.schemas(inner)),
            17 => ("allOf", self.schemas(inner)),
            18 => ("if", self.schema(inner)),
            19 => ("then", self.schema(inner)),
            20 => ("else", self.schema(inner)),
            21 => ("contains", self.schema(inner)),
            22 => ("prefixItems", self.schemas(inner)),
            23 => ("additionalProperties", self.schema(inner)),
            24 => ("propertyNames", self.schema(0)),
            25 => ("patternProperties", json!({ self.pick(&["^a", "b", "."]): self.schema(inner) })),
            26 => ("dependentRequired", json!({ "a": ["b"] })),
            27 => ("items", self.schema(inner)),
            _ => ("properties", self.named(inner)),
        }
    }
}

/// The schema of a round.
pub(crate) fn random_schema(round: u64) -> Value {
    Random(round).schema(3)
}

#[test]
fn random_schemas_are_refused_or_have_valid_replies_only() {
    let mut rounds = fuzz::rounds(300);
    let bench = Bench::new();
    let (mut accepted, mut seed) = (0, 11);
    for round in &mut rounds {
        let schema = random_schema(round);
        let Ok(valid) = jsonschema::options().should_validate_formats(true).build(&schema) else { continue };
        let Ok(grammar) = bench.grammar(&schema) else { continue };
        accepted += 1;
        let shortest = bench.text(&grammar.closing().unwrap());
        let (least, mut texts) = (grammar.shortest(), vec![shortest]);
        for most in [least, least + 3, least.max(40)] {
            let text = bench.answer(grammar.clone(), most, &mut seed);
            texts.push(text.unwrap_or_else(|error| panic!("schema {round} {schema} within {most}: {error}")));
        }
        for text in texts {
            let is_valid = serde_json::from_str(&text).is_ok_and(|value| valid.is_valid(&value));
            let is_huge =
                serde_json::from_str::<Value>(&text).is_err_and(|error| error.to_string().starts_with("number out"));
            assert!(is_valid || is_huge || is_beyond_precision(&text), "schema {round} {schema}: {text}");
        }
    }
    let rounds = rounds.done();
    println!("{accepted} of {rounds} random schemas are accepted");
    assert!(accepted * 5 > rounds, "{accepted} of {rounds}");
}

/// Values where a schema or a keyword expects something else, and keywords with extreme values.
fn odd(random: &mut Random) -> Value {
    random.pick(&[
        Value::Null,
        json!(true),
        json!(false),
        json!(-1),
        json!(u64::MAX),
        json!(1e300),
        json!(0.1),
        json!(""),
        json!("\u{0}\u{202e}(["),
        json!("^(a{1000}){1000}$"),
        json!("(((((((((((a*)*)*)*)*)*)*)*)*)*)*"),
        json!("[\\s\\S]{0,99999999}"),
        json!("#"),
        json!("#/$defs/node/x"),
        json!("#/%zz"),
        json!([]),
        json!([[]]),
        json!({}),
        json!({ "$ref": "#" }),
        json!({ "allOf": [{ "$ref": "#" }, { "$ref": "#" }] }),
        json!({ "type": "integer", "minimum": 9_007_199_254_740_993_i64, "maximum": -9_007_199_254_740_993_i64 }),
    ])
}

/// A value somewhere within a value.
fn inside<'a>(value: &'a mut Value, random: &mut Random) -> &'a mut Value {
    let count = match &*value {
        Value::Object(fields) => fields.len(),
        Value::Array(values) => values.len(),
        _ => 0,
    };
    if count == 0 || random.below(5) == 0 {
        return value;
    }
    let chosen = random.below(count);
    let next = match value {
        Value::Object(fields) => fields.values_mut().nth(chosen),
        other => other.get_mut(chosen),
    };
    inside(next.unwrap(), random)
}

#[test]
fn damaged_schemas_are_refused_or_have_a_shortest_reply() {
    let mut rounds = fuzz::rounds(300);
    let bench = Bench::new();
    let sound = [everyday(), validated()].concat();
    let mut accepted = 0;
    for round in &mut rounds {
        let mut random = Random(round);
        let mut schema = random.pick(&sound);
        for _ in 0..=random.below(3) {
            let new = if random.below(3) == 0 { random.schema(2) } else { odd(&mut random) };
            let place = inside(&mut schema, &mut random);
            match (random.below(3), place) {
                (0, Value::Object(fields)) => drop(fields.insert(random.keyword(1).0.to_owned(), new)),
                (1, Value::Array(values)) => values.push(new),
                (_, place) => *place = new,
            }
        }
        let Ok(grammar) = bench.grammar(&schema) else { continue };
        accepted += 1;
        let text = bench.text(&grammar.closing().unwrap_or_else(|error| panic!("round {round} {schema}: {error}")));
        let read = serde_json::from_str::<Value>(&text);
        let is_json = read.as_ref().map_or_else(|error| error.to_string().starts_with("number out"), |_| true);
        assert!(is_json, "round {round} {schema}: {text}");
    }
    let rounds = rounds.done();
    println!("{accepted} of {rounds} damaged schemas are accepted");
    assert!(accepted > rounds / 10 && accepted < rounds, "{accepted} of {rounds}");
}

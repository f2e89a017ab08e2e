//! Measures public suites of schemas: which are accepted, and whether replies and instances are judged rightly.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Map, Value};

use super::tests::Bench;

/// Outcomes for the schemas of one group.
#[derive(Debug, Default)]
struct Tally {
    schemas: usize,
    accepted: usize,
    /// Refused, and all instances of the suite are invalid too.
    impossible: usize,
    /// Accepted schemas of which the grammar enforces everything.
    enforced: usize,
    /// Random replies of accepted schemas; the invalid ones, and those that have no end within their limit.
    replies: usize,
    invalid: usize,
    failed: usize,
    /// Instances of accepted schemas that the suite calls valid or invalid, and how many of them are judged otherwise.
    good: usize,
    rejected: usize,
    bad: usize,
    passed: usize,
    slowest_ms: u128,
}

impl Tally {
    fn row(&self, name: &str) -> String {
        let share = 100.0 * self.accepted as f64 / (self.schemas - self.impossible).max(1) as f64;
        format!(
            "| {name} | {} | {} | {} | {share:.1} % | {} | {} | {} | {} | {} of {} | {} of {} | {} |",
            self.schemas,
            self.impossible,
            self.accepted,
            self.enforced,
            self.replies,
            self.invalid,
            self.failed,
            self.rejected,
            self.good,
            self.passed,
            self.bad,
            self.slowest_ms
        )
    }

    fn add(&mut self, other: &Tally) {
        let Tally {
            schemas,
            impossible,
            accepted,
            enforced,
            replies,
            invalid,
            failed,
            good,
            rejected,
            bad,
            passed,
            slowest_ms,
        } = other;
        for (sum, more) in [
            (&mut self.schemas, schemas),
            (&mut self.impossible, impossible),
            (&mut self.accepted, accepted),
            (&mut self.enforced, enforced),
            (&mut self.replies, replies),
            (&mut self.invalid, invalid),
            (&mut self.failed, failed),
            (&mut self.good, good),
            (&mut self.rejected, rejected),
            (&mut self.bad, bad),
            (&mut self.passed, passed),
        ] {
            *sum += more;
        }
        self.slowest_ms = self.slowest_ms.max(*slowest_ms);
    }
}

struct Suites {
    bench: Bench,
    /// Documents that schemas of the suite refer to, by address.
    remotes: Vec<(String, Value)>,
    groups: BTreeMap<String, Tally>,
    /// Numbers of schemas by the cause of their refusal.
    refusals: BTreeMap<String, usize>,
    random: u64,
}

impl Suites {
    /// Tries one schema with its instances: an array of `{data, valid}`, or null.
    fn try_schema(&mut self, group: &str, name: &str, schema: &Value, instances: &Value) {
        let schema = &bundled(schema, &self.remotes);
        let tally = self.groups.entry(group.to_owned()).or_default();
        tally.schemas += 1;
        let valid = jsonschema::options().should_validate_formats(true).build(schema);
        let start = Instant::now();
        let grammar = match self.bench.grammar(schema) {
            Ok(grammar) => grammar,
            Err(error) => {
                println!("refused {group} {name}: {}", error.chars().take(300).collect::<String>());
                let mut judged =
                    instances.as_array().into_iter().flatten().map(|instance| &instance["valid"]).peekable();
                let is_impossible = judged.peek().is_some() && judged.all(|valid| valid == &Value::Bool(false));
                tally.impossible += usize::from(is_impossible);
                if !is_impossible {
                    *self.refusals.entry(cause(&error)).or_default() += 1;
                }
                return;
            }
        };
        tally.slowest_ms = tally.slowest_ms.max(start.elapsed().as_millis());
        tally.accepted += 1;
        tally.enforced += usize::from(!grammar.is_validated());
        let shortest = grammar.shortest();
        for most in [shortest, shortest + 1, shortest + 7, shortest.max(120)] {
            tally.replies += 1;
            let text = match self.bench.answer(grammar.clone(), most, &mut self.random) {
                Ok(text) => text,
                Err(error) => {
                    tally.failed += 1;
                    println!("failed {group} {name} within {most}: {error}");
                    continue;
                }
            };
            // JSON allows numbers outside the range of 64-bit floats.
            let is_valid = match (&valid, serde_json::from_str::<Value>(&text)) {
                (Ok(valid), Ok(value)) => valid.is_valid(&value) || is_beyond_precision(&text),
                (Err(_), Ok(_)) => true,
                (_, Err(error)) => error.to_string().starts_with("number out of range"),
            };
            if !is_valid {
                tally.invalid += 1;
                println!("invalid {group} {name}: {}", text.chars().take(300).collect::<String>());
            }
        }
        for instance in instances.as_array().into_iter().flatten() {
            let data = ordered(schema, &instance["data"]);
            let text = data.to_string();
            let mut grammar = grammar.clone();
            let tokens = self.bench.tokenizer.encode(&text).unwrap();
            let is_read = tokens.iter().all(|token| grammar.accept(*token).is_ok());
            // A completion of a text that is not valid is not empty.
            let passes = is_read && grammar.closing().is_ok_and(|rest| rest.is_empty());
            match instance["valid"].as_bool() {
                Some(true) => {
                    tally.good += 1;
                    tally.rejected += usize::from(!passes);
                    if !passes {
                        println!("rejected {group} {name}: {}", text.chars().take(300).collect::<String>());
                    }
                }
                Some(false) => {
                    tally.bad += 1;
                    tally.passed += usize::from(passes);
                    if passes {
                        println!("passed {group} {name}: {}", text.chars().take(300).collect::<String>());
                    }
                }
                None => {}
            }
        }
    }

    fn report(&self) -> String {
        let mut text = String::from(
            "| group | schemas | impossible | accepted | share of the possible | wholly enforced | replies | invalid | failed | valid instances \
             rejected | invalid instances passed | slowest compilation, ms |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n",
        );
        let mut all = Tally::default();
        for (name, tally) in &self.groups {
            all.add(tally);
            let _ = writeln!(text, "{}", tally.row(name));
        }
        let _ = writeln!(text, "{}\n\n| refused | cause |\n|---|---|", all.row("all"));
        let mut causes: Vec<_> = self.refusals.iter().collect();
        causes.sort_by_key(|(_, number)| std::cmp::Reverse(**number));
        for (cause, number) in causes {
            let _ = writeln!(text, "| {number} | {cause} |");
        }
        text
    }
}

/// True if a text has a number with more digits than 64-bit floats distinguish: the validator sees another number.
pub(super) fn is_beyond_precision(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_digit() && c != '.').any(|digits| digits.len() > 16)
}

/// The cause of a refusal without its place and values.
fn cause(error: &str) -> String {
    let error = if error.starts_with('/') { error.split_once(": ").map_or(error, |(_, rest)| rest) } else { error };
    let (mut plain, mut quoted) = (String::new(), false);
    for c in error.chars().take(160) {
        match c {
            '"' | '`' => {
                quoted = !quoted;
                plain.push(c);
            }
            _ if quoted || c == '|' => {}
            c if c.is_ascii_digit() => plain.push('0'),
            c => plain.push(c),
        }
    }
    plain
}

/// A value with its keys in the order of the schema's properties: a grammar requires that order.
fn ordered(schema: &Value, value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let empty = Map::new();
            let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
            let named = properties.keys().filter_map(|key| fields.get_key_value(key));
            let others = fields.iter().filter(|(key, _)| !properties.contains_key(*key));
            let of =
                |key: &str| properties.get(key).or_else(|| schema.get("additionalProperties")).unwrap_or(&Value::Null);
            named.chain(others).map(|(key, value)| (key.clone(), ordered(of(key), value))).collect()
        }
        Value::Array(values) => {
            let items = schema.get("items").unwrap_or(&Value::Null);
            values.iter().map(|value| ordered(items, value)).collect()
        }
        value => value.clone(),
    }
}

/// A schema with the documents that it refers to among its definitions (JSON Schema 2020-12, 9.3): none is ever fetched.
fn bundled(schema: &Value, remotes: &[(String, Value)]) -> Value {
    let mut out = schema.clone();
    let mut text = schema.to_string();
    let mut added = vec![false; remotes.len()];
    while let Some(next) = (0..remotes.len()).find(|at| {
        let name = remotes[*at].0.rsplit('/').next().unwrap_or_default();
        !added[*at] && text.contains(name)
    }) {
        added[next] = true;
        let (address, mut document) = remotes[next].clone();
        text += &document.to_string();
        let Some(fields) = document.as_object_mut() else { continue };
        fields.entry("$id").or_insert_with(|| address.as_str().into());
        let Some(root) = out.as_object_mut() else { continue };
        if let Some(definitions) = root.entry("$defs").or_insert_with(|| Map::new().into()).as_object_mut() {
            definitions.insert(address, document);
        }
    }
    out
}

/// The documents of a folder that is served at `http://localhost:1234`, as JSON-Schema-Test-Suite asks for.
fn remotes(folder: &Path) -> Vec<(String, Value)> {
    let mut paths = Vec::new();
    files(folder, &mut paths);
    paths.sort();
    let read = |path: &PathBuf| {
        let name = path.strip_prefix(folder).ok()?.to_string_lossy().into_owned();
        Some((format!("http://localhost:1234/{name}"), serde_json::from_slice(&std::fs::read(path).ok()?).ok()?))
    };
    paths.iter().filter_map(read).filter(|(address, _)| address.contains("draft2020-12")).collect()
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|end| end == "json") {
            found.push(path);
        }
    }
}

/// Runs the schemas of a folder and its subfolders: files that are schemas, that hold one as `schema` with instances as
/// `tests` (JSONSchemaBench), or that hold a list of such (JSON-Schema-Test-Suite). Groups are subfolders, or what
/// precedes `---` in a file's name. `SCHEMAS_EVERY=n` takes every n-th file only. `SCHEMAS_REMOTES` names a folder of
/// documents at `http://localhost:1234` that schemas refer to.
#[test]
#[ignore = "needs a folder of schemas in SCHEMAS"]
fn schemas_of_a_folder() {
    let folder = PathBuf::from(std::env::var("SCHEMAS").expect("SCHEMAS names a folder of JSON schemas"));
    let every = std::env::var("SCHEMAS_EVERY").ok().and_then(|every| every.parse().ok()).unwrap_or(1);
    let remotes = std::env::var("SCHEMAS_REMOTES").map_or_else(|_| Vec::new(), |folder| remotes(Path::new(&folder)));
    let (groups, refusals) = (BTreeMap::new(), BTreeMap::new());
    let mut suites = Suites { bench: Bench::new(), remotes, groups, refusals, random: 7 };
    let mut paths = Vec::new();
    files(&folder, &mut paths);
    paths.sort();
    for path in paths.iter().step_by(every) {
        let name = path.strip_prefix(&folder).unwrap().to_string_lossy();
        let Ok(value) = serde_json::from_slice::<Value>(&std::fs::read(path).unwrap()) else { continue };
        let folder_of = name.rsplit_once('/').map_or("", |(folder, _)| folder);
        match &value {
            Value::Array(cases) => {
                for case in cases {
                    let group = name.trim_end_matches(".json");
                    suites.try_schema(group, &case["description"].to_string(), &case["schema"], &case["tests"]);
                }
            }
            Value::Object(fields) => {
                let file = path.file_name().unwrap().to_string_lossy();
                let group = file.split_once("---").map(|(group, _)| group);
                let group =
                    group.or_else(|| file.split_once('_').map(|(group, _)| group).filter(|_| folder_of.is_empty()));
                let schema = fields.get("schema").filter(|_| fields.contains_key("tests")).unwrap_or(&value);
                let instances = fields.get("tests").unwrap_or(&Value::Null);
                suites.try_schema(group.unwrap_or(folder_of), &name, schema, instances);
            }
            _ => {}
        }
    }
    println!("{}", suites.report());
    let failed: usize = suites.groups.values().map(|tally| tally.failed + tally.invalid).sum();
    assert_eq!(failed, 0, "replies that are invalid or have no end");
}

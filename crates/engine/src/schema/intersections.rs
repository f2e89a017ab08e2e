//! How many patterns apply to the same text: the work of llguidance's intersection of patterns doubles with each.

use std::collections::HashMap;

use serde_json::Value;

use super::check::children;

/// Maximum number of patterns that apply to the same text.
const MAX_PATTERNS: usize = 12;

/// Checks a rewritten schema.
///
/// # Errors
/// If more than [`MAX_PATTERNS`] patterns apply to the same text.
pub(crate) fn check_intersections(schema: &Value) -> Result<(), String> {
    let mut intersections = Intersections { root: schema, by_reference: HashMap::new() };
    let mut pending = vec![schema];
    while let Some(schema) = pending.pop() {
        if intersections.patterns(schema) > MAX_PATTERNS {
            return Err(format!("more than {MAX_PATTERNS} patterns apply to the same text"));
        }
        let Some(fields) = schema.as_object() else { continue };
        pending.extend(children(fields));
        pending.extend(fields.get("$defs").and_then(Value::as_object).into_iter().flat_map(|named| named.values()));
    }
    Ok(())
}

struct Intersections<'a> {
    root: &'a Value,
    /// The patterns of schemas that references lead to; zero while they are counted.
    by_reference: HashMap<&'a str, usize>,
}

impl<'a> Intersections<'a> {
    /// The most patterns that a schema applies to a text.
    fn patterns(&mut self, schema: &'a Value) -> usize {
        let list = |key: &str| schema.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let all: usize = list("allOf").iter().map(|one| self.patterns(one)).sum();
        let any = list("anyOf").iter().map(|one| self.patterns(one)).max().unwrap_or(0);
        let one = list("oneOf").iter().map(|one| self.patterns(one)).max().unwrap_or(0);
        let referred = schema.get("$ref").and_then(Value::as_str).map_or(0, |reference| self.referred(reference));
        usize::from(schema.get("pattern").is_some()) + all + any + one + referred
    }

    fn referred(&mut self, reference: &'a str) -> usize {
        if let Some(known) = self.by_reference.get(reference) {
            return *known;
        }
        self.by_reference.insert(reference, 0);
        let target = self.root.pointer(reference.trim_start_matches('#'));
        let patterns = target.map_or(0, |target| self.patterns(target));
        self.by_reference.insert(reference, patterns);
        patterns
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patterns_that_apply_to_the_same_text_are_limited() {
        let patterns =
            |number: usize| -> Value { (0..number).map(|at| json!({ "pattern": format!("{at}") })).collect() };
        let accepted = |schema: Value| check_intersections(&schema).is_ok();
        for (number, is_accepted) in [(MAX_PATTERNS, true), (MAX_PATTERNS + 1, false)] {
            assert_eq!(accepted(json!({ "allOf": patterns(number) })), is_accepted);
            assert_eq!(accepted(json!({ "properties": { "a": { "allOf": patterns(number) } } })), is_accepted);
            assert_eq!(
                accepted(json!({ "pattern": "a", "anyOf": [{}, { "allOf": patterns(number - 1) }] })),
                is_accepted
            );
            let chain: serde_json::Map<String, Value> = (1..=number)
                .map(|at| (at.to_string(), json!({ "pattern": at.to_string(), "$ref": format!("#/$defs/{}", at + 1) })))
                .collect();
            assert_eq!(accepted(json!({ "$ref": "#/$defs/1", "$defs": chain })), is_accepted);
        }
        // Alternatives and fields apply to different texts.
        assert!(accepted(json!({ "anyOf": patterns(99), "items": { "pattern": "a" } })));
        assert!(accepted(json!({ "pattern": "a", "allOf": [{ "$ref": "#" }] })));
    }
}

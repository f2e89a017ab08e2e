//! An upper bound of the work that validation of a value is.
//!
//! jsonschema applies a subschema as often as paths lead to it: two references to the same schema double the work with each
//! level of a value, and a schema of one kilobyte can take hours. The subschemas that apply to a value are counted first,
//! without validating anything.

use std::collections::HashMap;

use referencing::{Draft, Error, Resolver, SPECIFICATIONS};
use serde_json::{Map, Value};

/// The subschemas of a schema; the first is the root.
#[derive(Debug)]
pub(crate) struct Visits {
    subschemas: Vec<Subschema>,
}

/// The subschemas that a subschema applies.
#[derive(Debug, Default)]
struct Subschema {
    /// To the same value.
    same: Vec<usize>,
    /// To the value of one field.
    field: HashMap<String, usize>,
    /// Perhaps to the values of all fields.
    fields: Vec<usize>,
    /// To the names of all fields.
    names: Vec<usize>,
    /// To the items at the first positions.
    first_items: Vec<usize>,
    /// Perhaps to all items.
    items: Vec<usize>,
}

impl Visits {
    /// The subschemas of a valid schema.
    ///
    /// # Errors
    /// If its references cannot be resolved.
    pub fn new(schema: &Value) -> Result<Visits, Error> {
        let root = Draft::default().detect(schema).create_resource_ref(schema);
        let registry = SPECIFICATIONS.add(BASE, root)?.draft(root.draft()).prepare()?;
        let resolver = registry.resolver(referencing::uri::from_str(BASE)?);
        let mut reader = Reader { known: HashMap::new(), pending: Vec::new(), draft: root.draft() };
        reader.number(schema, &resolver);
        let mut subschemas = Vec::new();
        while let Some((number, schema, resolver)) = reader.pending.pop() {
            let subschema = reader.read(schema, &resolver)?;
            if subschemas.len() <= number {
                subschemas.resize_with(number + 1, Subschema::default);
            }
            subschemas[number] = subschema;
        }
        Ok(Visits { subschemas })
    }

    /// How often subschemas are applied to a value and its parts, at most `limit`.
    pub fn count(&self, value: &Value, limit: usize) -> usize {
        let mut pending = vec![(0, value, 0)];
        let mut count = 1;
        while let Some((number, value, depth)) = pending.pop() {
            let schema = &self.subschemas[number];
            // jsonschema does not follow references that lead back to the same schema with the same value.
            if depth < self.subschemas.len() {
                count += schema.same.len();
                pending.extend(schema.same.iter().map(|number| (*number, value, depth + 1)));
            }
            let parts = schema.parts(value);
            parts.take(limit.saturating_sub(count)).for_each(|(number, part)| {
                count += 1;
                pending.push((number, part, 0));
            });
            if count >= limit {
                return limit;
            }
        }
        count
    }
}

impl Subschema {
    /// The parts of a value that subschemas are applied to.
    fn parts<'a>(&'a self, value: &'a Value) -> Box<dyn Iterator<Item = (usize, &'a Value)> + 'a> {
        match value {
            Value::Object(fields) => Box::new(fields.iter().flat_map(|(name, value)| {
                let names = self.names.iter().map(|number| (*number, &Value::Null));
                self.field.get(name).into_iter().chain(&self.fields).map(move |number| (*number, value)).chain(names)
            })),
            Value::Array(items) => Box::new(items.iter().enumerate().flat_map(|(at, item)| {
                self.first_items.get(at).into_iter().chain(&self.items).map(move |number| (*number, item))
            })),
            _ => Box::new(std::iter::empty()),
        }
    }
}

/// Base address of references in a schema without an address of its own.
const BASE: &str = "json-schema:///";

struct Reader<'a> {
    /// The numbers of subschemas by their address in memory.
    known: HashMap<*const Value, usize>,
    pending: Vec<(usize, &'a Value, Resolver<'a>)>,
    draft: Draft,
}

impl<'a> Reader<'a> {
    /// The number of a subschema, which is read later.
    fn number(&mut self, schema: &'a Value, resolver: &Resolver<'a>) -> usize {
        let next = self.known.len();
        *self.known.entry(std::ptr::from_ref(schema)).or_insert_with(|| {
            self.pending.push((next, schema, resolver.clone()));
            next
        })
    }

    fn read(&mut self, schema: &'a Value, resolver: &Resolver<'a>) -> Result<Subschema, Error> {
        let mut found = Subschema::default();
        let Some(keywords) = schema.as_object() else { return Ok(found) };
        let resolver = &resolver.in_subresource(self.draft.create_resource_ref(schema))?;
        for (keyword, value) in keywords {
            match (keyword.as_str(), value) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                    let target = resolver.lookup(reference)?;
                    found.same.push(self.number(target.contents(), target.resolver()));
                }
                ("allOf" | "anyOf" | "oneOf", Value::Array(all)) => {
                    found.same.extend(all.iter().map(|one| self.number(one, resolver)));
                }
                ("not" | "if" | "then" | "else", one) => found.same.push(self.number(one, resolver)),
                ("dependentSchemas" | "dependencies", Value::Object(named)) => {
                    found.same.extend(named.values().map(|one| self.number(one, resolver)));
                }
                ("properties", Value::Object(named)) => {
                    found.field = named.iter().map(|(name, one)| (name.clone(), self.number(one, resolver))).collect();
                }
                ("patternProperties", Value::Object(named)) => {
                    found.fields.extend(named.values().map(|one| self.number(one, resolver)));
                }
                ("additionalProperties" | "unevaluatedProperties", one) => {
                    found.fields.push(self.number(one, resolver));
                }
                ("propertyNames", one) => found.names.push(self.number(one, resolver)),
                ("prefixItems" | "items", Value::Array(all)) => {
                    found.first_items = all.iter().map(|one| self.number(one, resolver)).collect();
                }
                ("items" | "additionalItems" | "unevaluatedItems" | "contains", one) => {
                    found.items.push(self.number(one, resolver));
                }
                _ => {}
            }
        }
        // What is evaluated elsewhere is found by validating it again.
        if is_unevaluated(keywords) {
            found.same.extend_from_within(..);
        }
        Ok(found)
    }
}

fn is_unevaluated(keywords: &Map<String, Value>) -> bool {
    keywords.contains_key("unevaluatedProperties") || keywords.contains_key("unevaluatedItems")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn count(schema: &Value, value: &Value) -> usize {
        Visits::new(schema).unwrap().count(value, 1_000)
    }

    #[test]
    fn each_subschema_that_applies_to_a_part_of_a_value_is_counted() {
        let named = json!({ "properties": { "a": {}, "b": { "items": {} } }, "additionalProperties": false });
        assert_eq!(count(&named, &json!(1)), 1);
        // Whether additional properties are is not known without validation.
        assert_eq!(count(&named, &json!({ "a": 1, "c": 1 })), 1 + 2 + 1);
        assert_eq!(count(&named, &json!({ "b": [1, 2, 3] })), 1 + 2 + 3);
        let items = json!({ "prefixItems": [{}, {}], "contains": {} });
        assert_eq!(count(&items, &json!([1, 2, 3])), 1 + 3 + 2);
        assert_eq!(count(&json!({ "propertyNames": { "not": {} } }), &json!({ "a": 1 })), 1 + 2);
        assert_eq!(count(&json!({ "allOf": [{}], "if": {}, "then": {}, "not": {} }), &json!(1)), 1 + 4);
    }

    #[test]
    fn references_of_every_kind_are_followed() {
        let two = json!({ "allOf": [true, true] });
        for reference in ["#/$defs/two", "#named", "http://x.org/two", "two"] {
            let mut two = two.clone();
            two["$anchor"] = "named".into();
            if !reference.starts_with('#') {
                two["$id"] = "http://x.org/two".into();
            }
            let schema = json!({ "$id": "http://x.org/one", "$defs": { "two": two }, "$ref": reference });
            assert_eq!(count(&schema, &json!(1)), 1 + 1 + 2, "{reference}");
        }
    }

    #[test]
    fn a_schema_may_refer_to_a_meta_schema() {
        // The root, the meta-schema, what it has for `not`, and the meta-schema again.
        assert_eq!(count(&json!({ "$ref": "http://json-schema.org/draft-07/schema#" }), &json!({ "not": {} })), 4);
    }

    #[test]
    fn references_to_the_same_schema_multiply_up_to_the_limit() {
        let twice = json!({ "properties": { "a": { "allOf": [{ "$ref": "#" }, { "$ref": "#" }] } } });
        let mut value = json!({});
        let mut counts = Vec::new();
        for _ in 0..60 {
            counts.push(count(&twice, &value));
            value = json!({ "a": value });
        }
        assert_eq!(counts[..3], [1, 1 + 1 + 2 + 2, 1 + 5 + 10]);
        assert_eq!(counts.last(), Some(&1_000));
        // References that lead nowhere else end.
        assert!(count(&json!({ "allOf": [{ "$ref": "#" }] }), &json!(1)) < 10);
    }
}

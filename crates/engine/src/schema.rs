//! JSON schemas in the form that llguidance enforces.
//!
//! A schema is rewritten before it is compiled: references of every kind become plain pointers into `$defs`, formats
//! that llguidance lacks or accepts too broadly become patterns, and keywords with an equivalent that it supports are
//! replaced by it. Keywords that a grammar cannot enforce are omitted, so the grammar allows more than the schema: what
//! is allowed beyond it is refused token by token ([`Check`]).

mod check;
mod equivalents;
mod extent;
mod formats;
mod intersections;
mod keys;
mod patterns;
mod references;

use serde_json::{Map, Value, json};

pub(crate) use check::Check;
use equivalents::{
    at_least_one, beyond_complement, complement, has_one_item_at_most, names, names_are_required, whole,
    without_negative_zero,
};
pub(crate) use extent::{Extent, extents};
use extent::{has_irregular_names, is_huge, is_irregular};
pub(crate) use intersections::check_intersections;
use references::{Location, References, location_of};

/// A schema that is ready to compile.
pub(crate) struct Prepared {
    pub schema: Value,
    /// The locations of keywords that the grammar does not enforce.
    pub unchecked: Vec<String>,
    /// The locations of `oneOf`, which a grammar enforces only if the alternatives are plainly disjoint.
    pub alternatives: Vec<String>,
}

/// Rewrites a schema.
///
/// # Errors
/// The location of what cannot be rewritten, and the cause.
pub(crate) fn prepare(schema: &Value, extent: Extent) -> Result<Prepared, String> {
    let mut rewriter = Rewriter {
        extent,
        references: References::new(schema),
        unchecked: Vec::new(),
        alternatives: Vec::new(),
        definitions: Map::new(),
    };
    let mut root = rewriter.rewrite(schema, &Location::default())?;
    while let Some((name, place)) = rewriter.references.next_pending() {
        let target = rewriter.references.value(&place).clone();
        let definition = rewriter.rewrite(&target, &place)?;
        rewriter.definitions.insert(name, definition);
    }
    if let Some(root) = root.as_object_mut().filter(|_| !rewriter.definitions.is_empty()) {
        root.insert("$defs".into(), Value::Object(rewriter.definitions));
    }
    Ok(Prepared { schema: root, unchecked: rewriter.unchecked, alternatives: rewriter.alternatives })
}

struct Rewriter<'a> {
    extent: Extent,
    references: References<'a>,
    unchecked: Vec<String>,
    alternatives: Vec<String>,
    definitions: Map<String, Value>,
}

impl Rewriter<'_> {
    fn rewrite(&mut self, schema: &Value, place: &Location) -> Result<Value, String> {
        let Some(fields) = schema.as_object() else { return Ok(schema.clone()) };
        let place = &location_of(place, fields);
        let mut out = Map::new();
        if let Some(alone) = self.only_references(fields, place)? {
            return Ok(alone);
        }
        // Conditions beside the others.
        let mut also = Vec::new();
        for (key, value) in fields {
            let at = place.child(key);
            match key.as_str() {
                "$ref" => {
                    let target = self.references.resolve(value, place).map_err(|error| format!("{at}: {error}"))?;
                    out.insert("$ref".into(), target.into());
                }
                "$dynamicRef" | "$recursiveRef" => {
                    let target = self.references.resolve(value, place).map_err(|error| format!("{at}: {error}"))?;
                    also.push(json!({ "$ref": target }));
                    self.unchecked.push(at.to_string());
                }
                "pattern" if is_irregular(value, self.extent) => self.unchecked.push(at.to_string()),
                "pattern" => {
                    out.insert(
                        key.clone(),
                        value.as_str().map_or_else(|| value.clone(), |it| patterns::plain(it).into()),
                    );
                }
                "multipleOf" if patterns::digits_behind_point(value) > MAX_FRACTION_DIGITS => {
                    self.unchecked.push(at.to_string());
                }
                "patternProperties" | "additionalProperties" if has_irregular_names(fields, self.extent) => {
                    self.unchecked.push(at.to_string());
                }
                "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" if is_huge(value) => {
                    self.unchecked.push(at.to_string());
                }
                "minItems" | "maxItems" | "minLength" | "maxLength" => {
                    out.insert(key.clone(), whole(value));
                }
                "properties" => {
                    out.insert(key.clone(), self.rewrite_fields(value, &at)?.into());
                }
                "patternProperties" => {
                    out.insert(key.clone(), self.rewrite_patterns(value, &at)?.into());
                }
                "additionalProperties" => {
                    out.insert(key.clone(), self.rewrite(value, &at)?);
                }
                "items" | "additionalItems" if !value.is_array() => {
                    out.insert(key.clone(), self.rewrite(value, &at)?);
                }
                "allOf" | "anyOf" | "oneOf" | "prefixItems" | "items" | "additionalItems" => {
                    if key == "oneOf" {
                        self.alternatives.push(at.to_string());
                    }
                    out.insert(key.clone(), self.rewrite_all(value, &at)?);
                }
                "format" => {
                    // Whether a text is a regular expression is not a regular property.
                    if value == "regex" {
                        self.unchecked.push(at.to_string());
                    }
                    also.extend(Self::format(value, fields, &mut out));
                }
                "uniqueItems" if value == &json!(true) && !has_one_item_at_most(fields) => {
                    self.unchecked.push(at.to_string());
                }
                "not" => also.extend(self.negation(value, &at)),
                "minProperties" | "maxProperties" => {
                    if names_are_required(fields) {
                        out.insert(key.clone(), whole(value));
                    } else if let Some(equal) = at_least_one(key, value, fields) {
                        also.push(equal);
                    } else {
                        self.unchecked.push(at.to_string());
                    }
                }
                "dependencies" | "dependentRequired" | "dependentSchemas" => match self.dependencies(value, &at)? {
                    Some(equal) => also.extend(equal),
                    None => self.unchecked.push(at.to_string()),
                },
                "unevaluatedProperties" | "unevaluatedItems" => {
                    let plain = if key == "unevaluatedItems" { "items" } else { "additionalProperties" };
                    // Names by patterns that are not enforced would be forbidden.
                    let forbids_names = plain != "items" && has_irregular_names(fields, self.extent);
                    let is_plain = !fields.contains_key(plain) && !forbids_names;
                    if !is_plain || IN_PLACE.iter().any(|key| fields.contains_key(*key)) {
                        self.unchecked.push(at.to_string());
                    } else {
                        out.insert(plain.into(), self.rewrite(value, &at)?);
                    }
                }
                "if" | "contains" => self.unchecked.push(at.to_string()),
                // Without effect in the absence of the keywords above, resolved already, or handled below.
                "then" | "else" | "uniqueItems" | "propertyNames" | "minContains" | "maxContains" | "$defs"
                | "definitions" | "$id" | "id" | "$anchor" | "$dynamicAnchor" | "$recursiveAnchor" | "$vocabulary" => {}
                _ => {
                    out.insert(key.clone(), value.clone());
                }
            }
        }
        self.joined(out, also, fields, place)
    }

    /// The rewritten fields with the conditions beside them, names of properties among them.
    fn joined(
        &mut self,
        mut out: Map<String, Value>,
        mut also: Vec<Value>,
        fields: &Map<String, Value>,
        place: &Location,
    ) -> Result<Value, String> {
        if let Some(value) = fields.get("propertyNames") {
            match names(value, &out, self.extent) {
                Some(equal) => also.push(equal),
                None => self.unchecked.push(place.child("propertyNames").to_string()),
            }
        }
        also.extend(without_negative_zero(fields));
        if !also.is_empty() {
            match out.entry("allOf").or_insert_with(|| json!([])) {
                Value::Array(all) => all.extend(also),
                _ => return Err(format!("{}: it must be an array", place.child("allOf"))),
            }
        }
        Ok(Value::Object(out))
    }

    /// References alone in the reduced extent, if there are any.
    fn only_references(&mut self, fields: &Map<String, Value>, place: &Location) -> Result<Option<Value>, String> {
        if self.extent != Extent::Reduced {
            return Ok(None);
        }
        if let Some(reference) = fields.get("$ref") {
            return self.only_reference(reference, fields, place).map(Some);
        }
        let key = ["anyOf", "oneOf", "allOf"].into_iter().find(|key| refers(fields.get(*key)));
        key.map(|key| self.only_alternatives(key, fields, place)).transpose()
    }

    /// A reference alone; the keywords beside it are not enforced.
    fn only_reference(
        &mut self,
        value: &Value,
        fields: &Map<String, Value>,
        place: &Location,
    ) -> Result<Value, String> {
        let at = place.child("$ref");
        let target = self.references.resolve(value, place).map_err(|error| format!("{at}: {error}"))?;
        let beside = fields.keys().filter(|key| !ANNOTATIONS.contains(&key.as_str()));
        self.unchecked.extend(beside.map(|key| place.child(key).to_string()));
        Ok(json!({ "$ref": target }))
    }

    /// Alternatives of which some are references, alone; the keywords beside them are not enforced. Of an `allOf` only its first
    /// reference is.
    fn only_alternatives(&mut self, key: &str, fields: &Map<String, Value>, place: &Location) -> Result<Value, String> {
        let at = place.child(key);
        let beside = fields.keys().filter(|other| *other != key && !ANNOTATIONS.contains(&other.as_str()));
        self.unchecked.extend(beside.map(|key| place.child(key).to_string()));
        if key != "allOf" {
            if key == "oneOf" {
                self.alternatives.push(at.to_string());
            }
            return Ok(json!({ key: self.rewrite_all(&fields[key], &at)? }));
        }
        self.unchecked.push(at.to_string());
        let mut all = fields[key].as_array().into_iter().flatten().enumerate();
        let reference = all.find(|(_, one)| one.get("$ref").is_some());
        reference.map_or(Ok(Value::Bool(true)), |(number, one)| self.rewrite(one, &at.child(&number.to_string())))
    }

    /// A consequence of the presence of keys: a key is absent, or this schema holds too. None if there are too many.
    fn dependencies(&mut self, value: &Value, place: &Location) -> Result<Option<Vec<Value>>, String> {
        let Some(rules) = value.as_object().filter(|rules| rules.len() <= MAX_DEPENDENCIES) else { return Ok(None) };
        let mut found = Vec::new();
        for (name, then) in rules {
            let then = match then {
                Value::Array(_) => json!({ "required": then }),
                _ => self.rewrite(then, &place.child(name))?,
            };
            found.push(json!({ "anyOf": [{ "properties": { name: false } }, then] }));
        }
        Ok(Some(found))
    }

    /// The negation of a schema, or what it is part of; none if all values may satisfy it.
    fn negation(&mut self, schema: &Value, place: &Location) -> Option<Value> {
        let equal = complement(schema);
        if equal.is_none() {
            self.unchecked.push(place.to_string());
        }
        equal.or_else(|| beyond_complement(schema))
    }

    fn rewrite_fields(&mut self, value: &Value, place: &Location) -> Result<Map<String, Value>, String> {
        let Some(fields) = value.as_object() else { return Err(format!("{place}: it must be an object")) };
        let rewritten = fields.iter().map(|(key, value)| Ok((key.clone(), self.rewrite(value, &place.child(key))?)));
        rewritten.collect()
    }

    /// Fields by pattern, in the syntax of llguidance.
    fn rewrite_patterns(&mut self, value: &Value, place: &Location) -> Result<Map<String, Value>, String> {
        let fields = self.rewrite_fields(value, place)?;
        Ok(fields.into_iter().map(|(pattern, value)| (patterns::plain(&pattern), value)).collect())
    }

    fn rewrite_all(&mut self, value: &Value, place: &Location) -> Result<Value, String> {
        let Some(values) = value.as_array() else { return Err(format!("{place}: it must be an array")) };
        let numbered = values.iter().enumerate();
        numbered.map(|(number, value)| self.rewrite(value, &place.child(&number.to_string()))).collect()
    }

    /// A format in llguidance's form, or the patterns that replace it; an unknown one is an annotation.
    fn format(value: &Value, fields: &Map<String, Value>, out: &mut Map<String, Value>) -> Vec<Value> {
        let Some(name) = value.as_str() else { return Vec::new() };
        let mut patterns = formats::patterns(name);
        if patterns.is_empty() && formats::ENFORCED.contains(&name) {
            out.insert("format".into(), value.clone());
        }
        if !patterns.is_empty() && !fields.contains_key("pattern") {
            out.insert("pattern".into(), patterns.remove(0).into());
        }
        patterns.into_iter().map(|pattern| json!({ "pattern": pattern })).collect()
    }
}

/// Whether one of these schemas is a reference.
fn refers(schemas: Option<&Value>) -> bool {
    schemas.and_then(Value::as_array).is_some_and(|all| all.iter().any(|one| one.get("$ref").is_some()))
}

/// Maximum number of dependencies between keys that become alternatives: each doubles their number.
const MAX_DEPENDENCIES: usize = 3;

/// Keywords that may evaluate properties or items of the same value.
const IN_PLACE: [&str; 9] =
    ["$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "contains"];

/// Keywords beside a reference that allow or forbid nothing by themselves.
const ANNOTATIONS: [&str; 16] = [
    "$ref",
    "$defs",
    "definitions",
    "$schema",
    "$id",
    "id",
    "$anchor",
    "$dynamicAnchor",
    "$comment",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
];

/// Maximum digits behind the decimal point of a divisor that llguidance divides by exactly.
const MAX_FRACTION_DIGITS: usize = 8;

#[cfg(test)]
mod tests;

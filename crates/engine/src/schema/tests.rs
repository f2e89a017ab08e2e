use super::*;

fn prepared(schema: Value) -> Value {
    let prepared = prepare(&schema, Extent::Full).unwrap();
    assert_eq!(prepared.unchecked, [""; 0], "{schema}");
    prepared.schema
}

fn unchecked(schema: Value) -> Vec<String> {
    prepare(&schema, Extent::Full).unwrap().unchecked
}

#[test]
fn references_of_every_kind_become_definitions() {
    let word = json!({ "type": "string" });
    for (reference, definitions) in [
        ("#/$defs/a~1b%25", json!({ "a/b%": word })),
        ("#/definitions/a", json!({})),
        ("#word", json!({ "x": { "$anchor": "word", "type": "string" } })),
        ("other.json", json!({ "x": { "$id": "https://example.org/schemas/other.json", "type": "string" } })),
        ("/other#/$defs/w", json!({ "x": { "$id": "https://example.org/other", "$defs": { "w": word } } })),
        (
            "../up#w",
            json!({ "x": { "$id": "https://example.org/up", "$defs": { "y": { "$anchor": "w", "type": "string" } } } }),
        ),
    ] {
        let schema = json!({ "$id": "https://example.org/schemas/root", "$ref": reference,
            "definitions": { "a": { "type": "string" } }, "$defs": definitions });
        let out = prepared(schema);
        let name = out["$ref"].as_str().unwrap().strip_prefix("#/$defs/").unwrap();
        assert_eq!(out["$defs"][name], word, "{reference}");
    }
    assert_eq!(prepared(json!({ "items": { "$ref": "#" } })), json!({ "items": { "$ref": "#" } }));
}

#[test]
fn a_reference_in_a_definition_with_an_address_starts_from_that_address() {
    let schema = json!({ "$id": "https://example.org/base.json", "$ref": "nested/foo.json", "$defs": {
        "foo": { "$id": "nested/foo.json", "$ref": "./bar.json" },
        "bar": { "$id": "nested/bar.json", "type": "number" } } });
    assert_eq!(
        prepared(schema),
        json!({ "$ref": "#/$defs/foo", "$defs": { "foo": { "$ref": "#/$defs/bar" }, "bar": { "type": "number" } } })
    );
}

#[test]
fn recursion_through_definitions_ends() {
    let schema = json!({ "$ref": "#/$defs/a", "$defs": { "a": { "items": { "$ref": "#/$defs/b" } }, "b": { "$ref": "#/$defs/a" } } });
    assert_eq!(prepared(schema.clone()), schema);
}

#[test]
fn a_reference_to_nothing_is_named_with_its_place() {
    let error = |schema: Value| prepare(&schema, Extent::Full).err().unwrap();
    let schema = json!({ "properties": { "a/b": { "$ref": "https://example.org/x" } } });
    assert_eq!(error(schema), "/properties/a~1b/$ref: nothing in the schema is \"https://example.org/x\"");
    assert_eq!(error(json!({ "anyOf": { "a": 1 } })), "/anyOf: it must be an array");
}

#[test]
fn keywords_with_an_equal_form_take_it() {
    let all = |schema: Value| prepared(schema)["allOf"][0].clone();
    assert_eq!(all(json!({ "not": {} })), json!(false));
    assert_eq!(
        all(json!({ "not": { "type": ["object", "array"] } })),
        json!({ "type": ["null", "boolean", "number", "string"] })
    );
    assert_eq!(all(json!({ "not": { "required": ["a"] } })), json!({ "type": "object", "properties": { "a": false } }));
    assert_eq!(
        all(json!({ "propertyNames": { "pattern": "^x" }, "additionalProperties": { "type": "null" } })),
        json!({ "patternProperties": { "^x": { "type": "null" } }, "additionalProperties": false })
    );
    assert_eq!(
        all(json!({ "propertyNames": { "enum": ["a"] } })),
        json!({ "properties": { "a": true }, "additionalProperties": false })
    );
    assert_eq!(
        all(json!({ "dependentRequired": { "a": ["b"] } })),
        json!({ "anyOf": [{ "properties": { "a": false } }, { "required": ["b"] }] })
    );
    let closed = json!({ "properties": { "a": true, "b": true }, "additionalProperties": false, "minProperties": 1 });
    assert_eq!(all(closed), json!({ "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] }));
    assert_eq!(prepared(json!({ "unevaluatedProperties": false })), json!({ "additionalProperties": false }));
    assert_eq!(prepared(json!({ "format": "int32" })), json!({}), "an unknown format is an annotation");
    assert_eq!(prepared(json!({ "uniqueItems": true, "maxItems": 1 })), json!({ "maxItems": 1 }));
}

#[test]
fn a_negation_that_no_grammar_enforces_still_limits_the_types() {
    let types = |schema: Value| {
        let prepared = prepare(&json!({ "not": schema }), Extent::Full).unwrap();
        assert_eq!(prepared.unchecked, ["/not"], "{schema}");
        prepared.schema["allOf"][0].clone()
    };
    let divisible = json!({ "multipleOf": 2 });
    assert_eq!(types(divisible.clone()), json!({ "type": ["number"] }));
    assert_eq!(types(json!({ "anyOf": [divisible, { "minimum": 3 }] })), json!({ "type": ["number"] }));
    assert_eq!(types(json!({ "anyOf": [divisible, { "minLength": 3 }] })), Value::Null, "none can fail both");
    assert_eq!(types(json!({ "allOf": [divisible, { "minLength": 3 }] })), json!({ "type": ["number", "string"] }));
    assert_eq!(
        types(json!({ "type": "object", "required": ["a", "b"] })),
        Value::Null,
        "values of every type can fail this"
    );
    assert_eq!(types(json!({ "const": 1 })), Value::Null);
    assert_eq!(
        prepared(json!({ "not": { "anyOf": [{ "required": ["a"] }, { "type": "null" }] } }))["allOf"][0]["allOf"][1],
        json!({ "type": ["boolean", "number", "string", "array", "object"] })
    );
}

#[test]
fn what_no_grammar_enforces_is_listed_with_its_place() {
    let item = json!({ "type": "array", "uniqueItems": true, "contains": { "const": 1 }, "minContains": 2 });
    assert_eq!(unchecked(json!({ "items": item })), ["/items/uniqueItems", "/items/contains"]);
    assert_eq!(unchecked(json!({ "not": { "const": 1 } })), ["/not"]);
    assert_eq!(unchecked(json!({ "pattern": "^(?!x)" })), ["/pattern"]);
    assert_eq!(unchecked(json!({ "propertyNames": { "pattern": "^(?!x)" } })), ["/propertyNames"]);
    let beside = json!({ "patternProperties": { "^(?!x)": {} }, "unevaluatedProperties": false });
    assert_eq!(unchecked(beside), ["/patternProperties", "/unevaluatedProperties"]);
    assert_eq!(unchecked(json!({ "multipleOf": 0.123_456_789 })), ["/multipleOf"]);
    assert_eq!(unchecked(json!({ "minimum": -9_223_372_036_854_775_808_i64 })), ["/minimum"]);
    assert_eq!(unchecked(json!({ "if": {}, "then": {}, "unevaluatedItems": false })), ["/if", "/unevaluatedItems"]);
    assert_eq!(unchecked(json!({ "properties": { "a": true }, "maxProperties": 1 })), ["/maxProperties"]);
}

#[test]
fn plain_patterns_leave_references_to_the_grammar() {
    let plain = |schema: Value| prepare(&schema, Extent::PlainPatterns).unwrap();
    assert_eq!(plain(json!({ "pattern": "^(a$|b)" })).unchecked, ["/pattern"]);
    assert_eq!(plain(json!({ "patternProperties": { "a": {}, "b": {} } })).unchecked, ["/patternProperties"]);
    let beside = json!({ "$ref": "#", "minItems": 1 });
    let prepared = plain(beside.clone());
    assert_eq!((prepared.schema, prepared.unchecked), (beside, Vec::new()));
}

#[test]
fn the_reduced_extent_leaves_to_validation_what_grammars_refuse_in_some_schemas() {
    let reduced = |schema: Value| prepare(&schema, Extent::Reduced).unwrap();
    let prepared = reduced(json!({ "$ref": "#", "minItems": 1, "title": "x" }));
    assert_eq!((prepared.schema, prepared.unchecked), (json!({ "$ref": "#" }), vec!["/minItems".to_owned()]));
    assert_eq!(reduced(json!({ "pattern": "^(a$|b)" })).unchecked, ["/pattern"]);
    assert_eq!(reduced(json!({ "pattern": "^a$" })).schema, json!({ "pattern": "^a$" }));
    assert_eq!(reduced(json!({ "patternProperties": { "a": {}, "b": {} } })).unchecked, ["/patternProperties"]);
    let named = json!({ "patternProperties": { "a": {} }, "properties": {}, "additionalProperties": false });
    assert_eq!(reduced(named).unchecked, ["/patternProperties", "/additionalProperties"]);
    let either = json!([{ "$ref": "#" }, { "type": "null" }]);
    let prepared = reduced(json!({ "type": "array", "anyOf": either }));
    assert_eq!((prepared.schema, prepared.unchecked), (json!({ "anyOf": either }), vec!["/type".to_owned()]));
    let prepared = reduced(json!({ "allOf": [{ "minItems": 1 }, { "$ref": "#" }] }));
    assert_eq!((prepared.schema, prepared.unchecked), (json!({ "$ref": "#" }), vec!["/allOf".to_owned()]));
}

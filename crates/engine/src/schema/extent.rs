//! What a grammar enforces, and what it cannot.

use serde_json::{Map, Value};

/// How much of a schema is left to its grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Everything that llguidance has.
    Full,
    /// Without the patterns that it refuses in some schemas only: those of keys that overlap with others or with named keys,
    /// and those with anchors within.
    PlainPatterns,
    /// Also without what it refuses in recursion: references and alternatives of them with keywords beside them.
    Reduced,
}

/// The extents that are tried for a schema, the largest first.
pub(crate) fn extents(schema: &Value) -> &'static [Extent] {
    let all = &[Extent::Full, Extent::PlainPatterns, Extent::Reduced];
    if pairs(schema) > MAX_PAIRS { &all[1..] } else { all }
}

/// Maximum pairs of patterns of keys that llguidance compares, each for about half a millisecond.
const MAX_PAIRS: usize = 2_000;

/// Pairs of patterns of keys in a schema.
fn pairs(schema: &Value) -> usize {
    let (own, children): (usize, usize) = match schema {
        Value::Object(fields) => {
            let patterns = fields.get("patternProperties").and_then(Value::as_object).map_or(0, Map::len);
            (patterns * patterns.saturating_sub(1) / 2, fields.values().map(pairs).sum())
        }
        Value::Array(values) => (0, values.iter().map(pairs).sum()),
        _ => (0, 0),
    };
    own + children
}

/// True if a pattern has what regular expressions in the strict sense have not: assertions, and beyond the full extent
/// also back references and anchors elsewhere than at its ends.
pub(crate) fn is_irregular(pattern: &Value, extent: Extent) -> bool {
    let Some(pattern) = pattern.as_str() else { return false };
    if ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|mark| pattern.contains(mark)) {
        return true;
    }
    let bytes = pattern.as_bytes();
    let refers_back = bytes.windows(2).any(|pair| pair[0] == b'\\' && (b'1'..=b'9').contains(&pair[1]));
    let within = pattern.strip_prefix('^').unwrap_or(pattern);
    let within = within.strip_suffix('$').unwrap_or(within);
    extent != Extent::Full && (refers_back || within.contains(['^', '$']))
}

/// True if the patterns of keys cannot be enforced; those that may overlap only in the full extent.
pub(crate) fn has_irregular_names(fields: &Map<String, Value>, extent: Extent) -> bool {
    let Some(patterns) = fields.get("patternProperties").and_then(Value::as_object) else { return false };
    let may_overlap = patterns.len() > 1 || fields.contains_key("properties");
    let overlap = extent != Extent::Full && may_overlap;
    overlap || patterns.keys().any(|pattern| is_irregular(&Value::from(pattern.as_str()), extent))
}

/// True for a bound near or beyond the range of 64-bit integers, for which there is no expression.
pub(crate) fn is_huge(bound: &Value) -> bool {
    bound.as_f64().is_some_and(|bound| bound.abs() > 9e18)
}

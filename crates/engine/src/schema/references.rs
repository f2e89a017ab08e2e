//! References between schemas (`$ref` with pointers, `$id`, `$anchor`) as plain names of definitions.

use std::collections::{HashMap, VecDeque};
use std::fmt;

use serde_json::{Map, Value};

/// A location in a schema: the keys that lead to it, and the base address of its references.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Location {
    keys: Vec<String>,
    base: String,
}

impl Location {
    pub fn child(&self, key: &str) -> Location {
        let mut keys = self.keys.clone();
        keys.push(key.to_owned());
        Location { keys, base: self.base.clone() }
    }
}

impl fmt::Display for Location {
    /// The JSON pointer of this location.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.keys.iter().try_for_each(|key| write!(f, "/{}", key.replace('~', "~0").replace('/', "~1")))
    }
}

/// The locations of one document that references can target.
pub(super) struct References<'a> {
    root: &'a Value,
    /// By address, and by address with `#` and an anchor. The base of each is that around its own `$id`.
    named: HashMap<String, Location>,
    /// Names of definitions by the keys of their location.
    names: HashMap<Vec<String>, String>,
    pending: VecDeque<(String, Location)>,
}

impl<'a> References<'a> {
    pub fn new(root: &'a Value) -> References<'a> {
        let mut named = HashMap::from([(String::new(), Location::default())]);
        collect(root, &Location::default(), &mut named);
        References { root, named, names: HashMap::new(), pending: VecDeque::new() }
    }

    /// A definition that is referenced and not rewritten yet.
    pub fn next_pending(&mut self) -> Option<(String, Location)> {
        self.pending.pop_front()
    }

    pub fn value(&self, place: &Location) -> &'a Value {
        lookup(self.root, &place.keys).unwrap_or(&Value::Null)
    }

    /// A reference at `place` in the form that llguidance reads.
    ///
    /// # Errors
    /// If the document has no such target.
    pub fn resolve(&mut self, reference: &Value, place: &Location) -> Result<String, String> {
        let reference = reference.as_str().ok_or("it must be a string")?;
        let target = self.find(reference, place).ok_or_else(|| format!("nothing in the schema is {reference:?}"))?;
        if target.keys.is_empty() {
            return Ok("#".into());
        }
        if let Some(name) = self.names.get(&target.keys) {
            return Ok(format!("#/$defs/{name}"));
        }
        if self.names.len() == MAX_TARGETS {
            return Err(format!("a schema may refer to at most {MAX_TARGETS} others"));
        }
        let last = target.keys.last().map_or("", String::as_str);
        let plain: String = last.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_' || *c == '-').collect();
        let taken = |name: &String| self.names.values().any(|known| known == name);
        let mut name = if plain.is_empty() { "definition".to_owned() } else { plain.clone() };
        let mut number = 1;
        while taken(&name) {
            number += 1;
            name = format!("{plain}-{number}");
        }
        self.names.insert(target.keys.clone(), name.clone());
        self.pending.push_back((name.clone(), target));
        Ok(format!("#/$defs/{name}"))
    }

    fn find(&self, reference: &str, place: &Location) -> Option<Location> {
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let address = if address.is_empty() { place.base.clone() } else { join(&place.base, address) };
        let fragment = decoded(fragment)?;
        if !fragment.is_empty() && !fragment.starts_with('/') {
            return self.named.get(&format!("{address}#{fragment}")).cloned();
        }
        let mut target = self.named.get(&address)?.clone();
        for key in fragment.split('/').skip(1) {
            let key = key.replace("~1", "/").replace("~0", "~");
            let here = lookup(self.root, &target.keys)?;
            if let Some(fields) = here.as_object() {
                target = location_of(&target, fields);
            }
            target = target.child(&key);
        }
        lookup(self.root, &target.keys).map(|_| target)
    }
}

/// Maximum number of schemas that references lead to: compilation recurses into each, on a stack of limited size.
const MAX_TARGETS: usize = 4_096;

/// The location of these fields; `$id` may change the base address.
pub(super) fn location_of(place: &Location, fields: &Map<String, Value>) -> Location {
    let mut place = place.clone();
    let id = fields.get("$id").or_else(|| fields.get("id")).and_then(Value::as_str);
    // Before draft 2019-09 an `$id` that is a fragment was an anchor.
    if let Some(id) = id.map(|id| id.split_once('#').map_or(id, |(address, _)| address)).filter(|id| !id.is_empty()) {
        place.base = join(&place.base, id);
    }
    place
}

/// Keywords that hold values, not schemas.
const VALUES: [&str; 4] = ["const", "enum", "default", "examples"];

/// Keywords whose values have names of their own as keys.
const NAMED: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// Collects the named targets of a schema.
fn collect(value: &Value, place: &Location, named: &mut HashMap<String, Location>) {
    match value {
        Value::Object(fields) => {
            let around = place;
            let place = location_of(around, fields);
            for (key, id) in fields.iter().filter_map(|(key, id)| Some((key, id.as_str()?))) {
                match key.as_str() {
                    "$id" | "id" => {
                        let fragment = id.split_once('#').map_or("", |(_, fragment)| fragment);
                        let separator = if fragment.is_empty() { "" } else { "#" };
                        named.entry(format!("{}{separator}{fragment}", place.base)).or_insert_with(|| around.clone());
                    }
                    "$anchor" | "$dynamicAnchor" => {
                        named.entry(format!("{}#{id}", place.base)).or_insert_with(|| around.clone());
                    }
                    _ => {}
                }
            }
            let are_names = place.keys.last().is_some_and(|key| NAMED.contains(&key.as_str()));
            let schemas = fields.iter().filter(|(key, _)| are_names || !VALUES.contains(&key.as_str()));
            schemas.for_each(|(key, value)| collect(value, &place.child(key), named));
        }
        Value::Array(values) => {
            let numbered = values.iter().enumerate();
            numbered.for_each(|(number, value)| collect(value, &place.child(&number.to_string()), named));
        }
        _ => {}
    }
}

fn lookup<'a>(root: &'a Value, keys: &[String]) -> Option<&'a Value> {
    keys.iter().try_fold(root, |value, key| match value {
        Value::Object(fields) => fields.get(key),
        Value::Array(values) => values.get(key.parse::<usize>().ok()?),
        _ => None,
    })
}

/// Resolves an address against a base (RFC 3986, 5.2, as far as schemas use it).
fn join(base: &str, address: &str) -> String {
    let is_absolute = address.contains("://") || address.starts_with("urn:") || address.starts_with("tag:");
    let host = base.find("://").map(|at| at + 3);
    if is_absolute || base.is_empty() {
        return address.to_owned();
    }
    if address.starts_with('/') {
        let end = host.and_then(|at| base[at..].find('/').map(|end| at + end)).unwrap_or(base.len());
        return format!("{}{address}", &base[..end]);
    }
    let from = host.unwrap_or(0);
    let mut folder = base[from..].rfind('/').map_or("", |at| &base[..=from + at]);
    let mut rest = address;
    loop {
        if let Some(shorter) = rest.strip_prefix("./") {
            rest = shorter;
        } else if let Some(shorter) = rest.strip_prefix("../") {
            rest = shorter;
            let trimmed = folder.trim_end_matches('/');
            folder = trimmed.rfind('/').filter(|at| *at >= from).map_or(folder, |at| &folder[..=at]);
        } else {
            return format!("{folder}{rest}");
        }
    }
}

/// A fragment with percent-encoding decoded.
fn decoded(fragment: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = fragment.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

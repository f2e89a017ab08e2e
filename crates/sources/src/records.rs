//! The JSON objects of a file, each with its place in the file, so that an error can name the line and the field.
//!
//! A file is a JSON array of objects, or objects one after another (JSON lines); the extension makes no difference.
//!
//! An object is kept as its text and parsed again for each field, so that it costs no memory beyond its text. Objects with
//! many fields to look up are indexed.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use serde::de::{Deserializer as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Deserializer;
use serde_json::value::RawValue;

use crate::limit::RECORDS;
use crate::{Cause, Kind, Limit};

/// One JSON object of a file.
pub(crate) struct Record<'a> {
    file: &'a str,
    object: &'a str,
    /// The values of its fields, if it was indexed.
    index: Option<BTreeMap<String, &'a str>>,
}

/// The objects of a file.
///
/// # Errors
/// [`Cause::Damaged`] for invalid JSON, with line and column; [`Cause::UnknownConversation`] for a value that is no
/// object; [`Limit::Records`].
pub(crate) fn records(file: &str, kind: Kind) -> Result<Vec<Record<'_>>, Cause> {
    let mut values: Vec<&str> = Vec::new();
    for value in Deserializer::from_str(file).into_iter::<&RawValue>() {
        values.push(value.map_err(|error| Cause::damaged(kind, error.to_string()))?.get());
        if values.len() > RECORDS {
            return Err(Limit::Records(RECORDS).into());
        }
    }
    if let [only] = values[..]
        && let Some(elements) = elements(only)?
    {
        values = elements;
    }
    values.into_iter().map(|value| Record::new(file, value)).collect()
}

/// The elements of a JSON array; `None` if the value is none.
fn elements(array: &str) -> Result<Option<Vec<&str>>, Cause> {
    match Deserializer::from_str(array).deserialize_seq(Elements) {
        Ok(elements) if elements.len() > RECORDS => Err(Limit::Records(RECORDS).into()),
        elements => Ok(elements.ok()),
    }
}

/// Collects the elements of an array, at most one more than [`RECORDS`].
struct Elements;

impl<'de> Visitor<'de> for Elements {
    type Value = Vec<&'de str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while elements.len() <= RECORDS
            && let Some(element) = array.next_element::<&RawValue>()?
        {
            elements.push(element.get());
        }
        while array.next_element::<IgnoredAny>()?.is_some() {}
        Ok(elements)
    }
}

/// Calls a function with the fields of an object, in order.
struct Fields<F>(F);

impl<'de, F: FnMut(String, &'de str)> Visitor<'de> for Fields<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut object: A) -> Result<(), A::Error> {
        while let Some((field, value)) = object.next_entry::<String, &RawValue>()? {
            (self.0)(field, value.get());
        }
        Ok(())
    }
}

impl<'a> Record<'a> {
    fn new(file: &'a str, object: &'a str) -> Result<Self, Cause> {
        let record = Record { file, object, index: None };
        if object.starts_with('{') && record.each_field(|_, _| {}) {
            return Ok(record);
        }
        Err(Cause::UnknownConversation { line: line_of(file, object), fields: Vec::new() })
    }

    /// Calls a function with all fields and their JSON text; returns whether the object is valid.
    pub fn each_field(&self, each: impl FnMut(String, &'a str)) -> bool {
        Deserializer::from_str(self.object).deserialize_map(Fields(each)).is_ok()
    }

    /// The value of a field as it is written in the file; the last one if the field is repeated.
    fn field(&self, name: &str) -> Option<&'a str> {
        if let Some(index) = &self.index {
            return index.get(name).copied();
        }
        let mut found = None;
        self.each_field(|field, value| {
            if field == name {
                found = Some(value);
            }
        });
        found
    }

    /// The same object, its fields indexed.
    ///
    /// # Errors
    /// [`Limit::Records`].
    pub fn indexed(&self) -> Result<Self, Cause> {
        let mut index = BTreeMap::new();
        self.each_field(|field, value| {
            if index.len() <= RECORDS {
                index.insert(field, value);
            }
        });
        if index.len() > RECORDS {
            return Err(Limit::Records(RECORDS).into());
        }
        Ok(Record { file: self.file, object: self.object, index: Some(index) })
    }

    /// The JSON text of a field.
    pub fn raw(&self, field: &str) -> Option<&'a str> {
        self.field(field)
    }

    /// Whether a field is an object.
    pub fn has_object(&self, field: &str) -> bool {
        self.field(field).is_some_and(|value| value.starts_with('{'))
    }

    /// Whether the object has the field.
    pub fn has(&self, field: &str) -> bool {
        self.field(field).is_some()
    }

    /// The names of the first fields.
    pub fn first_fields(&self) -> Vec<String> {
        const SHOWN: usize = 20;
        let mut fields = Vec::new();
        self.each_field(|field, _| {
            if fields.len() < SHOWN && !fields.contains(&field) {
                fields.push(field);
            }
        });
        fields.sort();
        fields
    }

    /// A field that must be a string.
    pub fn text(&self, field: &str) -> Result<String, Cause> {
        let value = self.field(field).ok_or_else(|| self.fault(field, "is missing"))?;
        serde_json::from_str(value).map_err(|_| self.fault(field, "is not a string"))
    }

    /// An optional field, which may be null: a string, or a number in its JSON spelling.
    pub fn label(&self, field: &str) -> Result<Option<String>, Cause> {
        match self.field(field) {
            None | Some("null") => Ok(None),
            Some(number) if number.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => Ok(Some(number.to_owned())),
            Some(value) => {
                serde_json::from_str(value).map(Some).map_err(|_| self.fault(field, "is neither a string nor a number"))
            }
        }
    }

    /// The value of a field if it is a string.
    pub fn string(&self, field: &str) -> Option<String> {
        self.field(field).filter(|value| value.starts_with('"')).and_then(|value| serde_json::from_str(value).ok())
    }

    /// The objects of an array, each indexed when it is its turn; none if the field is something else.
    ///
    /// # Errors
    /// [`Limit::Records`].
    pub fn objects_if_any(
        &self,
        field: &str,
    ) -> Result<impl Iterator<Item = Result<Record<'a>, Cause>> + use<'a>, Cause> {
        let values = self.field(field).map(elements).transpose()?.flatten().unwrap_or_default();
        let file = self.file;
        let objects = values.into_iter().filter(|value| value.starts_with('{'));
        Ok(objects.map(move |value| Record::new(file, value)?.indexed()))
    }

    /// A field that must be an object, indexed.
    pub fn object(&self, field: &str) -> Result<Record<'a>, Cause> {
        let value = self.field(field).ok_or_else(|| self.fault(field, "is missing"))?;
        Record::new(self.file, value).map_err(|_| self.fault(field, "is not an object"))?.indexed()
    }

    /// The texts of a field: a string, or an array of strings and of objects with a string `text`; other elements, such as
    /// pictures, are left out. None if the field is null.
    pub fn texts(&self, field: &str) -> Result<Vec<String>, Cause> {
        let value = self.field(field).ok_or_else(|| self.fault(field, "is missing"))?;
        if value == "null" {
            return Ok(Vec::new());
        }
        let parts = if value.starts_with('"') { Some(vec![value]) } else { elements(value)? };
        let parts = parts.ok_or_else(|| self.fault(field, "is neither a string nor an array"))?;
        let mut texts = Vec::new();
        for part in parts {
            let text = match part.as_bytes().first() {
                Some(b'"') => Some(part),
                Some(b'{') => Record::new(self.file, part)?.field("text").filter(|text| text.starts_with('"')),
                _ => None,
            };
            if let Some(text) = text {
                texts.push(serde_json::from_str(text).map_err(|_| self.fault(field, "has a string that is invalid"))?);
            }
        }
        Ok(texts)
    }

    /// The first object of an array.
    pub fn first_of(&self, field: &str) -> Result<Option<Record<'a>>, Cause> {
        Ok(self.objects(field)?.into_iter().next())
    }

    /// A field that must be an array of objects.
    pub fn objects(&self, field: &str) -> Result<Vec<Record<'a>>, Cause> {
        let value = self.field(field).ok_or_else(|| self.fault(field, "is missing"))?;
        let values = elements(value)?.ok_or_else(|| self.fault(field, "is not an array"))?;
        let records: Result<_, _> = values.into_iter().map(|value| Record::new(self.file, value)).collect();
        records.map_err(|_| self.fault(field, "holds something that is not an object"))
    }

    /// The error that this object's field has some problem.
    pub fn fault(&self, field: &str, problem: &'static str) -> Cause {
        Cause::Field { line: self.line(), field: field.to_owned(), problem }
    }

    /// The line of the file on which the object starts, from 1.
    pub fn line(&self) -> usize {
        line_of(self.file, self.object)
    }
}

/// The line on which `part`, a slice of `file`, starts.
fn line_of(file: &str, part: &str) -> usize {
    let offset = part.as_ptr().addr() - file.as_ptr().addr();
    1 + file[..offset].matches('\n').count()
}

/// The ids used within one conversation.
#[derive(Default)]
pub(crate) struct Ids(HashSet<String>);

impl Ids {
    /// Registers an id from a field of a record.
    ///
    /// # Errors
    /// [`Cause::Field`] if it is used already: a citation by id must be unambiguous. [`Limit::Records`].
    pub fn take(&mut self, id: &str, record: &Record<'_>, field: &str) -> Result<(), Cause> {
        if self.0.len() == RECORDS {
            return Err(Limit::Records(RECORDS).into());
        }
        if self.0.insert(id.to_owned()) { Ok(()) } else { Err(record.fault(field, "repeats an earlier one")) }
    }
}

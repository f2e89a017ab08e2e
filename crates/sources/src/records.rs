//! JSON objects that know where in the file they stand, so that an error can name the line and the field.
//!
//! A file is a JSON array of objects, or objects one after another (JSON lines); which of them needs no extension to
//! tell.

use std::collections::{BTreeMap, HashSet};

use serde_json::Deserializer;
use serde_json::value::RawValue;

use crate::{Cause, Kind};

/// One JSON object of a file.
pub(crate) struct Record<'a> {
    file: &'a str,
    object: &'a str,
    fields: BTreeMap<String, &'a RawValue>,
}

/// The objects of a file.
///
/// # Errors
/// [`Cause::Damaged`] for what is not JSON, with line and column; [`Cause::UnknownConversation`] for a value that is
/// no object.
pub(crate) fn records(file: &str) -> Result<Vec<Record<'_>>, Cause> {
    let values = Deserializer::from_str(file).into_iter::<&RawValue>();
    let mut values =
        values.collect::<Result<Vec<_>, _>>().map_err(|error| Cause::damaged(Kind::Conversation, error.to_string()))?;
    if let [only] = values[..]
        && let Ok(elements) = serde_json::from_str(only.get())
    {
        values = elements;
    }
    values.into_iter().map(|value| Record::new(file, value)).collect()
}

impl<'a> Record<'a> {
    fn new(file: &'a str, value: &'a RawValue) -> Result<Self, Cause> {
        let object = value.get();
        let fields = serde_json::from_str(object)
            .map_err(|_| Cause::UnknownConversation { line: line_of(file, object), fields: Vec::new() })?;
        Ok(Record { file, object, fields })
    }

    /// Whether the object has the field.
    pub fn has(&self, field: &str) -> bool {
        self.fields.contains_key(field)
    }

    /// All fields, with their values as they are written in the file.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.fields.iter().map(|(field, value)| (field.as_str(), value.get()))
    }

    /// A field that must be a string.
    pub fn text(&self, field: &str) -> Result<String, Cause> {
        let value = self.fields.get(field).ok_or_else(|| self.fault(field, "is missing"))?;
        serde_json::from_str(value.get()).map_err(|_| self.fault(field, "is not a string"))
    }

    /// A field that may be missing or null, and is else a string or a number, which is taken as it is written.
    pub fn label(&self, field: &str) -> Result<Option<String>, Cause> {
        match self.fields.get(field).map(|value| value.get()) {
            None | Some("null") => Ok(None),
            Some(number) if number.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => Ok(Some(number.to_owned())),
            Some(value) => {
                serde_json::from_str(value).map(Some).map_err(|_| self.fault(field, "is neither a string nor a number"))
            }
        }
    }

    /// A field that must be an object.
    pub fn object(&self, field: &str) -> Result<Record<'a>, Cause> {
        let value = self.fields.get(field).ok_or_else(|| self.fault(field, "is missing"))?;
        Record::new(self.file, value).map_err(|_| self.fault(field, "is not an object"))
    }

    /// A field that must be an array of objects.
    pub fn objects(&self, field: &str) -> Result<Vec<Record<'a>>, Cause> {
        let value = self.fields.get(field).ok_or_else(|| self.fault(field, "is missing"))?;
        let values: Vec<&RawValue> =
            serde_json::from_str(value.get()).map_err(|_| self.fault(field, "is not an array"))?;
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

/// The line on which `part`, which is a piece of `file`, starts.
fn line_of(file: &str, part: &str) -> usize {
    let offset = part.as_ptr().addr() - file.as_ptr().addr();
    1 + file[..offset].matches('\n').count()
}

/// The ids given out within one conversation.
#[derive(Default)]
pub(crate) struct Ids(HashSet<String>);

impl Ids {
    /// Takes an id that came out of a record's field.
    ///
    /// # Errors
    /// [`Cause::Field`] when it was taken before: a citation by id must mean one thing.
    pub fn take(&mut self, id: &str, record: &Record<'_>, field: &str) -> Result<(), Cause> {
        if self.0.insert(id.to_owned()) { Ok(()) } else { Err(record.fault(field, "repeats an earlier one")) }
    }
}

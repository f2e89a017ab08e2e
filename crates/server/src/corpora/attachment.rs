//! The record of an uploaded file beside a corpus.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sources::Kind;
use store::{Corpus, Document};

use super::kept::{self, Record};
use crate::error::{Result, ServerError};
use crate::lost::Gone;

/// A file of a corpus.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Attached {
    /// The id of the file.
    pub id: String,
    /// The name of its document.
    pub document: String,
    /// Seconds since 1970.
    pub created: u64,
    pub bytes: u64,
    /// The job that ingests it; none if it cannot become a document, for this reason.
    pub job: std::result::Result<String, String>,
    /// The batch with which it came.
    pub batch: Option<String>,
    pub attributes: Value,
}

impl Record for Attached {
    const KIND: &'static str = "file";
    const FOLDER: &'static str = "files";

    fn id(&self) -> &str {
        &self.id
    }

    fn updated(&self) -> u64 {
        self.created
    }
}

impl Attached {
    /// Whether the file became this document, or the file is an export or a mailbox and the document one of several.
    /// The names of other files may have a `#` too.
    pub fn is_of(&self, document: &Document) -> bool {
        self.became(&document.path, &document.kind)
    }

    fn became(&self, path: &str, kind: &str) -> bool {
        let is_one_of_several = || [Kind::Conversation, Kind::Mailbox].iter().any(|one| kind == one.to_string());
        match path.strip_prefix(&self.document) {
            Some("") => true,
            Some(rest) => rest.starts_with('#') && is_one_of_several(),
            None => false,
        }
    }
}

/// Changes the attributes of a file.
///
/// # Errors
/// [`ServerError::NotFound`] if the corpus has no record of it.
pub(super) fn set_attributes(corpus: &Corpus, id: &str, attributes: Value) -> Result<()> {
    let _one = kept::lock(corpus)?;
    let (record, _) = kept::read::<Attached>(corpus, id)?;
    kept::write(corpus, &Attached { attributes, ..record })
}

/// Deletes the record of a file.
///
/// # Errors
/// As [`set_attributes`].
pub(super) fn delete(corpus: &Corpus, id: &str) -> Result<()> {
    let _one = kept::lock(corpus)?;
    kept::delete::<Attached>(corpus, id)
}

/// Deletes the records of documents that are gone, except of files of which another document is there.
pub(crate) fn forget(corpus: &Corpus, gone: &[Gone]) -> Result<()> {
    let _one = kept::lock(corpus)?;
    let documents = corpus.documents()?;
    let is_gone = |record: &Attached| {
        gone.iter().any(|gone| record.became(&gone.path, &gone.kind))
            && !documents.iter().any(|document| record.is_of(document))
    };
    let records = kept::all::<Attached>(corpus)?.into_iter().filter(is_gone);
    records.map(|record| kept::delete::<Attached>(corpus, &record.id)).try_for_each(|deleted| match deleted {
        Err(ServerError::NotFound(_)) => Ok(()),
        deleted => deleted,
    })
}

#[cfg(test)]
mod tests {
    use std::thread;

    use serde_json::json;
    use store::Corpora;

    use super::*;

    #[test]
    fn the_conversations_of_an_export_and_the_documents_of_a_mailbox_are_of_one_file() {
        let record: Attached = serde_json::from_value(json!({ "id": format!("file-{:032x}", 1), "document": "a",
            "created": 0, "bytes": 1, "job": { "Ok": "job-1" }, "batch": null, "attributes": {} }))
        .expect("a record");
        let check = |path, kind: Kind, expect| assert_eq!(record.became(path, &kind.to_string()), expect, "{path}");
        check("a", Kind::Text, true);
        check("a#one", Kind::Conversation, true);
        check("a#2", Kind::Mailbox, true);
        check("a#2", Kind::Text, false);
        check("a2", Kind::Mailbox, false);
    }

    #[test]
    fn new_attributes_do_not_bring_a_deleted_record_back() {
        let folder = tempfile::tempdir().expect("the system has a folder for temporary files");
        let corpora = Corpora::new(folder.path());
        drop(corpora.create("pell").expect("a corpus"));
        let open = || corpora.open("pell").expect("the corpus");
        let record: Attached = serde_json::from_value(json!({ "id": format!("file-{:032x}", 1), "document": "a.txt",
            "created": 0, "bytes": 1, "job": { "Ok": "job-1" }, "batch": null, "attributes": {} }))
        .expect("a record");
        for _ in 0..100 {
            kept::write(&open(), &record).expect("it can be written");
            thread::scope(|scope| {
                let change = scope.spawn(|| set_attributes(&open(), &record.id, json!({ "a": 1 })));
                delete(&open(), &record.id).expect("it is there");
                let changed = change.join().expect("it ends");
                assert!(matches!(changed, Ok(()) | Err(ServerError::NotFound(_))), "{changed:?}");
            });
            assert!(kept::all::<Attached>(&open()).expect("they can be listed").is_empty());
        }
    }
}

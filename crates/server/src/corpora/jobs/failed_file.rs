//! Files of an upload that cannot become documents: the cause of each, and what helps with all of them.

use serde::{Deserialize, Serialize};
use sources::{Cause, Kind};

/// A file that could not be read, with the reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::corpora) struct FailedFile {
    pub name: String,
    pub reason: String,
}

/// The reason of a file whose type no reader supports. The types that are supported are in the [`hint`], once for all files.
pub(crate) const UNSUPPORTED: &str = "unsupported file type";

impl FailedFile {
    pub fn new(name: String, cause: &Cause) -> FailedFile {
        FailedFile { name, reason: reason(cause) }
    }
}

/// The cause as the reason of one file.
pub(super) fn reason(cause: &Cause) -> String {
    match cause {
        Cause::UnknownKind => UNSUPPORTED.to_owned(),
        cause => cause.to_string(),
    }
}

/// What the client may do about these files, if one has a type that is not supported.
pub(in crate::corpora) fn hint(files: &[FailedFile]) -> Option<String> {
    let has_unsupported = files.iter().any(|file| file.reason == UNSUPPORTED);
    let types = || format!("supported types are {}, source code, and any text in UTF-8", Kind::document_extensions());
    has_unsupported.then(types)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn supported_types_are_in_the_hint_and_not_in_reasons() {
        let failed = |name: &str, cause: Cause| FailedFile::new(name.to_owned(), &cause);
        let files = [failed("a.exe", Cause::UnknownKind), failed("b.png", Cause::UnknownKind)];
        assert!(files.iter().all(|file| file.reason == "unsupported file type"), "{files:?}");
        let types = hint(&files).expect("a hint");
        assert!(types.starts_with("supported types are .txt ") && types.contains(" .pdf "), "{types}");
        assert_eq!(hint(&[failed("c.txt", Cause::Empty)]), None);
    }
}

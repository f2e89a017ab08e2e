//! Versions of the tables in a corpus file.

/// The version of the tables in schema.rs, stored in `PRAGMA user_version`. Version 1 had no derived texts; up to version 2 the
/// whole text of a document was in its row. shared/copy.rs lists the tables too.
pub(crate) const VERSION: i64 = 3;

/// The first version with chunks of texts.
pub(crate) const CHUNKED: i64 = 3;

//! What keeps files of the data folder from being read or written: no room, a disk that is read-only, a missing permission.

use std::io::{Error, ErrorKind};

use axum::http::StatusCode;

/// A state of the disk or of its permissions that the operator can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// The disk, or the part of it that the server may use, is full.
    Full,
    /// The disk is mounted read-only: only writing fails.
    ReadOnly,
    /// The user that runs the server may not read, or not write, a file or its folder.
    NotPermitted,
}

impl Obstacle {
    /// That of an error of the system, if it has one.
    pub(super) fn of(error: &Error) -> Option<Obstacle> {
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => Some(Obstacle::Full),
            ErrorKind::ReadOnlyFilesystem => Some(Obstacle::ReadOnly),
            ErrorKind::PermissionDenied => Some(Obstacle::NotPermitted),
            _ => None,
        }
    }

    /// Status and error code. 507 is for writing: a missing permission stops reading too.
    pub(super) fn status(self) -> (StatusCode, &'static str) {
        match self {
            Obstacle::Full => (StatusCode::INSUFFICIENT_STORAGE, "disk_full"),
            Obstacle::ReadOnly => (StatusCode::INSUFFICIENT_STORAGE, "read_only"),
            Obstacle::NotPermitted => (StatusCode::INTERNAL_SERVER_ERROR, "not_permitted"),
        }
    }

    /// What the operator may do about it.
    pub(super) fn hint(self) -> &'static str {
        match self {
            Obstacle::Full => "free some space; nothing was lost",
            Obstacle::ReadOnly => "let the user that runs the server write to its data folder; nothing was lost",
            Obstacle::NotPermitted => {
                "let the user that runs the server read and write its data folder; nothing was lost"
            }
        }
    }
}

/// What failed, for an error on a file of the data folder.
pub(super) fn message(error: &Error) -> &'static str {
    match Obstacle::of(error) {
        Some(Obstacle::Full | Obstacle::ReadOnly) => "a file of the data folder cannot be written",
        Some(Obstacle::NotPermitted) => "the server has no permission to read or write a file of its data folder",
        None => "a file of the data folder cannot be read or written",
    }
}

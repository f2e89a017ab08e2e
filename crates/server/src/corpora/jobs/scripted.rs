//! Set-up of the tests of jobs: an app whose models follow a script, and jobs on the corpus `pell`.

use std::sync::Arc;

use calls::{Scripted, ScriptedEmbedder};
use tempfile::TempDir;

use super::job::{NewJob, Upload};
use crate::app::{App, Shared};
use crate::config::Config;

pub(super) fn new_folder() -> TempDir {
    tempfile::tempdir().expect("the system has a folder for temporary files")
}

/// An app with its data in this folder.
pub(super) fn app(data: &TempDir) -> App {
    Shared::new(Arc::new(Scripted::new(8192)), Arc::new(ScriptedEmbedder), Config::new(data.path()))
}

/// A job that is to add the files of this folder, for `rag`. Each file is given as the name of its upload and its own.
pub(super) fn new_job(id: &str, files: &[(&str, &str)], folder: TempDir) -> NewJob {
    let upload = |&(name, file): &(&str, &str)| Upload { name: name.to_owned(), file: file.to_owned() };
    let (method, files) = ("rag".parse().expect("a method"), files.iter().map(upload).collect());
    NewJob::new(id.to_owned(), "pell".to_owned(), method, files, Vec::new(), folder)
}

//! Data sets, scorers and reports, without a model.

mod answers;
mod answers_suite;
mod cases;
mod data;
mod faults;
mod follow_ups;
mod forms;
mod published;
mod questions;
mod retrieval;
mod rollouts;
mod ruler;
mod run_folder;
mod score;
mod speed;
mod strong;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::{env, fs};

/// Test files in a folder that is removed when the test ends.
pub struct Files(tempfile::TempDir);

impl Files {
    pub fn new(files: &[(&str, &str)]) -> Files {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        Files(folder)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn folder(&self) -> &Path {
        self.0.path()
    }
}

/// A part of the evaluation data, or `None` after printing that it is missing.
pub fn evaluation_data(name: &str) -> Option<PathBuf> {
    let beside = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"));
    let path = env::var_os("MEMLOCAL_DATA").map_or_else(beside, PathBuf::from).join(name);
    if !path.exists() {
        eprintln!("skipped: {} is missing; set MEMLOCAL_DATA to the evaluation data", path.display());
        return None;
    }
    Some(path)
}

/// The result of a future that is ready at once.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("it waits"),
    }
}

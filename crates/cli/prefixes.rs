//! Keys and values of what questions on a corpus begin with, kept beside it, so that the next run need not compute them.

use std::path::PathBuf;

use calls::{Caller, Role};
use engine::{Engine, SnapshotError};
use store::Corpus;

use crate::ingest::wait_for;
use crate::output::counted;

/// Brings back what [`save`] kept. What cannot be used is said and computed again.
pub fn load(engine: &Engine, corpus: &Corpus) {
    for (role, path) in files(engine, corpus) {
        match wait_for(async { Ok::<_, anyhow::Error>(engine.load_prefixes(role, &path).await) }) {
            Ok(Ok(found)) => eprintln!("{} kept from before", counted(found.tokens, "token")),
            Ok(Err(SnapshotError::Missing { .. })) => {}
            Ok(Err(error)) => eprintln!("not used: {error}"),
            Err(error) => eprintln!("not used: {error}"),
        }
    }
}

/// Keeps what is there. The answer has been given: what fails now is said and no more.
pub fn save(engine: &Engine, corpus: &Corpus) {
    for (role, path) in files(engine, corpus) {
        if let Err(error) = wait_for(engine.save_prefixes(role, &path)) {
            eprintln!("not kept: {error}");
        }
    }
}

/// A file for each language model, with a role that it serves.
fn files(engine: &Engine, corpus: &Corpus) -> Vec<(Role, PathBuf)> {
    let mut files: Vec<(Role, PathBuf)> = Vec::new();
    for role in Role::ALL {
        let name = store::Digest::of(&[engine.model(role)]).to_string();
        let path = corpus.cache_file(&format!("prefixes-{}.kv", &name[..16]));
        if files.iter().all(|(_, known)| *known != path) {
            files.push((role, path));
        }
    }
    files
}

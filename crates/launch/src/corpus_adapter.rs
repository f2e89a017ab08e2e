//! The reader adapter that `memlocal train` keeps beside a corpus, and `--adapter corpus` and `corpus:NAME`, which name it.

use std::path::PathBuf;

use anyhow::Result;
use calls::reading;
use store::Corpus;

use crate::failure::refusal;
use crate::flags::{AdapterFlag, GlobalFlags, ModelFlags};
use crate::home;

/// The folder of the adapter of a corpus. It is removed with the corpus.
pub fn reader_of(corpus: &Corpus) -> PathBuf {
    corpus.file("adapters").join(reading::ADAPTER)
}

/// Replaces `corpus` and `corpus:NAME` by the adapters beside these corpora; `asked` is the corpus that is asked.
///
/// # Errors
/// If there is no such corpus, or it has no adapter.
pub fn resolve(models: &mut ModelFlags, asked: Option<&str>, global: &GlobalFlags) -> Result<()> {
    for flag in &mut models.adapters {
        let AdapterFlag::Corpus(named) = flag else { continue };
        let Some(name) = named.as_deref().or(asked) else {
            let hint = "name the corpus: --adapter corpus:NAME";
            return Err(refusal(
                "`--adapter corpus` is the adapter of the corpus of --corpus, and none is given",
                hint,
            ));
        };
        let path = reader_of(&home::corpora(global)?.open(name)?);
        if !path.is_dir() {
            let hint = format!("memlocal train --corpus {name} makes one");
            return Err(refusal(format!("there is no adapter beside the corpus {name}"), hint));
        }
        *flag = AdapterFlag::At { name: reading::ADAPTER.to_owned(), path };
    }
    Ok(())
}

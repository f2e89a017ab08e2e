//! `memlocal ingest --watch` and `--delete`: a corpus follows its folders.

use std::thread;

use anyhow::Result;
use launch::corpus_adapter::reader_of;
use launch::eprintln;
use memory::Session;
use sources::{Changes, Watch};
use store::{Corpora, Writer};

use crate::args::Ingest;
use crate::documents::{Documents, fill, print_content};
use crate::gone::{LOOK, remove_gone, remove_old_parts, report_kept, when_free};

/// Ingests what changes, until the process is interrupted. The corpus is open for writing only meanwhile.
pub fn follow(mut watch: Watch, ingest: &Ingest, corpora: &Corpora, session: &Session<'_>) -> Result<()> {
    eprintln!("watching for changes; Ctrl-C ends it");
    loop {
        thread::sleep(LOOK);
        let Changes { changed, removed } = watch.look();
        if changed.is_empty() && removed.is_empty() {
            continue;
        }
        if !ingest.delete {
            report_kept(&removed);
        }
        if changed.is_empty() && !ingest.delete {
            continue;
        }
        let mut writer = when_free(|| corpora.open_writer(&ingest.corpus))?;
        let had_adapter = reader_of(&writer).exists();
        let mut documents = Documents::of(changed, &ingest.paths);
        fill(&mut writer, &mut documents, session)?;
        remove_old_parts(&mut writer, &documents)?;
        if ingest.delete {
            remove_gone(&mut writer, &ingest.paths, &[], &documents)?;
        }
        report_deleted_adapter(had_adapter, &writer);
        print_content(&writer)?;
    }
}

/// Says that the adapter of a corpus was deleted with a text that it had learned from.
pub fn report_deleted_adapter(was_there: bool, writer: &Writer) {
    if was_there && !reader_of(writer).exists() {
        let name = writer.name();
        eprintln!("the adapter of {name} was deleted, since it had learned from replaced or removed documents");
        eprintln!("hint: memlocal train --corpus {name} makes another");
    }
}

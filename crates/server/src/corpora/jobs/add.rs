//! Adding the files of a job to its corpus.

use std::collections::HashSet;

use memory::Session;
use sources::{Cause, Kind, Opened, ReadOptions, Source, is_mailbox_part};
use store::{Change, Document, Writer};

use super::failed_file::{FailedFile, reason};
use super::job::{Added, AddedInPart, Job, Upload};
use crate::app::App;
use crate::error::Result;

/// Adds the files to the corpus until the job is cancelled.
pub(super) fn add(job: &Job, app: &App, writer: &mut Writer, session: &Session<'_>) -> Result<()> {
    for upload in &job.files {
        if job.is_cancelled() {
            return Ok(());
        }
        match open(upload, job, app) {
            Ok(Opened::Text(mut text)) => {
                text.path = named(upload, job, &text.path);
                let added = memory::add_text(&text, writer, session)?;
                report_added(job, text.path, &added);
            }
            Ok(Opened::Sources(sources)) => add_sources(sources, upload, job, writer, session)?,
            Err(reason) => report_unread(job, upload, reason),
        }
    }
    Ok(())
}

/// Adds the documents of a file until the job is cancelled. If reading fails, those before the failure stay, and so do the
/// later ones that the corpus has of an earlier version.
fn add_sources(
    mut sources: impl Iterator<Item = std::result::Result<Source, Cause>>,
    upload: &Upload,
    job: &Job,
    writer: &mut Writer,
    session: &Session<'_>,
) -> Result<()> {
    let mut documents = 0;
    while !job.is_cancelled() {
        match sources.next() {
            Some(Ok(mut source)) => {
                source.path = named(upload, job, &source.path);
                let added = memory::add(&source, writer, session)?;
                report_added(job, source.path, &added);
                documents += 1;
            }
            Some(Err(cause)) if documents > 0 => {
                let part = AddedInPart { name: upload.name.clone(), documents, reason: reason(&cause) };
                job.change(|state| state.added_in_part.push(part));
                return Ok(());
            }
            Some(Err(cause)) => {
                report_unread(job, upload, reason(&cause));
                return Ok(());
            }
            None => return remove_old_parts(upload, job, writer),
        }
    }
    Ok(())
}

fn report_added(job: &Job, name: String, added: &memory::Added) {
    let line = Added { name, document: added.document, change: change_label(added.change), pages: added.pages };
    job.change(|state| state.added.push(line));
}

fn report_unread(job: &Job, upload: &Upload, reason: String) {
    job.change(|state| state.unread.push(FailedFile { name: upload.name.clone(), reason }));
}

fn open(upload: &Upload, job: &Job, app: &App) -> std::result::Result<Opened, String> {
    let path = job.folder.join(&upload.file);
    if !path.exists() {
        return Err("its document was deleted, and the upload with it".to_owned());
    }
    let options = ReadOptions {
        pdf_child: app.config.pdf_child.clone(),
        max_file_bytes: app.config.max_upload_bytes as u64,
        ..ReadOptions::default()
    };
    sources::open(&path, &options).map_err(|error| reason(&error.cause))
}

/// The name of a document of an upload: that of the upload, not the path of the stored file.
fn named(upload: &Upload, job: &Job, path: &str) -> String {
    let stored = job.folder.join(&upload.file);
    let rest = path.strip_prefix(&*stored.to_string_lossy()).unwrap_or_default();
    format!("{}{rest}", upload.name)
}

/// Removes the documents that a mailbox had and does not have any more: it is replaced as a whole.
fn remove_old_parts(upload: &Upload, job: &Job, writer: &mut Writer) -> Result<()> {
    let mailbox = Kind::Mailbox.to_string();
    let added: HashSet<String> = job.state.borrow().added.iter().map(|added| added.name.clone()).collect();
    let is_old = |document: &Document| {
        document.kind == mailbox && is_mailbox_part(&document.path, &upload.name) && !added.contains(&document.path)
    };
    for document in writer.documents()?.into_iter().filter(is_old) {
        match writer.remove_document(document.id) {
            Err(error @ store::Error::CorpusBusy { .. }) => {
                let reason = format!("the mailbox does not have it any more, and it cannot be deleted now: {error}");
                job.change(|state| state.unread.push(FailedFile { name: document.path, reason }));
            }
            removed => removed?,
        }
    }
    Ok(())
}

fn change_label(change: Change) -> &'static str {
    match change {
        Change::Added => "added",
        Change::Replaced => "replaced",
        Change::Recut => "cut anew",
        Change::Unchanged => "unchanged",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use calls::{Priority, WorkflowId};
    use memory::Trace;
    use serde_json::json;
    use sources::Section;
    use store::{Corpora, DocId, NewDocument};
    use tempfile::TempDir;

    use super::super::job::{NewJob, Progress, Status};
    use super::super::scripted::{self, new_folder};
    use super::*;
    use crate::corpora::settings::default_settings;
    use crate::tenant::Tenant;

    /// An app that adds a mailbox to its corpus `pell`.
    struct Adding {
        app: App,
        tenant: Arc<Tenant>,
        trace: Trace,
        _data: TempDir,
    }

    impl Adding {
        /// The corpus has one document, the fourth of the mailbox `a.mbox`.
        fn begin() -> (Adding, Writer) {
            let data = new_folder();
            let app = scripted::app(&data);
            let tenant = app.tenants.anonymous();
            let mut writer = tenant.corpora.create("pell").expect("a corpus");
            put(&mut writer, "a.mbox#4", "mailbox");
            (Adding { app, tenant, trace: Trace::off(), _data: data }, writer)
        }

        fn session(&self) -> Session<'_> {
            Session {
                caller: &*self.app.caller,
                embedder: &*self.app.embedder,
                settings: default_settings(),
                trace: &self.trace,
                workflow: WorkflowId(1),
                tenant: self.tenant.id,
                priority: Priority::Bulk,
                on_text: None,
            }
        }

        /// A job that is to add a file of this name; its folder is empty.
        fn new_job(&self, name: &str) -> NewJob {
            let folder = self.tenant.uploads.create().expect("there is room");
            scripted::new_job("job-1", &[(name, "0.txt")], folder)
        }
    }

    /// Stores a document of this path and kind.
    fn put(writer: &mut Writer, path: &str, kind: &str) {
        let new = NewDocument { path, kind, title: "", text: "The lamp was out.", passages: &[] };
        writer.put_document(&new).expect("it can be stored");
    }

    /// A document of the mailbox that a job is to add, as it is read.
    fn part(job: &Job, number: usize) -> Source {
        let stored = job.folder.join(&job.files[0].file);
        let end = if number == 1 { String::new() } else { format!("#{number}") };
        let text = format!("The lamp {number} was out.");
        let sections = vec![Section { span: 0..text.len(), title: None, time: None, turns: Vec::new() }];
        let path = format!("{}{end}", stored.display());
        Source { path, kind: Kind::Mailbox, title: None, text, encoding: None, sections }
    }

    fn names(writer: &Writer) -> Vec<String> {
        writer.documents().expect("documents").into_iter().map(|document| document.path).collect()
    }

    #[tokio::test]
    async fn a_job_that_is_cancelled_within_a_mailbox_keeps_what_is_added_and_adds_no_more() {
        let (adding, mut writer) = Adding::begin();
        let NewJob { job, folder: _folder } = adding.new_job("a.mbox");
        let session = adding.session();
        let parts = (1..=3).map(|number| {
            if number == 2 {
                job.stop();
            }
            Ok(part(&job, number))
        });
        add_sources(parts, &job.files[0], &job, &mut writer, &session).expect("it ends");
        assert_eq!(names(&writer), ["a.mbox#4", "a.mbox", "a.mbox#2"], "an older document is not removed");
        let state = job.state.borrow();
        assert_eq!((state.added.len(), state.added_in_part.len(), state.unread.len()), (2, 0, 0));
    }

    #[tokio::test]
    async fn a_mailbox_that_cannot_be_read_to_its_end_is_added_in_part() {
        let (adding, mut writer) = Adding::begin();
        let NewJob { job, folder: _folder } = adding.new_job("a.mbox");
        let session = adding.session();
        let damage = || Err(Cause::Damaged { kind: Kind::Mailbox, detail: "message 9: it is cut".to_owned() });
        let reason = "damaged mailbox: message 9: it is cut";
        let parts = (1..=2).map(|number| Ok(part(&job, number))).chain([damage()]);
        add_sources(parts, &job.files[0], &job, &mut writer, &session).expect("it ends");
        assert_eq!(names(&writer), ["a.mbox#4", "a.mbox", "a.mbox#2"], "the older fourth document may still be there");
        let shown = job.to_json();
        assert_eq!(shown["added_in_part"], json!([{ "name": "a.mbox", "documents": 2, "reason": reason }]));
        assert_eq!(shown["unread"], json!([]));
        job.change(|state| state.status = Status::Done);
        let want = format!("only its first 2 documents were read: {reason}");
        assert_eq!(job.progress_of("a.mbox"), Progress::DoneInPart(want));

        let NewJob { job, folder: _folder } = adding.new_job("b.mbox");
        add_sources([damage()].into_iter(), &job.files[0], &job, &mut writer, &session).expect("it ends");
        let shown = job.to_json();
        assert_eq!(shown["unread"], json!([{ "name": "b.mbox", "reason": reason }]));
        assert_eq!(shown["added_in_part"], json!([]));
    }

    #[test]
    fn documents_that_a_mailbox_does_not_have_any_more_are_removed() {
        let folder = new_folder();
        let corpora = Corpora::new(folder.path());
        let mut writer = corpora.create("pell").expect("a corpus");
        let kept = [("a.mbox", "mailbox"), ("a.mbox#2", "mailbox"), ("a.mbox#4", "text"), ("b.mbox#3", "mailbox")];
        kept.into_iter().for_each(|(path, kind)| put(&mut writer, path, kind));
        put(&mut writer, "a.mbox#3", "mailbox");
        let NewJob { job, folder: _place } = scripted::new_job("job-1", &[("a.mbox", "0.mbox")], new_folder());
        for name in ["a.mbox", "a.mbox#2"] {
            let line = Added { name: name.to_owned(), document: DocId(1), change: "unchanged", pages: 0 };
            job.change(|state| state.added.push(line));
        }
        let reader = corpora.open("pell").expect("the corpus");
        remove_old_parts(&job.files[0], &job, &mut writer).expect("what is in use is reported");
        assert_eq!(job.state.borrow().unread[0].name, "a.mbox#3");
        drop(reader);
        remove_old_parts(&job.files[0], &job, &mut writer).expect("it can be removed");
        let paths: Vec<String> = writer.documents().expect("documents").into_iter().map(|found| found.path).collect();
        assert_eq!(paths, kept.map(|(path, _)| path));
        assert_eq!(job.state.borrow().unread.len(), 1);
    }
}

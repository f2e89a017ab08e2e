//! The files of a holder on disk.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::private;

use super::records::{Record, Records, unknown};
use crate::error::{Result, ServerError};
use crate::fresh::{fresh_id, since_1970};

/// A file of a holder; its content is beside the record.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StoredFile {
    pub id: String,
    /// Seconds since 1970.
    pub created: u64,
    pub name: String,
    pub bytes: u64,
    pub purpose: String,
}

impl Record for StoredFile {
    const PREFIX: &'static str = "file";
    const NOUN: &'static str = "file";

    fn id(&self) -> &str {
        &self.id
    }
}

/// The files of one holder.
pub(crate) type Files = Records<StoredFile>;

/// What the files that batches write are for.
const WRITTEN: &str = "batch_output";

/// Maximum files of one holder; what batches write is kept in any case.
const MAX_FILES: usize = 10_000;

impl Files {
    /// The file and the place of its content.
    pub fn find(&self, id: &str) -> Result<(StoredFile, PathBuf)> {
        Ok((self.read(id)?, self.path(id, "content")?))
    }

    /// The content of a file, open for reading, and its length in bytes.
    pub fn open(&self, id: &str) -> Result<(File, u64)> {
        let file = match File::open(self.find(id)?.1) {
            // It was deleted after its record was read.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(unknown::<StoredFile>(id)),
            opened => opened?,
        };
        let bytes = file.metadata()?.len();
        Ok((file, bytes))
    }

    /// The content of a file.
    pub fn content(&self, id: &str) -> Result<Vec<u8>> {
        let mut content = Vec::new();
        self.open(id)?.0.read_to_end(&mut content)?;
        Ok(content)
    }

    /// Keeps a file whose content is at this place, which is moved.
    pub fn keep(&self, name: String, purpose: &str, content: PathBuf) -> Result<StoredFile> {
        let _one = self.lock()?;
        let _alone = self.alone()?;
        if purpose != WRITTEN && self.all()?.len() >= MAX_FILES {
            let message = format!("at most {MAX_FILES} files are kept: delete some");
            return Err(ServerError::invalid(message, "file"));
        }
        let (id, bytes) = (fresh_id("file")?, fs::metadata(&content)?.len());
        let purpose = purpose.to_owned();
        let file = StoredFile { id, created: since_1970().as_secs(), name, bytes, purpose };
        let place = self.path(&file.id, "content")?;
        fs::rename(content, &place)?;
        private::sync_name(&place)?;
        self.write(&file).inspect_err(|_| drop(fs::remove_file(&place)))?;
        Ok(file)
    }

    /// As [`Files::keep`], for a file of a batch.
    pub fn keep_written(&self, name: String, content: PathBuf) -> Result<StoredFile> {
        self.keep(name, WRITTEN, content)
    }

    /// Lets the contents of the files that batches have written be rewritten, one by one.
    ///
    /// # Errors
    /// The first one; the files after it are as they were.
    pub fn rewrite_written(&self, rewrite: impl Fn(&Path) -> Result<()>) -> Result<()> {
        let _one = self.lock()?;
        for file in self.all()?.into_iter().filter(StoredFile::is_written) {
            let content = self.path(&file.id, "content")?;
            if !content.exists() {
                continue;
            }
            rewrite(&content)?;
            let bytes = fs::metadata(content)?.len();
            if bytes != file.bytes {
                self.write(&StoredFile { bytes, ..file })?;
            }
        }
        Ok(())
    }

    pub fn delete(&self, id: &str) -> Result<()> {
        let _one = self.lock()?;
        let content = self.path(id, "content")?;
        // A content without its record is deleted when a server starts; a record without its content could not be read.
        self.remove(id)?;
        match fs::remove_file(content) {
            // A server that starts on this data folder was faster.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => Ok(removed?),
        }
    }

    /// Deletes what a server left that ended between moving a content and writing its record.
    ///
    /// # Errors
    /// If the files cannot be listed or deleted.
    pub fn sweep(&self) -> Result<()> {
        if self.files()?.is_empty() {
            return Ok(());
        }
        let _one = self.lock()?;
        let _alone = self.alone()?;
        for (path, ..) in self.files()? {
            let is_left = match path.extension().and_then(OsStr::to_str) {
                Some("content") => !path.with_extension("json").exists(),
                Some("new") => true,
                _ => false,
            };
            if is_left {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    /// Keeps other processes on this data folder from adding and sweeping files.
    fn alone(&self) -> Result<File> {
        private::folder(self.folder())?;
        let guard = private::create(&self.folder().join("lock"))?;
        guard.lock()?;
        Ok(guard)
    }
}

impl StoredFile {
    /// True for what a batch has written.
    pub fn is_written(&self) -> bool {
        self.purpose == WRITTEN
    }

    pub fn to_json(&self) -> Value {
        json!({ "id": self.id, "object": "file", "bytes": self.bytes, "created_at": self.created,
            "filename": self.name, "purpose": self.purpose, "status": "processed", "expires_at": null,
            "status_details": null })
    }
}

#[cfg(test)]
mod tests {
    use super::super::records::LOCK;
    use super::*;

    #[test]
    fn outputs_of_batches_are_kept_beyond_the_maximum_of_files() {
        let folder = tempfile::tempdir().expect("the system has a folder for temporary files");
        let files = Files::new(folder.path().join("files"));
        private::folder(files.folder()).expect("it can be made");
        for number in 0..MAX_FILES {
            let id = format!("file-{number:032x}");
            let file = json!({ "id": id, "created": 0, "name": "a.txt", "bytes": 0, "purpose": "user_data" });
            fs::write(files.folder().join(format!("{id}.json")), file.to_string()).expect("it can be written");
        }
        let content = || {
            let place = folder.path().join("content");
            fs::write(&place, "Yes.").expect("it can be written");
            place
        };
        let refused = files.keep("b.txt".into(), "user_data", content()).expect_err("there are too many");
        assert!(refused.to_string().contains("at most 10000 files"), "{refused}");
        assert_eq!(files.keep_written("batch_output.jsonl".into(), content()).expect("it is kept").bytes, 4);
    }

    #[test]
    fn files_are_not_changed_without_their_lock() {
        let folder = tempfile::tempdir().expect("the system has a folder for temporary files");
        let files = Files::new(folder.path().join("files"));
        let content = folder.path().join("content");
        fs::write(&content, "Yes.").expect("it can be written");
        let kept = files.keep("a.txt".into(), "user_data", content.clone()).expect("it is kept");
        let lock = files.folder().join(LOCK);
        fs::remove_file(&lock).expect("it is there");
        fs::create_dir(lock).expect("a folder can be made");
        fs::write(&content, "No.").expect("it can be written");
        assert!(files.keep("b.txt".into(), "user_data", content).is_err() && files.delete(&kept.id).is_err());
        assert_eq!(files.content(&kept.id).expect("it is there"), b"Yes.");
        assert_eq!(files.all().expect("they can be listed").len(), 1);
    }
}

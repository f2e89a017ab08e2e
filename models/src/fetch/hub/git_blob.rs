//! Git's name of a content, which is the etag of files that are not in large file storage.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha1::{Digest, Sha1};

use super::super::FetchError;

/// Checks a file against an etag that is the name of a Git blob; any other etag is no digest and says nothing.
pub(super) fn check(path: &Path, bytes: u64, etag: &str) -> Result<(), FetchError> {
    let is_blob = etag.len() == 40 && etag.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !is_blob {
        return Ok(());
    }
    let found = name_of(path, bytes).map_err(|error| FetchError::from_disk(path, error))?;
    if found == etag {
        return Ok(());
    }
    Err(FetchError::WrongBlob { path: path.to_owned(), expected: etag.to_owned(), found })
}

fn name_of(path: &Path, bytes: u64) -> io::Result<String> {
    let mut hasher = Sha1::new();
    hasher.update(format!("blob {bytes}\0"));
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(format!("{:x}", hasher.finalize())),
            read => hasher.update(&buffer[..read]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_has_the_name_that_git_gives_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.json");
        std::fs::write(&path, "{}\n").unwrap();
        // printf '{}\n' | git hash-object --stdin
        let name = "0967ef424bce6791893e9a57bb952f80fd536e93";
        check(&path, 3, name).unwrap();
        check(&path, 3, "W/no-digest").unwrap();
        std::fs::write(&path, "[]\n").unwrap();
        assert!(matches!(check(&path, 3, name), Err(FetchError::WrongBlob { .. })));
    }
}

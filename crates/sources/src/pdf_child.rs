//! Both ends of the pipe to a child process that reads a PDF, so that a hang costs a time limit, a decompression bomb a
//! memory limit, and a crash one file.
//!
//! The child gets the PDF's path as its last argument and prints the pages' text as UTF-8, a form feed between two
//! pages. It exits with 0; or with [`ENCRYPTED`] or [`PAGE_TOO_LARGE`]; or with anything else, and then the last line of
//! its stderr says why.

use std::ffi::OsString;
use std::io::{self, Write};
use std::panic;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use crate::child_process::{LimitedCommand, run};
use crate::limit::{PDF_MEMORY_BYTES, PDF_PAGE_BYTES, PDF_TEXT_BYTES, PDF_TIME};
use crate::pdf_pages::each_page;
use crate::{Cause, Kind, Limit, Ocr, child_limits};

/// Between two pages on the child's stdout.
const PAGE_BREAK: &str = "\u{c}";
/// The child's exit code for a PDF that needs a password.
const ENCRYPTED: u8 = 3;
/// The child's exit code for a page whose content exceeds its limit.
const PAGE_TOO_LARGE: u8 = 4;

/// A command that prints the text of the PDF named by its last argument, as [`print_pdf_text`] does, and the limits under
/// which it runs.
#[derive(Clone, Debug)]
pub struct PdfChild {
    /// The program.
    pub program: PathBuf,
    /// Its arguments before the path.
    pub args: Vec<OsString>,
    /// The process is killed after this time. On Linux it also ends with the process that has started it.
    pub time_limit: Duration,
    /// The process is killed when it has more memory than this, in bytes.
    ///
    /// On every system its resident memory is checked each 5 ms. On Linux its address space is limited as well
    /// (`RLIMIT_AS`), so that it can never have more; on macOS, which does not enforce that limit, and on Windows it can
    /// exceed the limit by what it allocates within 5 ms.
    pub memory_limit_bytes: u64,
    /// The programs that recognise the text of scanned pages, if they are installed.
    pub ocr: Option<Ocr>,
}

impl PdfChild {
    /// A command with the default limits, 2 minutes and 1 GiB, and with OCR where its programs are installed.
    pub fn new(program: impl Into<PathBuf>, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        PdfChild {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            time_limit: PDF_TIME,
            memory_limit_bytes: PDF_MEMORY_BYTES,
            ocr: Ocr::installed(),
        }
    }
}

/// The main function of the child: prints the text of a PDF, or on stderr why there is none.
#[must_use]
pub fn print_pdf_text(path: &Path) -> ExitCode {
    // Panics of the PDF library are reported as errors, not as messages about its code.
    panic::set_hook(Box::new(|_| {}));
    let mut stdout = io::BufWriter::new(io::stdout().lock());
    let mut first = true;
    let ready = child_limits::end_with_parent().map_err(Cause::Io);
    let print = |page: String| {
        let page_break = if first { "" } else { PAGE_BREAK };
        first = false;
        let page = page.replace(PAGE_BREAK, " ");
        stdout.write_all(page_break.as_bytes()).and_then(|()| stdout.write_all(page.as_bytes())).map_err(Cause::Io)
    };
    let printed = ready.and_then(|()| each_page(path, print));
    let (code, message) = match printed.and_then(|()| stdout.flush().map_err(Cause::Io)) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Cause::Encrypted) => (ENCRYPTED, Cause::Encrypted.to_string()),
        Err(Cause::LimitExceeded(limit @ Limit::PdfPageBytes(_))) => (PAGE_TOO_LARGE, limit.to_string()),
        Err(Cause::Damaged { detail, .. }) => (1, detail.replace('\n', " ")),
        Err(other) => (1, other.to_string()),
    };
    // Without a reader of stderr the exit code remains.
    let _ = writeln!(io::stderr(), "{message}");
    ExitCode::from(code)
}

/// The text of every page, read in a child process.
///
/// # Errors
/// [`Cause::LimitExceeded`] if the child exceeded its time, its memory or its output, [`Cause::PdfChild`] if it could not
/// be run, and the child's own error.
pub(crate) fn pages(child: &PdfChild, path: &Path) -> Result<Vec<String>, Cause> {
    // An absolute path cannot be taken for an option.
    let path = std::path::absolute(path).map_err(Cause::Io)?;
    let PdfChild { program, args, time_limit, memory_limit_bytes, .. } = child.clone();
    let command = LimitedCommand { program, args, time_limit, memory_limit_bytes };
    let output = run(&command, Some(&path), Vec::new())?;
    if output.text.len() as u64 > PDF_TEXT_BYTES {
        return Err(Limit::PdfTextBytes(PDF_TEXT_BYTES).into());
    }
    if !output.status.success() {
        return Err(failure(output.status, &output.stderr, child));
    }
    let text = String::from_utf8(output.text).map_err(|error| Cause::damaged(Kind::Pdf, error.to_string()))?;
    Ok(text.split(PAGE_BREAK).map(str::to_owned).collect())
}

/// The error of a child that ended without success.
fn failure(status: ExitStatus, stderr: &[u8], child: &PdfChild) -> Cause {
    if status.code() == Some(i32::from(ENCRYPTED)) {
        return Cause::Encrypted;
    }
    if status.code() == Some(i32::from(PAGE_TOO_LARGE)) {
        return Limit::PdfPageBytes(PDF_PAGE_BYTES).into();
    }
    let stderr = String::from_utf8_lossy(stderr);
    let mut lines = stderr.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    // The message of Rust's runtime before it aborts.
    if lines.clone().any(|line| line.starts_with("memory allocation of ") && line.ends_with(" failed")) {
        return Limit::PdfMemoryBytes(child.memory_limit_bytes).into();
    }
    let detail = lines.next().map_or_else(|| format!("the PDF reader ended with {status}"), str::to_owned);
    Cause::damaged(Kind::Pdf, detail)
}

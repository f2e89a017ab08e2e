//! Both ends of the pipe to a child process that reads a PDF, so that a hang costs a time limit, a decompression bomb a
//! memory limit, and a crash one file.
//!
//! The child gets the PDF's path as its last argument and prints the pages' text as UTF-8, a form feed between two
//! pages. It exits with 0; or with [`ENCRYPTED`] or [`PAGE_TOO_LARGE`]; or with anything else, and then the last line of
//! its stderr says why.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::panic;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::limit::{PDF_MEMORY_BYTES, PDF_PAGE_BYTES, PDF_TEXT_BYTES, PDF_TIME};
use crate::{Cause, Kind, Limit, Ocr, child_memory, pdf};

/// Between two pages on the child's stdout.
const PAGE_BREAK: &str = "\u{c}";
/// The child's exit code for a PDF that needs a password.
const ENCRYPTED: u8 = 3;
/// The child's exit code for a page whose content exceeds its limit.
const PAGE_TOO_LARGE: u8 = 4;
const MAX_STDERR_BYTES: u64 = 1 << 20;
/// How often the child's time and memory are checked.
const POLL: Duration = Duration::from_millis(5);

/// A command that prints the text of the PDF named by its last argument, as [`print_pdf_text`] does, and the limits under
/// which it runs.
#[derive(Clone, Debug)]
pub struct PdfChild {
    /// The program.
    pub program: PathBuf,
    /// Its arguments before the path.
    pub args: Vec<OsString>,
    /// The process is killed after this time.
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
    let printed = pdf::each_page(path, |page| {
        let page_break = if first { "" } else { PAGE_BREAK };
        first = false;
        let page = page.replace(PAGE_BREAK, " ");
        stdout.write_all(page_break.as_bytes()).and_then(|()| stdout.write_all(page.as_bytes())).map_err(Cause::Io)
    });
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
    let output = run(child, Some(&path), Vec::new())?;
    if output.text.len() as u64 > PDF_TEXT_BYTES {
        return Err(Limit::PdfTextBytes(PDF_TEXT_BYTES).into());
    }
    if !output.status.success() {
        return Err(failure(output.status, &output.stderr, child));
    }
    let text = String::from_utf8(output.text).map_err(|error| Cause::damaged(Kind::Pdf, error.to_string()))?;
    Ok(text.split(PAGE_BREAK).map(str::to_owned).collect())
}

/// What a process has printed; of its output at most one byte more than [`PDF_TEXT_BYTES`].
pub(crate) struct Output {
    pub status: ExitStatus,
    pub text: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Runs a program on an input, under its limits.
///
/// # Errors
/// [`Cause::LimitExceeded`] if it exceeded its time or its memory, [`Cause::PdfChild`] if it could not be run.
pub(crate) fn run(child: &PdfChild, path: Option<&Path>, input: Vec<u8>) -> Result<Output, Cause> {
    let not_run = |error| Cause::PdfChild { program: child.program.clone(), error };
    let mut process = Command::new(&child.program)
        .args(&child.args)
        .args(path)
        .stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(not_run)?;
    let limited = child_memory::limit_address_space(&mut process, child.memory_limit_bytes);
    let stdin = process.stdin.take();
    // A program that does not read its input says why by its exit status.
    let feeder = thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(&input)));
    let text = drain(process.stdout.take(), PDF_TEXT_BYTES);
    let stderr = drain(process.stderr.take(), MAX_STDERR_BYTES);
    let ended = limited.map_err(not_run).and_then(|()| wait(&mut process, child, not_run));
    if ended.is_err() {
        // It may have ended by itself in the meantime.
        let _ = process.kill();
        let _ = process.wait();
    }
    let status = ended?;
    let _ = feeder.join();
    Ok(Output { status, text: text.join().unwrap_or_default(), stderr: stderr.join().unwrap_or_default() })
}

/// Reads a pipe to its end in a thread, since the child would block on a full pipe. Beyond the limit the pipe is closed.
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

/// Waits for the child to end.
///
/// # Errors
/// [`Cause::LimitExceeded`] once it exceeds its time or memory; it is still running then.
fn wait(process: &mut Child, child: &PdfChild, not_run: impl Fn(io::Error) -> Cause) -> Result<ExitStatus, Cause> {
    let start = Instant::now();
    let mut memory = child_memory::Watch::of(process);
    loop {
        if let Some(status) = process.try_wait().map_err(&not_run)? {
            return Ok(status);
        }
        if start.elapsed() >= child.time_limit {
            return Err(Limit::Time(child.time_limit).into());
        }
        if memory.resident_bytes() > child.memory_limit_bytes {
            return Err(Limit::PdfMemoryBytes(child.memory_limit_bytes).into());
        }
        thread::sleep(POLL);
    }
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

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_stopped_at_its_memory_limit_also_without_a_limit_of_the_system() {
        // Keeps the last bytes of its input in memory, which has no end.
        let mut child = PdfChild::new("tail", ["-c", "200000000"]);
        child.memory_limit_bytes = 50 << 20;
        let mut zeros = Command::new("cat").arg("/dev/zero").stdout(Stdio::piped()).spawn().expect("cat is installed");
        let input = zeros.stdout.take().expect("it has a pipe");
        let mut command = Command::new(&child.program);
        let mut process = command.args(&child.args).stdin(input).spawn().expect("tail is installed");
        let ended = wait(&mut process, &child, Cause::Io);
        for process in [&mut process, &mut zeros] {
            process.kill().and_then(|()| process.wait()).expect("the process is ours");
        }
        let Err(Cause::LimitExceeded(limit)) = ended else { panic!("{ended:?}") };
        assert_eq!(limit, Limit::PdfMemoryBytes(50 << 20));
        assert_eq!(
            limit.to_string(),
            "reading the PDF needs more memory than the limit of 50 MiB; split it or convert it to text"
        );
    }
}

//! A child process under limits of time, memory and output.
//!
//! This process enforces them. On Linux the system does too, should this process be killed before the child ends: the address space
//! and the processor time of the child are limited. Its pipes are closed then, so that it ends when it reads or writes.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::limit::PDF_TEXT_BYTES;
use crate::{Cause, Limit, child_limits};

const MAX_STDERR_BYTES: u64 = 1 << 20;
/// How often the child's time and memory are checked.
const POLL: Duration = Duration::from_millis(5);

/// A program, its arguments before the input, and the limits under which it runs.
#[derive(Clone, Debug)]
pub(crate) struct LimitedCommand {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    pub time_limit: Duration,
    pub memory_limit_bytes: u64,
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
pub(crate) fn run(child: &LimitedCommand, path: Option<&Path>, input: Vec<u8>) -> Result<Output, Cause> {
    let not_run = |error| Cause::PdfChild { program: child.program.clone(), error };
    let mut process = Command::new(&child.program)
        .args(&child.args)
        .args(path)
        .stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(not_run)?;
    let limited = child_limits::set(&mut process, child.memory_limit_bytes, child.time_limit);
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
fn wait(
    process: &mut Child,
    child: &LimitedCommand,
    not_run: impl Fn(io::Error) -> Cause,
) -> Result<ExitStatus, Cause> {
    let start = Instant::now();
    let mut memory = child_limits::Watch::of(process);
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

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn the_system_limits_memory_and_time_of_a_child() {
        // It reads its input first, which it is given once the limits are set.
        let args = ["-c", "read line; ulimit -v; ulimit -t; ulimit -H -t"].map(OsString::from).to_vec();
        let (program, time_limit) = (PathBuf::from("sh"), Duration::from_millis(59_500));
        let child = LimitedCommand { program, args, time_limit, memory_limit_bytes: 50 << 20 };
        let output = run(&child, None, b"go\n".to_vec()).expect("a shell is installed");
        let seconds = 60 * thread::available_parallelism().expect("Linux knows it").get();
        let limits = format!("{}\n{seconds}\n{seconds}\n", 50 << 10);
        assert_eq!(str::from_utf8(&output.text), Ok(limits.as_str()));
    }

    #[test]
    fn a_child_is_stopped_at_its_memory_limit_also_without_a_limit_of_the_system() {
        // Keeps the last bytes of its input in memory, which has no end.
        let args = ["-c", "200000000"].map(OsString::from).to_vec();
        let (program, time_limit) = (PathBuf::from("tail"), Duration::from_mins(2));
        let child = LimitedCommand { program, args, time_limit, memory_limit_bytes: 50 << 20 };
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

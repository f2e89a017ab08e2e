//! The child process that reads a PDF, as a program of its own: `print_pdf_text FILE.pdf`.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args_os().nth(1) {
        Some(path) => sources::print_pdf_text(Path::new(&path)),
        None => ExitCode::FAILURE,
    }
}

//! Questions to the user that are answered by yes or no.

use std::fmt::Display;
use std::io::{self, BufRead, IsTerminal, Write};

/// Whether there is a terminal at which the user can be asked.
pub fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks on standard error; anything but `y` and `yes` is a no.
///
/// # Errors
/// If the terminal cannot be read or written.
pub fn is_confirmed(question: impl Display) -> io::Result<bool> {
    // Standard error is not locked: while an answer is awaited Ctrl-C is reported on it, by another thread.
    is_confirmed_by(question, &mut io::stdin().lock(), &mut io::stderr())
}

/// The same with other input and output.
pub(crate) fn is_confirmed_by(
    question: impl Display,
    answers: &mut impl BufRead,
    out: &mut impl Write,
) -> io::Result<bool> {
    write!(out, "{question} [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    answers.read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

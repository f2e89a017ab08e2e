//! OCR: the text of pages that are pictures, by pdftoppm (poppler) and tesseract where they are installed, each in a child
//! process under limits of time and memory.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::child_process::{LimitedCommand, Output, run};
use crate::limit::{OCR_MEMORY_BYTES, OCR_PAGE_TIME, OCR_TIME};
use crate::{Cause, Kind, Limit};

/// The longer side of a page's picture: 300 dots an inch for A4.
const PIXELS: &str = "3500";

/// The programs that recognise the text of scanned pages, and their limits.
#[derive(Clone, Debug)]
pub struct Ocr {
    /// Draws a page.
    pub pdftoppm: PathBuf,
    /// Recognises its text.
    pub tesseract: PathBuf,
    /// The languages that tesseract looks for, such as `deu+eng`; without them its own default, English.
    pub languages: Option<String>,
    /// The time of each program for one page.
    pub page_time: Duration,
    /// The time for all pages.
    pub time: Duration,
}

impl Ocr {
    /// The programs in the folders of `PATH`, with the default limits.
    pub fn installed() -> Option<Self> {
        let (pdftoppm, tesseract) = (installed("pdftoppm")?, installed("tesseract")?);
        Some(Ocr { pdftoppm, tesseract, languages: None, page_time: OCR_PAGE_TIME, time: OCR_TIME })
    }

    /// Replaces the text of pages that have none; returns whether any was recognised.
    ///
    /// # Errors
    /// [`Cause::LimitExceeded`], or [`Cause::Damaged`] with what a program says.
    pub(crate) fn fill(&self, path: &Path, pages: &mut [String]) -> Result<bool, Cause> {
        let start = Instant::now();
        let mut found = false;
        for (i, page) in pages.iter_mut().enumerate().filter(|(_, page)| page.trim().is_empty()) {
            if start.elapsed() > self.time {
                return Err(Limit::OcrTime(self.time).into());
            }
            *page = self.page(path, i + 1)?;
            found |= !page.trim().is_empty();
        }
        Ok(found)
    }

    fn page(&self, path: &Path, number: usize) -> Result<String, Cause> {
        // An absolute path cannot be taken for an option.
        let path = std::path::absolute(path).map_err(Cause::Io)?;
        let number = number.to_string();
        let picture = ["-f", &number, "-l", &number, "-gray", "-scale-to", PIXELS];
        let picture = self.run(&self.pdftoppm, &picture, Some(&path), Vec::new(), &number)?;
        let mut recognise = vec!["stdin", "stdout"];
        if let Some(languages) = &self.languages {
            recognise.extend(["-l", languages]);
        }
        let text = self.run(&self.tesseract, &recognise, None, picture, &number)?;
        String::from_utf8(text).map_err(|error| Cause::damaged(Kind::ScannedPdf, format!("page {number}: {error}")))
    }

    fn run(
        &self,
        program: &Path,
        args: &[&str],
        path: Option<&Path>,
        input: Vec<u8>,
        page: &str,
    ) -> Result<Vec<u8>, Cause> {
        let child = LimitedCommand {
            program: program.to_owned(),
            args: args.iter().map(OsString::from).collect(),
            time_limit: self.page_time,
            memory_limit_bytes: OCR_MEMORY_BYTES,
        };
        let Output { status, text, stderr } = run(&child, path, input)?;
        if status.success() {
            return Ok(text);
        }
        let stderr = String::from_utf8_lossy(&stderr);
        let detail = stderr.lines().rev().map(str::trim).find(|line| !line.is_empty());
        let detail = detail.map_or_else(|| format!("it ended with {status}"), str::to_owned);
        Err(Cause::damaged(Kind::ScannedPdf, format!("page {page}: {}: {detail}", program.display())))
    }
}

fn installed(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let name = format!("{program}{}", env::consts::EXE_SUFFIX);
    env::split_paths(&path).map(|folder| folder.join(&name)).find(|file| file.is_file())
}

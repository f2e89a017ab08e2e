//! Set-up of the process: threads, CPU kernels, Ctrl-C, the runtime of async work, the child process that reads PDFs.

use anyhow::{Context, Result};
use kernels::cpu::Isa;
use sources::PdfChild;

use crate::failure::{self, refusal};
use crate::flags::GlobalFlags;

/// Chooses the CPU kernels and sets the number of compute threads.
///
/// # Errors
/// If MEMLOCAL_CPU names kernels that this processor cannot run.
pub fn set_up_cpu(global: &GlobalFlags) -> Result<()> {
    kernels::cpu::select_isa().map_err(unknown_kernels)?;
    if let Some(threads) = global.threads {
        kernels::pool::set_threads(threads);
    }
    Ok(())
}

fn unknown_kernels(reason: String) -> anyhow::Error {
    let available: Vec<String> = Isa::available().map(|isa| isa.to_string()).collect();
    refusal(
        format!("MEMLOCAL_CPU: {reason}"),
        format!(
            "this processor runs {}; without MEMLOCAL_CPU the fastest of them that was measured is used",
            available.join(", ")
        ),
    )
}

/// Ends the process at Ctrl-C. Finished work is on the disk already. Where the signal is ignored (`nohup`, a background
/// job of a script) it stays ignored.
pub fn exit_on_interrupt() {
    let _ = ctrlc::try_set_handler(|| std::process::exit(failure::report_interruption()));
}

/// Runs a future to its end on this thread.
pub fn wait_for<T, E>(work: impl Future<Output = Result<T, E>>) -> Result<T>
where
    anyhow::Error: From<E>,
{
    let runtime = tokio::runtime::Builder::new_current_thread().build().context("no runtime")?;
    Ok(runtime.block_on(work)?)
}

/// The command that reads PDFs: this program's own hidden subcommand `pdf-text`, in a process of its own. OCR looks for the
/// languages that MEMLOCAL_OCR_LANGUAGES names.
pub fn pdf_child() -> Option<PdfChild> {
    let mut child = PdfChild::new(std::env::current_exe().ok()?, ["pdf-text"]);
    if let Some(ocr) = &mut child.ocr {
        ocr.languages = std::env::var("MEMLOCAL_OCR_LANGUAGES").ok().filter(|languages| !languages.is_empty());
    }
    Some(child)
}

//! Errors in words: `error:`, its causes, and a `hint:` where something can be done.

use std::io::Write;
use std::process::ExitCode;

use calls::CallError;
use memory::MemoryError;
use models::ModelError;
use models::fetch::FetchError;

/// The user pressed Ctrl-C.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

/// Everything was done but for some inputs.
pub const SKIPPED: u8 = 3;

const FAILED: u8 = 1;
const INTERRUPTED: u8 = 130;

/// Prints an error and gives the exit code.
pub fn report(error: &anyhow::Error) -> ExitCode {
    let mut err = std::io::stderr().lock();
    // A closed terminal is no reason to fail differently.
    let _ = writeln!(err, "error: {error}");
    let mut said = error.to_string();
    for cause in error.chain().skip(1) {
        // Some libraries repeat their cause in their own words.
        let words = cause.to_string();
        if !said.contains(&words) {
            let _ = writeln!(err, "  because: {words}");
            said = words;
        }
    }
    if let Some(hint) = error.chain().find_map(hint) {
        let _ = writeln!(err, "hint: {hint}");
    }
    ExitCode::from(if error.is::<Interrupted>() { INTERRUPTED } else { FAILED })
}

/// What can be done about an error.
fn hint(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    if error.is::<Interrupted>() {
        return Some("what was finished is kept; the same command goes on from there".into());
    }
    if let Some(error) = error.downcast_ref::<FetchError>() {
        return error.hint();
    }
    if let Some(error) = error.downcast_ref::<MemoryError>() {
        return of_memory(error);
    }
    if let Some(error) = error.downcast_ref::<CallError>() {
        return of_call(error);
    }
    if let Some(error) = error.downcast_ref::<store::Error>() {
        return of_store(error);
    }
    error.downcast_ref::<ModelError>().and_then(of_model)
}

fn of_memory(error: &MemoryError) -> Option<String> {
    Some(match error {
        MemoryError::EmptyQuestion => "put the question in quotes after `ask`".into(),
        MemoryError::EmptyCorpus { corpus } => format!("put documents into it: memlocal ingest PATH --corpus {corpus}"),
        MemoryError::NotReady { corpus, .. } => format!("finish it: memlocal ingest --corpus {corpus}"),
        _ => return None,
    })
}

fn of_call(error: &CallError) -> Option<String> {
    Some(match error {
        CallError::TooLong { step: "answer", .. } => {
            "a method that searches needs less: --method gam or --method rag, or smaller --evidence-tokens".into()
        }
        CallError::TooLong { .. } => "use smaller pages (--page-tokens) or a model with a longer context".into(),
        CallError::Overloaded { .. } => "try again when the others are done".into(),
        _ => return None,
    })
}

fn of_store(error: &store::Error) -> Option<String> {
    use store::Error as E;
    Some(match error {
        E::UnknownCorpus { nearest, .. } if nearest.is_empty() => {
            "make it with: memlocal ingest PATH --corpus NAME".into()
        }
        E::UnknownCorpus { .. } => "memlocal corpus list shows all of them".into(),
        E::CorpusBusy { .. } => "wait until it is done, or stop it: what it has finished is kept".into(),
        E::DiskFull { .. } => "free some space; nothing was lost, the same command goes on from there".into(),
        E::NotPermitted { .. } => "choose a folder that you may write to: --data-dir FOLDER, or MEMLOCAL_HOME".into(),
        E::NewerSchema { .. } => "use the newer memlocal".into(),
        E::Damaged { .. } | E::NotACorpus { .. } => {
            "restore it from a backup, or remove it (memlocal corpus rm) and ingest again".into()
        }
        _ => return None,
    })
}

fn of_model(error: &ModelError) -> Option<String> {
    Some(match error {
        ModelError::Damaged { .. } => "fetch it again: memlocal models rm NAME, then memlocal models pull NAME".into(),
        ModelError::NotACheckpoint { .. } => {
            "give a .gguf file, or a folder with config.json, tokenizer.json and *.safetensors".into()
        }
        ModelError::MissingTensor { .. } => {
            "the checkpoint is incomplete or of another architecture than it says".into()
        }
        ModelError::Unsupported { .. } => "memlocal models list shows models that work".into(),
        _ => return None,
    })
}

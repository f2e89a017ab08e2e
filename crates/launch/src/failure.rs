//! Errors as they are printed: `error:`, the causes, and a `hint:` where the user can do something.

use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

use calls::CallError;
use engine::{CapacityError, StartError};
use memory::{MemoryError, methods};
use models::ModelError;
use models::fetch::FetchError;
use remote::RemoteError;

use crate::eprintln;

/// The exit code of a command that skipped some inputs and did everything else.
pub fn skipped_some(skipped: usize) -> ExitCode {
    if skipped == 0 { ExitCode::SUCCESS } else { ExitCode::from(3) }
}

/// An error of the command line itself, with its hint.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct Refusal {
    cause: String,
    hint: String,
}

/// An error with a hint.
pub fn refusal(cause: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
    Refusal { cause: cause.into(), hint: hint.into() }.into()
}

/// Gives the error of a call that is longer than a KV cache of `kv_tokens`, the size that was asked for, the hint how large the
/// cache has to be.
pub fn with_hint_of_cache(error: anyhow::Error, kv_tokens: Option<usize>) -> anyhow::Error {
    let call = error.chain().find_map(|cause| match cause.downcast_ref::<MemoryError>() {
        Some(MemoryError::Call(call)) => Some(call),
        _ => cause.downcast_ref::<CallError>(),
    });
    let Some(CallError::TooLong { prompt_tokens, max_output_tokens, context_tokens, .. }) = call else { return error };
    // The context is the model's, or the cache in whole pages.
    if kv_tokens.is_none_or(|tokens| tokens.next_multiple_of(models::PAGE_TOKENS) != *context_tokens) {
        return error;
    }
    let least = prompt_tokens + max_output_tokens;
    let hint =
        format!("this call needs --kv-tokens {least} at least; without the flag the cache holds the model's context");
    refusal(error.to_string(), hint)
}

/// Prints an error and gives the exit code.
pub fn report(error: &anyhow::Error) -> ExitCode {
    let mut messages = error.chain().map(message);
    let mut said = messages.next().unwrap_or_default();
    eprintln!("error: {said}");
    for words in messages {
        // Some libraries repeat their cause in their own words, or add no more than a number.
        if !said.contains(&words) && !words.contains(&said) {
            eprintln!("  because: {words}");
            said = words;
        }
    }
    if let Some(hint) = hint_of(error) {
        eprintln!("hint: {hint}");
    }
    ExitCode::FAILURE
}

/// Prints that the user pressed Ctrl-C, and gives the exit code.
pub fn report_interruption() -> i32 {
    let mut err = std::io::stderr().lock();
    // The cursor may be behind a progress bar.
    let start = if err.is_terminal() { "\n" } else { "" };
    let hint = "finished work is stored; the same command resumes it";
    let _ = writeln!(err, "{start}error: interrupted\nhint: {hint}");
    130
}

/// An error and its causes in one line, with passwords in URLs redacted.
pub fn in_one_line(error: &anyhow::Error) -> String {
    let mut messages = error.chain().map(message);
    let mut line = messages.next().unwrap_or_default();
    for cause in messages {
        if !line.contains(&cause) {
            line = format!("{line}: {cause}");
        }
    }
    store::without_secrets(&line)
}

/// The hint of an error or of one of its causes; without one, that of the server of memlocal whose message it has.
pub fn hint_of(error: &anyhow::Error) -> Option<String> {
    let of_server = |cause: &(dyn std::error::Error + 'static)| Some(cause.to_string().split_once(HINT)?.1.to_owned());
    error.chain().find_map(hint).or_else(|| error.chain().find_map(of_server))
}

/// What begins the hint in a message of a server of memlocal, which ends with it.
const HINT: &str = "\nhint: ";

/// The message of an error without a hint.
fn message(error: &(dyn std::error::Error + 'static)) -> String {
    let text = error.to_string();
    text.split_once(HINT).map_or(text.as_str(), |(message, _)| message).to_owned()
}

/// The hint of an error.
fn hint(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    if let Some(error) = error.downcast_ref::<Refusal>() {
        return Some(error.hint.clone());
    }
    if let Some(error) = error.downcast_ref::<FetchError>() {
        return error.hint().or_else(|| of_fetch(error));
    }
    if let Some(error) = error.downcast_ref::<MemoryError>() {
        return of_memory(error);
    }
    if let Some(error) = error.downcast_ref::<RemoteError>() {
        return of_remote(error);
    }
    if let Some(error) = error.downcast_ref::<CallError>() {
        return of_call(error);
    }
    if let Some(error) = error.downcast_ref::<store::Error>() {
        return of_store(error);
    }
    if let Some(error) = error.downcast_ref::<bundle::Error>() {
        return of_bundle(error);
    }
    if let Some(CapacityError::OutOfMemory { .. }) = error.downcast_ref::<CapacityError>() {
        return Some("choose a smaller model or variant (memlocal models list), or set a smaller --kv-tokens".into());
    }
    if let Some(StartError::SharedPrompt { .. }) = error.downcast_ref::<StartError>() {
        return Some("give --shared-prompt the system message that clients send, or omit it".into());
    }
    if let Some(error) = error.downcast_ref::<std::io::Error>() {
        return of_io(error);
    }
    error.downcast_ref::<ModelError>().and_then(of_model)
}

/// Only servers listen on an address.
fn of_io(error: &std::io::Error) -> Option<String> {
    Some(match error.kind() {
        ErrorKind::AddrInUse => "another program listens there: --port N takes another port, 0 any that is free".into(),
        ErrorKind::AddrNotAvailable => "--host takes an address of this machine, such as 127.0.0.1 or 0.0.0.0".into(),
        _ => return None,
    })
}

/// What the data folder has to be.
const A_FOLDER: &str = "choose a folder that you may read and write: --data-dir FOLDER, or MEMLOCAL_HOME";

/// What a path has to be to be used as a model.
const A_MODEL: &str =
    "give a .gguf file, or a folder with config.json, tokenizer.json, tokenizer_config.json and *.safetensors";

/// What `FetchError::hint` leaves out, because it names flags.
fn of_fetch(error: &FetchError) -> Option<String> {
    Some(match error {
        FetchError::NotAModel { .. } => A_MODEL.into(),
        FetchError::MissingFile { .. } => {
            "correct the path, or fetch a model: memlocal models list shows names for memlocal models pull".into()
        }
        FetchError::Io { source, .. } if matches!(source.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            A_FOLDER.into()
        }
        _ => return None,
    })
}

fn of_memory(error: &MemoryError) -> Option<String> {
    Some(match error {
        MemoryError::EmptyQuestion => "put the question in quotes after `ask`".into(),
        MemoryError::EmptyCorpus { corpus } => format!("add documents: memlocal ingest PATH --corpus {corpus}"),
        MemoryError::NotReady { corpus, method, flags, .. } => {
            format!("finish it: memlocal ingest --corpus {corpus} --method {method} {flags}").trim_end().to_owned()
        }
        // What these say is their source's own error, which `#[error(transparent)]` leaves out of the chain.
        MemoryError::Store(error) => return of_store(error),
        MemoryError::Call(error) => return of_call(error),
        _ => return None,
    })
}

fn of_call(error: &CallError) -> Option<String> {
    Some(match error {
        CallError::TooLong { step: "answer", .. } => {
            let retrieving = methods::concrete().into_iter().filter(|method| method.embeds()).map(ToString::to_string);
            let names = retrieving.collect::<Vec<_>>().join(", ");
            format!("use a method that retrieves what it needs ({names}) or a model with a longer context")
        }
        CallError::TooLong { .. } => "use smaller pages (--page-tokens) or a model with a longer context".into(),
        CallError::Overloaded { .. } | CallError::Busy { .. } => "try again when other calls have ended".into(),
        CallError::NoConnection { .. } => "start the server of this URL, or correct the URL".into(),
        CallError::Unreachable { .. } => {
            "check that it is running and that the address is right; most addresses end in /v1".into()
        }
        CallError::Refused { status: 401 | 403, .. } => "put a key of this endpoint into MEMLOCAL_ENGINE_KEY".into(),
        CallError::OutOfForm { .. } => {
            "the endpoint does not enforce JSON schemas: use another server or a larger model".into()
        }
        CallError::CutOff { .. } => "use a model that answers in fewer words, or one with a longer context".into(),
        _ => return None,
    })
}

fn of_bundle(error: &bundle::Error) -> Option<String> {
    match error {
        bundle::Error::NotABundle { .. } => {
            Some("memlocal bundle makes one; a damaged copy is to be copied again".into())
        }
        bundle::Error::Altered { .. } => Some("copy it again; memlocal bundle show FILE checks all its files".into()),
        bundle::Error::Io { source, .. } if source.kind() == ErrorKind::NotFound => {
            Some("give the file that memlocal bundle made".into())
        }
        bundle::Error::NotAnExecutable { .. } | bundle::Error::Io { .. } => None,
    }
}

fn of_remote(error: &RemoteError) -> Option<String> {
    Some(match error {
        RemoteError::UnknownContext { .. } => "set it with --engine-context N".into(),
        RemoteError::UnknownModel { .. } => "choose one with --engine-model NAME".into(),
        RemoteError::Address { .. } => "write an address such as http://127.0.0.1:8000/v1".into(),
        RemoteError::Call(error) => return of_call(error),
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
        E::InvalidName { name } => format!("`{}` is a valid name", store::CorpusName::like(name)),
        E::Address { .. } => {
            "--vectors or MEMLOCAL_VECTORS takes postgres://HOST/DATABASE, with a user if need be".into()
        }
        E::Locked { .. } => "try again when that process is done".into(),
        E::CorpusBusy { holder, .. } => {
            let process = holder.as_ref().map_or_else(|| "it".to_owned(), |holder| format!("`{}`", holder.command));
            format!("wait until {process} has ended, or stop it; its finished work is stored")
        }
        E::DiskFull { .. } => "free some space; nothing was lost, the same command resumes".into(),
        E::NotPermitted { .. } => A_FOLDER.into(),
        E::Io { source, .. } if matches!(source.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            A_FOLDER.into()
        }
        E::Postgres { .. } => {
            "check that it is running and has pgvector, and that this user may create tables (see --vectors)".into()
        }
        E::CopyBehind { .. } => {
            "nothing was lost; the copy is brought up to date when the corpus is next opened".into()
        }
        E::Overtaken { .. } => "the same command continues from the current state".into(),
        E::Differs { name, .. } => format!(
            "they are never merged. To have the one there, remove the one here: memlocal corpus rm {name}, without \
             --vectors. To have the one here, leave --vectors out, or rename its folder if both are to be kept"
        ),
        E::OtherSchema { .. } => "use the same version of memlocal wherever the corpus is shared".into(),
        // What this says is its source's own error, which `#[error(transparent)]` leaves out of the chain.
        E::Bundle(error) => return of_bundle(error),
        E::NewerSchema { .. } => "use the newer version of memlocal".into(),
        E::Damaged { .. } => "save what can be read (memlocal corpus repair), or restore it from a backup".into(),
        E::NotACorpus { .. } => "restore it from a backup, or remove it (memlocal corpus rm) and ingest again".into(),
        E::TextChanged { .. } => "try again when no other program writes it".into(),
        _ => return None,
    })
}

fn of_model(error: &ModelError) -> Option<String> {
    Some(match error {
        ModelError::Bundle(error) => return of_bundle(error),
        ModelError::Damaged { .. } | ModelError::MissingTensor { .. } => {
            "it may not have come whole: copy it again, or for a model of `memlocal models list` use \
             `memlocal models rm` and `memlocal models pull`"
                .into()
        }
        ModelError::NotACheckpoint { .. } => A_MODEL.into(),
        ModelError::NotAnAdapter { .. } => {
            "give a folder with adapter_config.json and adapter_model.safetensors as PEFT \
            writes it, the .safetensors file in it, or a .gguf file by llama.cpp's convert_lora_to_gguf.py"
                .into()
        }
        ModelError::AdapterMisfit { .. } => "an adapter works with the model that it was trained on; PEFT's \
            adapter_config.json names it as base_model_name_or_path"
            .into(),
        ModelError::AdapterUnsupported { .. } => "plain LoRA on the attention and feed-forward projections works; \
            docs/models.md has the list"
            .into(),
        ModelError::Unsupported { .. } => {
            "memlocal runs Llama, Mistral, Qwen2, Qwen3 and Gemma 3 language models, BERT and XLM-RoBERTa embedders; \
             memlocal models list shows models that work"
                .into()
        }
        ModelError::UnsupportedTensor { .. } => "GGUF files of Q4_K_M, Q2_K to Q6_K, Q4_0 to Q8_0, IQ4_NL, IQ4_XS, F16 and BF16 \
            work; most models are published in several of them"
            .into(),
        ModelError::UnusedField { .. } => {
            "memlocal does not ignore what may change a model's results; if this field does not, remove it from the file"
                .into()
        }
        ModelError::UnusedTensors { .. } => {
            "the checkpoint is of a variant that is not supported; memlocal models list shows models that work".into()
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_paths_and_addresses_have_hints() {
        let check = |error: anyhow::Error, want: Option<&str>| assert_eq!(hint_of(&error).as_deref(), want, "{error}");
        let unusable = |kind: ErrorKind| FetchError::Io { path: "data/models/.locks".into(), source: kind.into() };
        check(unusable(ErrorKind::NotADirectory).into(), Some(A_FOLDER));
        check(unusable(ErrorKind::NotFound).into(), Some(A_FOLDER));
        check(unusable(ErrorKind::Other).into(), None);
        let unusable = store::Error::Io { path: "data/corpora/c".into(), source: ErrorKind::NotFound.into() };
        check(unusable.into(), Some(A_FOLDER));
        let no_model = FetchError::NotAModel { path: "a.txt".into(), lacking: "it is empty".into() };
        check(no_model.into(), Some(A_MODEL));
        let no_url = RemoteError::Address { problem: "it must begin with http://".into() };
        check(no_url.into(), Some("write an address such as http://127.0.0.1:8000/v1"));
    }

    #[test]
    fn a_message_of_a_server_has_one_hint() {
        let refused = |status: u16| {
            let reason = "there is no path\nhint: see /openapi.json".into();
            let error = CallError::Refused { step: "answer", endpoint: "http://a/v1".into(), status, reason };
            let error = anyhow::Error::from(error);
            assert!(in_one_line(&error).ends_with("there is no path"), "{error}");
            hint_of(&error)
        };
        assert_eq!(refused(404).as_deref(), Some("see /openapi.json"));
        assert_eq!(refused(401).as_deref(), Some("put a key of this endpoint into MEMLOCAL_ENGINE_KEY"));
    }
}

//! Models that the user already has: a manifest's files under a path that was given, or files of no manifest at all.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::digest::check_size;
use super::file_names::shards_of;
use super::installation::Installation;
use super::slot::Slot;
use super::{FetchError, FetchOptions, Fetched, FetchedFile, Receipt, ReceiptFile, Report, SourceUsed};
use crate::files;
use crate::manifest::{Choice, FileSpec, Format, Role};

/// Copies a known model into the models folder, out of the folder that holds its files, or from its only file under any
/// name.
pub(super) fn install(
    choice: Choice<'_>,
    path: &Path,
    options: &FetchOptions,
    report: &mut Report<'_>,
) -> Result<Fetched, FetchError> {
    let given = open_as(choice, path)?;
    let installation = Installation::begin(Slot::of(choice), &options.models_dir)?;
    installation.prepare()?;
    let files = choice.variant.files.iter().zip(&given.files);
    let copied = files.map(|(spec, FetchedFile { path, .. })| copy(spec, path, &installation, report));
    match copied.collect() {
        Ok(files) => installation.finish(&Receipt::new(given.source, files), given.format),
        Err(error) => {
            installation.abandon();
            Err(error)
        }
    }
}

fn copy(
    spec: &FileSpec,
    path: &Path,
    installation: &Installation,
    report: &mut Report<'_>,
) -> Result<ReceiptFile, FetchError> {
    let from_disk = |error| FetchError::from_disk(path, error);
    let mut file = File::open(path).map_err(from_disk)?;
    let total_bytes = file.metadata().map_err(from_disk)?.len();
    installation.copy_in(spec, &mut file, total_bytes, from_disk, report)
}

fn open_as(choice: Choice<'_>, path: &Path) -> Result<Fetched, FetchError> {
    let specs = &choice.variant.files;
    let only_file = path.is_file() && specs.len() == 1;
    let folder = if path.is_file() { path.parent().unwrap_or(path) } else { path };
    let mut files = Vec::with_capacity(specs.len());
    for spec in specs {
        let path = if only_file { path.to_owned() } else { folder.join(&spec.name) };
        let Ok(metadata) = fs::metadata(&path) else { return Err(FetchError::MissingFile { path }) };
        check_size(&path, spec.bytes, metadata.len())?;
        files.push(FetchedFile { role: spec.role, path });
    }
    let source = SourceUsed::Local { path: path.to_owned() };
    Ok(Fetched { files, format: choice.variant.format, source })
}

/// Opens a model without a manifest: a GGUF file (or the first shard of one), or a folder in Hugging Face's layout.
///
/// # Errors
///
/// [`FetchError::NotAModel`] says what the path lacks.
pub(super) fn open(path: &Path) -> Result<Fetched, FetchError> {
    let (format, files) = if files::is_dir(path) { folder_files(path)? } else { (Format::Gguf, gguf_files(path)?) };
    Ok(Fetched { files, format, source: SourceUsed::Local { path: path.to_owned() } })
}

fn gguf_files(path: &Path) -> Result<Vec<FetchedFile>, FetchError> {
    if !has_extension(path, "gguf") {
        return Err(not_a_model(path, "neither a .gguf file nor a folder"));
    }
    let shards = shards_of(path);
    match shards.iter().find(|shard| !files::is_file(shard)) {
        Some(missing) => Err(FetchError::MissingFile { path: missing.clone() }),
        None => Ok(shards.into_iter().map(|path| FetchedFile { role: Role::Weights, path }).collect()),
    }
}

/// PyTorch's `.bin` counts where there is no safetensors file of the network, as in the published BGE-M3.
fn folder_files(folder: &Path) -> Result<(Format, Vec<FetchedFile>), FetchError> {
    const HEADS: [(Role, &str); 2] = [(Role::SparseHead, "sparse_linear"), (Role::MultiVectorHead, "colbert_linear")];
    const OTHERS: [(Role, &str); 4] = [
        (Role::Config, "config.json"),
        (Role::Tokenizer, "tokenizer.json"),
        (Role::TokenizerConfig, "tokenizer_config.json"),
        (Role::SentenceConfig, "sentence_bert_config.json"),
    ];
    let mut weights = files::in_folder(folder).map_err(|error| FetchError::from_disk(folder, error))?;
    let is_head = |path: &PathBuf| HEADS.iter().any(|(_, stem)| path.file_stem().is_some_and(|found| found == *stem));
    weights.retain(|path| has_extension(path, "safetensors") && !is_head(path));
    weights.sort();
    let pickled = folder.join("pytorch_model.bin");
    let (format, weights) = match weights.is_empty() {
        false => (Format::Safetensors, weights),
        true if files::is_file(&pickled) => (Format::Pytorch, vec![pickled]),
        true => return Err(not_a_model(folder, "no .safetensors file and no pytorch_model.bin in it")),
    };
    if !files::is_file(&folder.join("config.json")) {
        return Err(not_a_model(folder, "no config.json in it"));
    }
    let of_heads =
        HEADS.iter().flat_map(|(role, stem)| ["safetensors", "pt"].map(|end| (*role, format!("{stem}.{end}"))));
    let others = OTHERS.iter().map(|(role, name)| (*role, (*name).to_owned()));
    let found = of_heads.chain(others).map(|(role, name)| FetchedFile { role, path: folder.join(name) });
    let weights = weights.into_iter().map(|path| FetchedFile { role: Role::Weights, path });
    Ok((format, weights.chain(found.filter(|file| files::is_file(&file.path))).collect()))
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found.eq_ignore_ascii_case(extension))
}

fn not_a_model(path: &Path, lacking: &str) -> FetchError {
    FetchError::NotAModel { path: path.to_owned(), lacking: lacking.to_owned() }
}

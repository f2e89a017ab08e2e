//! Checkpoints: adapter, optimiser moments and position in one file, which is replaced atomically.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use models::{LocalTime, MappedFile};
use safetensors::{Dtype, SafeTensorError, SafeTensors};
use serde::{Deserialize, Serialize};

use crate::error::{Result, TrainError, io};
use crate::optimiser::Parameter;

/// The file in a run's folder.
pub const FILE: &str = "state.safetensors";

/// The entries of its metadata; older checkpoints have no digest.
const POSITION: &str = "position";
const DIGEST: &str = "digest";

/// Numbers of a tensor that are converted to bytes together.
const PIECE: usize = 1 << 16;

/// The position of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Position {
    /// Completed steps.
    pub step: usize,
    /// Tokens and seconds of training so far.
    pub tokens: u64,
    pub seconds: f64,
    /// The inputs that determine the result, by name.
    pub settings: Vec<(String, String)>,
    /// The time in the prompts of the run, as [`LocalTime`] writes it; older checkpoints have none.
    #[serde(default)]
    pub time: Option<String>,
}

/// Writes a checkpoint, in pieces: its bytes are not in memory together.
///
/// # Errors
/// If the file cannot be written.
pub fn save(folder: &Path, position: &Position, parameters: &[Parameter]) -> Result<()> {
    let path = folder.join(FILE);
    let damaged = |reason: String| TrainError::Checkpoint { path: path.clone(), reason };
    let position = serde_json::to_string(position).map_err(|error| damaged(error.to_string()))?;
    let digest = digest(&position, pieces(parameters));
    let metadata = HashMap::from([(POSITION.to_owned(), position), (DIGEST.to_owned(), digest)]);
    let described = (0..parameters.len()).flat_map(names).zip(tensors(parameters));
    let described = described.map(|(name, tensor)| (name, Dtype::F32, vec![tensor.len()], size_of_val(tensor)));
    let header = models::safetensors_header(metadata, described).map_err(|error| damaged(error.to_string()))?;
    let written = models::replace_file(&path, |file| {
        file.write_all(&header)?;
        pieces(parameters).try_for_each(|piece| file.write_all(&piece))
    });
    written.map_err(io(&path))
}

/// The names of a parameter's values and moments.
fn names(at: usize) -> [String; 3] {
    ["value", "first", "second"].map(|name| format!("{name}.{at}"))
}

/// The values and moments of all parameters, each a tensor of the file, in the order of the file.
fn tensors(parameters: &[Parameter]) -> impl Iterator<Item = &[f32]> {
    parameters.iter().flat_map(|Parameter { value, first, second }| [&value[..], first, second])
}

/// The bytes of all tensors, [`PIECE`] numbers at a time.
fn pieces(parameters: &[Parameter]) -> impl Iterator<Item = Vec<u8>> {
    let pieces = tensors(parameters).flat_map(|tensor| tensor.chunks(PIECE));
    pieces.map(|piece| piece.iter().flat_map(|number| number.to_le_bytes()).collect())
}

/// blake3 of a position and of the bytes of all tensors.
fn digest(position: &str, bytes: impl IntoIterator<Item = impl AsRef<[u8]>>) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(position.as_bytes());
    for bytes in bytes {
        hasher.update(bytes.as_ref());
    }
    hasher.finalize().to_hex().to_string()
}

/// The time in the prompts of a run: that of its checkpoint, or now if it begins. Chat templates may write the date, so the
/// prompts of a run that goes past midnight, or is resumed on another day, would differ from those that it began with.
///
/// # Errors
/// If the checkpoint is damaged.
pub fn time(folder: &Path) -> Result<LocalTime> {
    let time = position_of(folder)?.and_then(|position| position.time).map(|time| time.parse());
    let damaged = |reason| TrainError::Checkpoint { path: folder.join(FILE), reason };
    time.unwrap_or_else(|| Ok(LocalTime::now())).map_err(damaged)
}

/// Reads the position in the checkpoint of a folder, whose digest is not compared; `None` if there is none.
///
/// # Errors
/// If the checkpoint has no position.
pub fn position_of(folder: &Path) -> Result<Option<Position>> {
    let Some((path, bytes)) = open(folder)? else { return Ok(None) };
    Ok(Some(position(&path, &metadata(&path, &bytes)?)?))
}

/// Reads the checkpoint of a folder; `None` if there is none.
///
/// # Errors
/// If it is damaged or does not fit `parameters`.
pub fn load(folder: &Path, parameters: &[Parameter]) -> Result<Option<(Position, Vec<Parameter>)>> {
    let Some((path, bytes)) = open(folder)? else { return Ok(None) };
    let damaged = |reason: String| TrainError::Checkpoint { path: path.clone(), reason };
    let metadata = metadata(&path, &bytes)?;
    let position = position(&path, &metadata)?;
    let tensors = SafeTensors::deserialize(&bytes).map_err(|error| damaged(error.to_string()))?;
    let names: Vec<String> = (0..parameters.len()).flat_map(names).collect();
    let tensors = names.iter().map(|name| Ok(tensors.tensor(name)?.data()));
    let tensors = tensors.collect::<std::result::Result<Vec<_>, SafeTensorError>>();
    let tensors = tensors.map_err(|error| damaged(error.to_string()))?;
    if metadata.get(DIGEST).is_some_and(|known| *known != digest(&metadata[POSITION], tensors.iter().copied())) {
        return Err(damaged("its digest does not match".into()));
    }
    let values = |at: usize, len: usize| -> Result<Vec<f32>> {
        let (numbers, rest) = tensors[at].as_chunks::<4>();
        let values: Vec<f32> = numbers.iter().map(|number| f32::from_le_bytes(*number)).collect();
        let fits = values.len() == len && rest.is_empty();
        if fits { Ok(values) } else { Err(damaged(format!("`{}` has {} values", names[at], values.len()))) }
    };
    let restored = parameters.iter().enumerate().map(|(at, parameter)| {
        let (at, len) = (3 * at, parameter.value.len());
        Ok(Parameter { value: values(at, len)?, first: values(at + 1, len)?, second: values(at + 2, len)? })
    });
    Ok(Some((position, restored.collect::<Result<_>>()?)))
}

/// The checkpoint of a folder: its path and its bytes; `None` if there is none.
fn open(folder: &Path) -> Result<Option<(PathBuf, MappedFile)>> {
    let path = folder.join(FILE);
    if !path.try_exists().map_err(io(&path))? {
        return Ok(None);
    }
    match MappedFile::open(&path) {
        Ok(bytes) => Ok(Some((path, bytes))),
        Err(error) => Err(TrainError::Checkpoint { path, reason: error.to_string() }),
    }
}

/// The metadata of a checkpoint.
fn metadata(path: &Path, bytes: &[u8]) -> Result<HashMap<String, String>> {
    let damaged = |reason: String| TrainError::Checkpoint { path: path.to_owned(), reason };
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|error| damaged(error.to_string()))?;
    let metadata = header.metadata().clone().filter(|metadata| metadata.contains_key(POSITION));
    metadata.ok_or_else(|| damaged("it has no position".into()))
}

/// The position in the metadata of a checkpoint.
fn position(path: &Path, metadata: &HashMap<String, String>) -> Result<Position> {
    let damaged = |reason: String| TrainError::Checkpoint { path: path.to_owned(), reason };
    serde_json::from_str(&metadata[POSITION]).map_err(|error| damaged(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux writes to `/dev/null` and refuses to sync it.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_checkpoint_that_cannot_be_synced_replaces_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let position = |step| Position { step, tokens: 0, seconds: 0.0, settings: Vec::new(), time: None };
        let parameter = || Parameter { value: vec![1.5], first: vec![0.0], second: vec![-0.0] };
        save(folder.path(), &position(1), &[parameter()]).unwrap();
        std::os::unix::fs::symlink("/dev/null", folder.path().join("state.safetensors.part")).unwrap();
        save(folder.path(), &position(2), &[parameter()]).unwrap_err();
        let kept = load(folder.path(), &[parameter()]).unwrap();
        assert_eq!(kept, Some((position(1), vec![parameter()])));
    }
}

//! Checkpoints: adapter, optimiser moments and position in one file, which is replaced atomically.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use models::{LocalTime, MappedFile};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde::{Deserialize, Serialize};

use crate::error::{Result, TrainError, io};
use crate::optimiser::Parameter;

/// The file in a run's folder.
pub const FILE: &str = "state.safetensors";

/// The entries of its metadata; older checkpoints have no digest.
const POSITION: &str = "position";
const DIGEST: &str = "digest";

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

/// Writes a checkpoint.
///
/// # Errors
/// If the file cannot be written.
pub fn save(folder: &Path, position: &Position, parameters: &[Parameter]) -> Result<()> {
    let path = folder.join(FILE);
    let damaged = |reason: String| TrainError::Checkpoint { path: path.clone(), reason };
    let parts: Vec<(String, Vec<u8>)> = parameters
        .iter()
        .enumerate()
        .flat_map(|(at, Parameter { value, first, second })| names(at).into_iter().zip([value, first, second]))
        .map(|(name, values)| (name, values.iter().flat_map(|x| x.to_le_bytes()).collect()))
        .collect();
    let views = parts
        .iter()
        .map(|(name, bytes)| Ok((name.as_str(), TensorView::new(Dtype::F32, vec![bytes.len() / 4], bytes)?)))
        .collect::<std::result::Result<Vec<_>, safetensors::SafeTensorError>>()
        .map_err(|error| damaged(error.to_string()))?;
    let position = serde_json::to_string(position).map_err(|error| damaged(error.to_string()))?;
    let digest = digest(&position, parts.iter().map(|(_, bytes)| bytes.as_slice()));
    let metadata = HashMap::from([(POSITION.to_owned(), position), (DIGEST.to_owned(), digest)]);
    let bytes = safetensors::serialize(views, Some(metadata)).map_err(|error| damaged(error.to_string()))?;
    models::replace_file(&path, &bytes).map_err(io(&path))
}

/// The names of a parameter's values and moments.
fn names(at: usize) -> [String; 3] {
    ["value", "first", "second"].map(|name| format!("{name}.{at}"))
}

/// blake3 of a position and of the bytes of all tensors.
fn digest<'a>(position: &str, tensors: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(position.as_bytes());
    for bytes in tensors {
        hasher.update(bytes);
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
    let tensors = tensors.collect::<std::result::Result<Vec<_>, safetensors::SafeTensorError>>();
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

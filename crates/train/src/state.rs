//! Checkpoints: adapter, optimiser moments and position in one file, which is replaced atomically.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use models::{LocalTime, MappedFile};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde::{Deserialize, Serialize};

use crate::error::{Result, TrainError, io};
use crate::optimiser::Parameter;

/// The file in a run's folder.
pub const FILE: &str = "state.safetensors";

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
        .flat_map(|(at, parameter)| {
            [("value", &parameter.value), ("first", &parameter.first), ("second", &parameter.second)]
                .map(|(name, values)| (format!("{name}.{at}"), values.iter().flat_map(|x| x.to_le_bytes()).collect()))
        })
        .collect();
    let views = parts
        .iter()
        .map(|(name, bytes)| Ok((name.as_str(), TensorView::new(Dtype::F32, vec![bytes.len() / 4], bytes)?)))
        .collect::<std::result::Result<Vec<_>, safetensors::SafeTensorError>>()
        .map_err(|error| damaged(error.to_string()))?;
    let position = serde_json::to_string(position).map_err(|error| damaged(error.to_string()))?;
    let metadata = HashMap::from([("position".to_owned(), position)]);
    let bytes = safetensors::serialize(views, Some(metadata)).map_err(|error| damaged(error.to_string()))?;
    let beside = folder.join(format!("{FILE}.part"));
    let mut file = File::create(&beside).map_err(io(&beside))?;
    file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(io(&beside))?;
    std::fs::rename(&beside, &path).map_err(io(&path))
}

/// The time in the prompts of a run: that of its checkpoint, or now if it begins. Chat templates may write the date, so the
/// prompts of a run that goes past midnight, or is resumed on another day, would differ from those that it began with.
///
/// # Errors
/// If the checkpoint is damaged.
pub fn time(folder: &Path) -> Result<LocalTime> {
    let Some((path, bytes)) = open(folder)? else { return Ok(LocalTime::now()) };
    let time = position(&path, &bytes)?.time.map(|time| time.parse());
    time.unwrap_or_else(|| Ok(LocalTime::now())).map_err(|reason| TrainError::Checkpoint { path, reason })
}

/// Reads the checkpoint of a folder; `None` if there is none.
///
/// # Errors
/// If it is damaged or does not fit `parameters`.
pub fn load(folder: &Path, parameters: &[Parameter]) -> Result<Option<(Position, Vec<Parameter>)>> {
    let Some((path, bytes)) = open(folder)? else { return Ok(None) };
    let damaged = |reason: String| TrainError::Checkpoint { path: path.clone(), reason };
    let position = position(&path, &bytes)?;
    let tensors = SafeTensors::deserialize(&bytes).map_err(|error| damaged(error.to_string()))?;
    let values = |name: &str, at: usize, len: usize| -> Result<Vec<f32>> {
        let name = format!("{name}.{at}");
        let tensor = tensors.tensor(&name).map_err(|error| damaged(error.to_string()))?;
        let values: Vec<f32> =
            tensor.data().chunks_exact(4).map(|x| f32::from_le_bytes([x[0], x[1], x[2], x[3]])).collect();
        if values.len() == len { Ok(values) } else { Err(damaged(format!("`{name}` has {} values", values.len()))) }
    };
    let restored = parameters.iter().enumerate().map(|(at, parameter)| {
        let len = parameter.value.len();
        Ok(Parameter {
            value: values("value", at, len)?,
            first: values("first", at, len)?,
            second: values("second", at, len)?,
        })
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

/// The position in the bytes of a checkpoint.
fn position(path: &Path, bytes: &[u8]) -> Result<Position> {
    let damaged = |reason: String| TrainError::Checkpoint { path: path.to_owned(), reason };
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|error| damaged(error.to_string()))?;
    let position = metadata.metadata().as_ref().and_then(|metadata| metadata.get("position"));
    let position = position.ok_or_else(|| damaged("it has no position".into()))?;
    serde_json::from_str(position).map_err(|error| damaged(error.to_string()))
}

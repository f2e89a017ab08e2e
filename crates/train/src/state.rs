//! Checkpoints: adapter, optimiser moments and position in one file, which is replaced atomically.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;

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

/// Reads the checkpoint of a folder; `None` if there is none.
///
/// # Errors
/// If it is damaged or does not fit `parameters`.
pub fn load(folder: &Path, parameters: &[Parameter]) -> Result<Option<(Position, Vec<Parameter>)>> {
    let path = folder.join(FILE);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io(&path)(error)),
    };
    let damaged = |reason: String| TrainError::Checkpoint { path: path.clone(), reason };
    let (_, metadata) = SafeTensors::read_metadata(&bytes).map_err(|error| damaged(error.to_string()))?;
    let position = metadata.metadata().as_ref().and_then(|metadata| metadata.get("position"));
    let position = position.ok_or_else(|| damaged("it has no position".into()))?;
    let position = serde_json::from_str(position).map_err(|error| damaged(error.to_string()))?;
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

//! The beginning of a safetensors file, for files whose tensors are written in pieces.

use safetensors::tensor::{Metadata, TensorInfo};
use safetensors::{Dtype, SafeTensorError};

/// The part of a file before the bytes of its tensors: its length, then names, types, shapes and places of the tensors, with
/// the metadata, as JSON that spaces fill up to a multiple of 8 bytes. A tensor is its name, type, shape and number of bytes;
/// their order is that of the file.
///
/// # Errors
/// If the bytes of a tensor are not those of its shape.
pub fn header(
    metadata: impl IntoIterator<Item = (String, String)>,
    tensors: impl IntoIterator<Item = (String, Dtype, Vec<usize>, usize)>,
) -> Result<Vec<u8>, SafeTensorError> {
    let mut end = 0;
    let described = tensors.into_iter().map(|(name, dtype, shape, bytes)| {
        let start = end;
        end += bytes;
        (name, TensorInfo { dtype, shape, data_offsets: (start, end) })
    });
    let described = Metadata::new(Some(metadata.into_iter().collect()), described.collect())?;
    let mut json = serde_json::to_vec(&described)?;
    json.resize(json.len().next_multiple_of(8), b' ');
    Ok([&(json.len() as u64).to_le_bytes()[..], &json].concat())
}

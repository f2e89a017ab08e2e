//! PyTorch's `.bin` and `.pt` files: a zip with a pickle that says which stretch of which entry is which tensor.
//!
//! Tensors are read in place: PyTorch stores its entries uncompressed. The pickle is interpreted for tensors alone; no
//! code in it is ever run.

use std::collections::HashMap;
use std::io::Cursor;

use candle_core::{DType, pickle};
use kernels::matmul::Format;

use crate::error::{ModelError, Result};
use crate::mapped::MappedFile;
use crate::weights::Location;

/// Finds the tensors of a mapped file, and the names of those of integers.
///
/// # Errors
/// [`ModelError::Damaged`] if it is no such file or ends too early, [`ModelError::Unsupported`] for a tensor type without
/// kernel or one that is not contiguous.
pub(crate) fn read(
    file: &MappedFile,
    index: usize,
    tensors: &mut HashMap<String, Location>,
    integers: &mut Vec<String>,
) -> Result<()> {
    let damaged = |reason: String| ModelError::Damaged { path: file.path().to_owned(), reason };
    let first_line = |error: candle_core::Error| error.to_string().lines().next().unwrap_or_default().to_owned();
    let infos = pickle::read_pth_tensor_info(file.path(), false, None).map_err(|error| damaged(first_line(error)))?;
    let mut archive = zip::ZipArchive::new(Cursor::new(&file[..])).map_err(|error| damaged(error.to_string()))?;
    for info in infos {
        let name = info.name;
        let format = match info.dtype {
            DType::F32 => Format::F32,
            DType::F16 => Format::F16,
            DType::BF16 => Format::Bf16,
            DType::I64 | DType::U32 | DType::U8 => {
                integers.push(name);
                continue;
            }
            other => return Err(ModelError::Unsupported { what: format!("tensor type {other:?} of `{name}`") }),
        };
        let Some((first, end)) = info.layout.contiguous_offsets() else {
            return Err(ModelError::Unsupported { what: format!("tensor `{name}`, which is not contiguous,") });
        };
        let entry = archive.by_name(&info.path).map_err(|error| damaged(format!("`{}`: {error}", info.path)))?;
        let start = entry.data_start().and_then(|start| usize::try_from(start).ok());
        let start = start.filter(|_| entry.compression() == zip::CompressionMethod::Stored);
        let start = start.ok_or_else(|| damaged(format!("`{}` is compressed", info.path)))?;
        let bytes = start + first * format.block_bytes()..start + end * format.block_bytes();
        if bytes.end > file.len() {
            return Err(damaged(format!(
                "it ends after {} bytes, but tensor `{name}` needs {}",
                file.len(),
                bytes.end
            )));
        }
        tensors.insert(name, Location { file: index, bytes, format, shape: info.layout.dims().to_vec() });
    }
    Ok(())
}

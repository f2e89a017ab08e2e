//! PyTorch's `.bin` and `.pt` files: a zip with a pickle that says which stretch of which entry is which tensor.
//!
//! Tensors are read in place: PyTorch stores its entries uncompressed. The pickle is interpreted for tensors alone; no
//! code in it is ever run.

mod pickle;

use std::collections::HashMap;
use std::io::{Cursor, Read};

use kernels::matmul::Format;

use crate::error::{ModelError, Result};
use crate::location::Location;
use crate::mapped::MappedFile;

/// Maximum bytes of the pickle that describes the tensors.
const MAX_PICKLE_BYTES: u64 = 64 << 20;

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
    let mut archive = zip::ZipArchive::new(Cursor::new(&file[..])).map_err(|error| damaged(error.to_string()))?;
    let name = {
        let mut names = archive.file_names().filter_map(std::result::Result::ok);
        names.find(|name| name.ends_with("data.pkl")).map(std::borrow::Cow::into_owned)
    };
    let name = name.ok_or_else(|| damaged("it has no `data.pkl`".into()))?;
    let mut described = Vec::new();
    let entry = archive.by_name(&name).map_err(|error| damaged(error.to_string()))?;
    entry.take(MAX_PICKLE_BYTES + 1).read_to_end(&mut described).map_err(|error| damaged(error.to_string()))?;
    if described.len() as u64 > MAX_PICKLE_BYTES {
        return Err(damaged(format!("its `{name}` has more than {MAX_PICKLE_BYTES} bytes")));
    }
    let folder = name.trim_end_matches(".pkl");
    for tensor in pickle::tensors(&described).map_err(damaged)? {
        let name = tensor.name;
        let format = match tensor.storage.as_str() {
            "FloatStorage" => Format::F32,
            "HalfStorage" => Format::F16,
            "BFloat16Storage" => Format::Bf16,
            "LongStorage" | "IntStorage" | "ByteStorage" | "BoolStorage" => {
                integers.push(name);
                continue;
            }
            other => return Err(ModelError::Unsupported { what: format!("tensor type {other} of `{name}`") }),
        };
        let impossible = || damaged(format!("tensor `{name}` has the impossible shape {:?}", tensor.shape));
        let len = tensor.shape.iter().try_fold(1_usize, |len, dim| len.checked_mul(*dim)).ok_or_else(impossible)?;
        if !is_contiguous(&tensor.shape, &tensor.strides) {
            return Err(ModelError::Unsupported { what: format!("tensor `{name}`, which is not contiguous,") });
        }
        let path = format!("{folder}/{}", tensor.entry);
        let entry = archive.by_name(&path).map_err(|error| damaged(format!("`{path}`: {error}")))?;
        let start = entry.data_start().and_then(|start| usize::try_from(start).ok());
        let start = start.filter(|_| entry.compression() == zip::CompressionMethod::Stored);
        let start = start.ok_or_else(|| damaged(format!("`{path}` is compressed")))?;
        let at = |element: usize| element.checked_mul(format.block_bytes()).and_then(|bytes| bytes.checked_add(start));
        let bytes = at(tensor.offset).zip(tensor.offset.checked_add(len).and_then(at)).ok_or_else(impossible)?;
        if bytes.1 > file.len() {
            return Err(damaged(format!("it ends after {} bytes, but tensor `{name}` needs {}", file.len(), bytes.1)));
        }
        tensors.insert(name, Location { file: index, bytes: bytes.0..bytes.1, format, shape: tensor.shape });
    }
    Ok(())
}

/// True if the elements follow one another; the stride of a dimension of one element is of no importance.
fn is_contiguous(shape: &[usize], strides: &[usize]) -> bool {
    let mut step = 1_usize;
    shape.iter().zip(strides).rev().all(|(dim, stride)| {
        let follows = *dim == 1 || *stride == step;
        step = step.saturating_mul(*dim);
        follows
    })
}

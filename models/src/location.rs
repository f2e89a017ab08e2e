//! Where a tensor is in the files of a checkpoint.

use std::ops::Range;

use kernels::matmul::Format;

/// Location, shape and type of a tensor.
#[derive(Debug, Clone)]
pub(crate) struct Location {
    pub file: usize,
    pub bytes: Range<usize>,
    pub format: Format,
    pub shape: Vec<usize>,
}

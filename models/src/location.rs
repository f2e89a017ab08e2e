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

impl Location {
    /// One of the matrices that are stacked in a tensor of three dimensions; none if there is no such one.
    pub fn slice(&self, index: usize) -> Option<Location> {
        let &[count, rows, cols] = &self.shape[..] else { return None };
        let bytes = self.bytes.len() / count.max(1);
        let start = self.bytes.start + index * bytes;
        (index < count).then(|| Location {
            file: self.file,
            bytes: start..start + bytes,
            format: self.format,
            shape: vec![rows, cols],
        })
    }
}

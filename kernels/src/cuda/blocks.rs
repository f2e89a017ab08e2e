//! How quantised weights are laid out on a GPU: the bodies of all blocks, then their heads.
//!
//! A head is what keeps a block of ggml's from being aligned: its scale, or scale and minimum. Formats whose blocks are whole
//! multiples of 16 bytes have none. The middle bytes of every word of quants of Q4_K and Q6_K are swapped.

use crate::matmul::{Format, MatrixError};

/// A format's layout: its name in kernels, and where a block of a file has the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub name: &'static str,
    head: (usize, usize),
    block: usize,
}

impl Layout {
    /// `None` for formats that no kernel multiplies.
    pub fn of(format: Format) -> Option<Layout> {
        let (name, head) = match format {
            Format::Q4_0 => ("q4_0", (0, 2)),
            Format::Q4_1 => ("q4_1", (0, 4)),
            Format::Q5_0 => ("q5_0", (0, 2)),
            Format::Q5_1 => ("q5_1", (0, 4)),
            Format::Q8_0 => ("q8_0", (0, 2)),
            Format::Q2K => ("q2_k", (80, 4)),
            Format::Q3K => ("q3_k", (108, 2)),
            Format::Q4K => ("q4_k", (0, 0)),
            Format::Q5K => ("q5_k", (0, 0)),
            Format::Q6K => ("q6_k", (208, 2)),
            Format::F32 | Format::F16 | Format::Bf16 | Format::Iq4Nl | Format::Iq4Xs => return None,
        };
        Some(Layout { name, head, block: format.block_bytes() })
    }

    /// Bytes of this many blocks before their heads.
    pub fn body_bytes(self, blocks: usize) -> usize {
        blocks * (self.block - self.head.1)
    }

    /// The blocks of a matrix as 32-bit words, the rows in the order of `source`.
    pub fn words(
        self,
        format: Format,
        (rows, cols): (usize, usize),
        bytes: &[u8],
        source: impl Fn(usize) -> usize,
    ) -> Result<Vec<u32>, MatrixError> {
        let row_bytes = format.row_bytes(cols).ok_or(MatrixError::Blocks { format, cols })?;
        let (want, got) = (rows * row_bytes, bytes.len());
        if want != got {
            return Err(MatrixError::Bytes { format, rows, cols, want, got });
        }
        let mut out = Vec::with_capacity(want.next_multiple_of(4));
        let (start, len) = self.head;
        let blocks =
            || (0..rows).flat_map(|row| bytes[source(row) * row_bytes..][..row_bytes].chunks_exact(self.block));
        // The four-bit and six-bit quants of these formats, as product.cuh takes them.
        let swapped = match format {
            Format::Q4K => 16..144,
            Format::Q6K => 0..192,
            _ => 0..0,
        };
        for block in blocks() {
            let body = out.len();
            out.extend_from_slice(&block[..start]);
            out.extend_from_slice(&block[start + len..]);
            out[body..][swapped.clone()].chunks_exact_mut(4).for_each(|word| word.swap(1, 2));
        }
        blocks().for_each(|block| out.extend_from_slice(&block[start..start + len]));
        out.resize(out.len().next_multiple_of(4), 0);
        Ok(out.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_come_before_heads_and_rows_in_their_order() {
        let layout = Layout::of(Format::Q8_0).unwrap();
        let block = |d: u8, q: u8| [vec![d; 2], vec![q; 32]].concat();
        let bytes = [block(1, 10), block(2, 20)].concat();
        let words = layout.words(Format::Q8_0, (2, 32), &bytes, |row| 1 - row).unwrap();
        let expect: Vec<u8> = [vec![20; 32], vec![10; 32], vec![2, 2, 1, 1]].concat();
        assert_eq!(words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>(), expect);
        assert_eq!(layout.body_bytes(2), 64);
        assert!(layout.words(Format::Q8_0, (3, 32), &bytes, |row| row).is_err(), "bytes of two rows");
    }
}

//! The order of query and key rows in checkpoints whose rotated pairs are neighbours.

/// Maps row `row` of the half-split order to the interleaved order, in which rotated pairs are adjacent.
pub fn interleaved_row(row: usize, dim: usize) -> usize {
    let (head, at) = (row / dim, row % dim);
    head * dim + at % (dim / 2) * 2 + at / (dim / 2)
}

#[cfg(test)]
mod tests {
    use super::interleaved_row;

    #[test]
    fn pairs_are_split_into_halves() {
        let order: Vec<usize> = (0..8).map(|row| interleaved_row(row, 4)).collect();
        assert_eq!(order, [0, 2, 1, 3, 4, 6, 5, 7]);
    }
}

//! [`MatrixUnit`](super::MatrixUnit) in plain loops, so that code built on it is tested on every machine.

use super::{AT_ONCE, Left, MatrixUnit, Right, Sums};

pub(crate) struct Plain;

impl MatrixUnit for Plain {
    const BUSY_OPERATIONS: usize = 0;

    fn new() -> Self {
        Plain
    }

    fn multiply(&self, a: [&Left; AT_ONCE], b: [&Right; AT_ONCE], sums: &mut [Sums; AT_ONCE]) {
        for ((a, b), sums) in a.into_iter().zip(b).zip(sums) {
            for (row, sums) in a.iter().zip(&mut sums.0) {
                *sums = std::array::from_fn(|n| {
                    let column = b.iter().flat_map(|group| &group[4 * n..4 * n + 4]);
                    row.iter().zip(column).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
                });
            }
        }
    }

    fn busy(_: usize) {}
}

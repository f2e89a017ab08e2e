//! The contract in plain Rust.

use super::{Bf16Unit, Left, STEP, Strided, Sums};

pub(crate) struct Plain {
    sums: [[Sums; 2]; 2],
}

impl Bf16Unit for Plain {
    fn new(_: usize) -> Self {
        Plain { sums: [[Sums::ZERO; 2]; 2] }
    }

    fn clear(&mut self) {
        self.sums = [[Sums::ZERO; 2]; 2];
    }

    fn add(&mut self, left: [Option<&Left>; 2], right: [Option<Strided<'_>>; 2]) {
        for (left, sums) in left.into_iter().zip(&mut self.sums) {
            for (right, sums) in right.into_iter().zip(sums) {
                if let (Some(left), Some(right)) = (left, right) {
                    add(left, right, sums);
                }
            }
        }
    }

    fn store(&mut self, i: usize, j: usize, sums: &mut Sums) {
        *sums = self.sums[i][j];
    }
}

/// Adds the products of 32 columns.
pub(super) fn add(left: &Left, right: Strided<'_>, sums: &mut Sums) {
    for (row, sums) in left.iter().zip(&mut sums.0) {
        for (n, sum) in sums.iter_mut().enumerate() {
            let mut chains = [0f32; 2];
            for p in 0..STEP / 2 {
                let outputs = right.line(p);
                for (c, chain) in chains.iter_mut().enumerate() {
                    *chain = normal(value(row.0[2 * p + c]).mul_add(value(outputs[2 * n + c]), *chain));
                }
            }
            *sum = normal(normal(chains[0] + chains[1]) + *sum);
        }
    }
}

fn value(bits: u16) -> f32 {
    normal(f32::from_bits(u32::from(bits) << 16))
}

/// Zero instead of a subnormal number.
fn normal(x: f32) -> f32 {
    if x.is_subnormal() { 0f32.copysign(x) } else { x }
}

//! Where products go: straight from registers to their rows.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::PANEL;
use crate::lanes::Lanes;
use crate::pool::Disjoint;

/// `[M, N]` of which every task writes some columns of some rows.
pub(super) struct Output<'a> {
    values: Disjoint<'a, MaybeUninit<f32>>,
    width: usize,
    /// `[N]`, added to every row.
    bias: Option<&'a [f32]>,
}

/// The columns of one panel in it: 16, or fewer at the end of a matrix.
#[derive(Clone, Copy)]
pub(super) struct Columns<'a> {
    output: &'a Output<'a>,
    first: usize,
    count: usize,
}

impl<'a> Output<'a> {
    /// `values: [M, width]`, of which nothing is read.
    pub fn new(values: &'a mut [MaybeUninit<f32>], width: usize, bias: Option<&'a [f32]>) -> Output<'a> {
        assert!(bias.is_none_or(|bias| bias.len() == width), "a bias for {width} outputs");
        Output { values: Disjoint::new(values), width, bias }
    }

    /// # Safety
    /// While one task writes rows of these columns no other may write the same.
    pub unsafe fn columns(&self, first: usize, count: usize) -> Columns<'_> {
        assert!(count <= PANEL && first + count <= self.width, "columns {first}+{count} of {}", self.width);
        Columns { output: self, first, count }
    }
}

impl Columns<'_> {
    /// Writes the sums of `rows`, one register each; there may be more registers than rows.
    #[inline(always)]
    pub fn write<L: Lanes, const R: usize>(self, rows: &Range<usize>, sums: [L; R]) {
        let Columns { output: Output { values, width, bias }, first, count } = self;
        for (row, sum) in rows.clone().zip(sums) {
            // SAFETY: nobody else writes these columns of this row, as whoever made this promised.
            let out = unsafe { values.part(row * width + first, count) };
            let mut sums = [0f32; PANEL];
            if let Ok(out) = <&mut [_; PANEL]>::try_from(&mut *out) {
                let bias = bias.and_then(|bias| bias[first..].first_chunk::<PANEL>());
                // Not in a closure, which would be compiled for no body.
                let sum = if let Some(bias) = bias { sum.add(L::load(bias)) } else { sum };
                sum.store(&mut sums);
                *out = sums.map(MaybeUninit::new);
            } else {
                sum.store(&mut sums);
                for (i, out) in out.iter_mut().enumerate() {
                    out.write(bias.map_or(sums[i], |bias| sums[i] + bias[first + i]));
                }
            }
        }
    }
}

/// The same values, of which none is read before it is written.
pub(super) fn to_be_written(values: &mut [f32]) -> &mut [MaybeUninit<f32>] {
    // SAFETY: whoever gets this writes numbers only.
    unsafe { &mut *(std::ptr::from_mut(values) as *mut [MaybeUninit<f32>]) }
}

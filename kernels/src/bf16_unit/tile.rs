//! Operands and sums of a unit for bf16 tiles, and its operations.

/// Rows of a tile, and outputs of a panel.
pub(crate) const ROWS: usize = 16;

/// Columns of one step.
pub(crate) const STEP: usize = 32;

/// One cache line: 32 columns of one row, or two columns of 16 outputs.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Line(pub [u16; STEP]);

impl Line {
    pub const ZERO: Line = Line([0; STEP]);
}

/// 32 columns of up to 16 rows of the left operand: line `m` has columns `0..32` of row `m`.
pub(crate) type Left = [Line];

/// 32 columns of 16 outputs: value `2n + c` of line `p` is column `2p + c` of output `n`.
pub(crate) type Right = [Line; STEP / 2];

/// A right operand whose lines are some numbers apart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Strided<'a> {
    numbers: &'a [u16],
    stride: usize,
}

impl<'a> Strided<'a> {
    /// Line `p` begins with number `p · stride`.
    ///
    /// # Panics
    /// If there are fewer than 16 lines.
    #[inline(always)]
    pub fn new(numbers: &'a [u16], stride: usize) -> Strided<'a> {
        assert!(numbers.len() >= (STEP / 2 - 1) * stride + STEP, "{} numbers, {stride} a line", numbers.len());
        Strided { numbers, stride }
    }

    /// The address of the first line.
    #[inline(always)]
    pub fn as_ptr(self) -> *const u16 {
        self.numbers.as_ptr()
    }

    /// Bytes from one line to the next.
    #[inline(always)]
    pub fn line_bytes(self) -> usize {
        self.stride * size_of::<u16>()
    }

    /// Line `p`.
    #[cfg(any(test, target_arch = "x86_64"))]
    pub fn line(self, p: usize) -> &'a [u16] {
        &self.numbers[p * self.stride..][..STEP]
    }
}

impl<'a> From<&'a Right> for Strided<'a> {
    #[inline(always)]
    fn from(lines: &'a Right) -> Strided<'a> {
        // SAFETY: a line is an array of its size and has no padding.
        let numbers = unsafe { std::slice::from_raw_parts(lines.as_ptr().cast(), lines.len() * STEP) };
        Strided { numbers, stride: STEP }
    }
}

/// `[row][output]`
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Sums(pub [[f32; 16]; ROWS]);

impl Sums {
    pub const ZERO: Sums = Sums([[0.0; 16]; ROWS]);
}

/// Running sums of up to two tiles of rows with up to two panels, on the thread that created it.
pub(crate) trait Bf16Unit: Sized {
    /// Floating-point operations of one round of [`Bf16Unit::busy`].
    const BUSY_OPERATIONS: usize = 4 * 2 * STEP * ROWS * ROWS;

    /// Configures the unit for tiles of `rows` rows, 1 to 16; dropping the value releases it.
    fn new(rows: usize) -> Self;

    /// Sets all sums to zero.
    fn clear(&mut self);

    /// Adds the products of 32 columns: `sums[i][j] += left[i] · right[j]`. The second of each may be missing.
    fn add(&mut self, left: [Option<&Left>; 2], right: [Option<Strided<'_>>; 2]);

    /// The sums of tile `i` with panel `j`, in the first rows.
    fn store(&mut self, i: usize, j: usize, sums: &mut Sums);

    /// Multiplies two tiles of rows with two panels, all in the nearest cache, for measurements. Where another thread works on the
    /// same core, loads of tiles take as long as their products and do not overlap with them.
    fn busy(rounds: usize) {
        let (left, right) = ([[Line::ZERO; ROWS]; 2], [[Line::ZERO; STEP / 2]; 2]);
        let mut unit = Self::new(ROWS);
        unit.clear();
        for _ in 0..rounds {
            unit.add([Some(&left[0]), Some(&left[1])], right.each_ref().map(|right| Some(right.into())));
        }
        let mut sums = Sums::ZERO;
        unit.store(0, 0, &mut sums);
        std::hint::black_box(&sums);
    }
}

//! Every ISA's product gives the bits of the reference, for every format, on ragged shapes.

use half::f16;
use kernels::activation;
use kernels::cpu::{Isa, Numerics};
use kernels::math::exp;
use kernels::matmul::{Format, Matrix, RowEpilogue, reference};

/// A small deterministic generator, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn float(&mut self) -> f32 {
        (self.next() % 20_001) as f32 / 10_000.0 - 1.0
    }

    /// Random blocks whose scales are ordinary halves.
    fn rows(&mut self, format: Format, rows: usize, cols: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..rows * format.row_bytes(cols).unwrap()).map(|_| self.next() as u8).collect();
        let block = format.block_bytes();
        let scales: &[usize] = match format {
            Format::F32 | Format::F16 | Format::Bf16 => &[],
            Format::Q4_0 | Format::Q5_0 | Format::Q8_0 | Format::Iq4Nl | Format::Iq4Xs => &[0],
            Format::Q4_1 | Format::Q5_1 | Format::Q4K | Format::Q5K => &[0, 2],
            Format::Q6K => &[208],
            Format::Q2K => &[80, 82],
            Format::Q3K => &[108],
        };
        for block in bytes.chunks_exact_mut(block) {
            match format {
                Format::F32 => block.copy_from_slice(&self.float().to_le_bytes()),
                Format::F16 => block.copy_from_slice(&f16::from_f32(self.float()).to_le_bytes()),
                Format::Bf16 => block.copy_from_slice(&half::bf16::from_f32(self.float()).to_le_bytes()),
                _ => {}
            }
            for at in scales {
                block[*at..at + 2].copy_from_slice(&f16::from_f32(self.float() / 64.0).to_le_bytes());
            }
        }
        bytes
    }
}

fn check(format: Format, rows: usize, cols: usize, m: usize) {
    let mut random = Random((rows * 31 + cols * 7 + m) as u64);
    let bytes = random.rows(format, rows, cols);
    let mut x: Vec<f32> = (0..m * cols).map(|_| random.float() * exp(4.0 * random.float())).collect();
    x[..cols.min(32)].fill(0.0); // a block of zeros
    if m > 1 {
        x[cols] = f32::from_bits(1); // a denormal
    }
    let file_rows: Vec<&[u8]> = bytes.chunks_exact(format.row_bytes(cols).unwrap()).collect();
    let matrix = Matrix::pack(format, rows, cols, &bytes).unwrap();
    for isa in Isa::available() {
        let mut out = vec![f32::NAN; m * rows];
        matrix.multiply(isa, &x, &mut out);
        let want = products(isa.numerics(), format, &file_rows, &x, cols);
        for (i, (got, want)) in out.iter().zip(&want).enumerate() {
            assert_eq!(got.to_bits(), want.to_bits(), "{format:?} {isa} {m}x{cols}x{rows} at {i}: {got} for {want}");
        }
    }
    let mut row = vec![0f32; cols];
    let mut want = vec![0f32; cols];
    for n in [0, rows / 2, rows - 1] {
        matrix.row(n, &mut row);
        format.dequantise(file_rows[n], &mut want);
        assert_eq!(row, want, "{format:?} row {n}");
    }
}

fn products(numerics: Numerics, format: Format, rows: &[&[u8]], x: &[f32], cols: usize) -> Vec<f32> {
    if format != Format::Bf16 {
        return reference::multiply(format, rows, x, cols);
    }
    let weights = rows.iter().map(|row| {
        let mut weights = vec![0f32; cols];
        format.dequantise(row, &mut weights);
        weights
    });
    let weights: Vec<Vec<f32>> = weights.collect();
    x.chunks_exact(cols).flat_map(|x| weights.iter().map(|w| reference::dot_bf16(numerics, x, w))).collect()
}

#[test]
fn all_bodies_give_the_bits_of_the_reference() {
    for format in Format::ALL {
        let cols = format.block_len().max(32);
        for (rows, cols, m) in [
            (16, cols, 1),
            (1, cols, 1),
            (33, 2 * cols, 3),
            (48, cols, 8),
            (7, 3 * cols, 13),
            (20, 5 * cols, 24),
            (20, cols, 300),
        ] {
            check(format, rows, cols, m);
        }
    }
}

/// A product that is no number must reach the logits, where the engine refuses it.
#[test]
fn one_nan_makes_its_row_nan_and_no_other() {
    let mut random = Random(5);
    for format in Format::ALL {
        let (rows, cols, m) = (17, 2 * format.block_len().max(32), 9);
        let matrix = Matrix::pack(format, rows, cols, &random.rows(format, rows, cols)).unwrap();
        for isa in Isa::available() {
            for at in [0, 5, 15, 16, 31, cols - 1] {
                let mut x: Vec<f32> = (0..m * cols).map(|_| random.float()).collect();
                x[3 * cols + at] = f32::NAN;
                let mut out = vec![0f32; m * rows];
                matrix.multiply(isa, &x, &mut out);
                for (row, out) in out.chunks_exact(rows).enumerate() {
                    assert!(out.iter().all(|y| y.is_nan() == (row == 3)), "{format:?} {isa}, column {at}, row {row}");
                }
            }
        }
    }
}

#[test]
fn widths_that_are_no_multiple_of_256_work_in_the_small_formats() {
    for format in [Format::Q4_0, Format::Q4_1, Format::Q5_0, Format::Q5_1, Format::Q8_0, Format::Iq4Nl] {
        check(format, 192, 576, 5);
        check(format, 64, 896, 2);
    }
}

#[test]
fn a_row_does_not_depend_on_its_neighbours() {
    let mut random = Random(5);
    let (rows, cols, m) = (40, 256, 19);
    for format in Format::ALL {
        let bytes = random.rows(format, rows, cols);
        let matrix = Matrix::pack(format, rows, cols, &bytes).unwrap();
        let x: Vec<f32> = (0..m * cols).map(|_| random.float()).collect();
        for isa in Isa::available() {
            let mut together = vec![0f32; m * rows];
            matrix.multiply(isa, &x, &mut together);
            for row in 0..m {
                let mut alone = vec![0f32; rows];
                matrix.multiply(isa, &x[row * cols..][..cols], &mut alone);
                assert_eq!(alone, together[row * rows..][..rows], "{format:?} {isa} row {row}");
            }
        }
    }
}

#[test]
fn quantised_products_are_close_to_exact_arithmetic() {
    let mut random = Random(9);
    let (rows, cols) = (32, 512);
    for format in Format::ALL {
        let bytes = random.rows(format, rows, cols);
        let matrix = Matrix::pack(format, rows, cols, &bytes).unwrap();
        let x: Vec<f32> = (0..cols).map(|_| random.float()).collect();
        let mut out = vec![0f32; rows];
        matrix.multiply(Isa::Scalar, &x, &mut out);
        let mut weights = vec![0f32; cols];
        for (n, got) in out.iter().enumerate() {
            matrix.row(n, &mut weights);
            let exact: f64 = weights.iter().zip(&x).map(|(w, x)| f64::from(*w) * f64::from(*x)).sum();
            let norm: f64 =
                weights.iter().zip(&x).map(|(w, x)| (f64::from(*w) * f64::from(*x)).powi(2)).sum::<f64>().sqrt();
            let error = (f64::from(*got) - exact).abs();
            assert!(error <= 0.02 * norm + 1e-6, "{format:?} row {n}: {got} for {exact}, norm {norm}");
        }
    }
}

#[test]
fn stacked_matrices_give_the_outputs_side_by_side() {
    let mut random = Random(3);
    let cols = 256;
    let x: Vec<f32> = (0..2 * cols).map(|_| random.float()).collect();
    let parts = [(Format::Q4K, 24), (Format::Q6K, 17), (Format::F16, 5)];
    let packed = parts.map(|(format, rows)| {
        let bytes = random.rows(format, rows, cols);
        (Matrix::pack(format, rows, cols, &bytes).unwrap(), rows)
    });
    let mut want = vec![Vec::new(); 2];
    for (matrix, rows) in &packed {
        let mut out = vec![0f32; 2 * rows];
        matrix.multiply(Isa::Scalar, &x, &mut out);
        (0..2).for_each(|m| want[m].extend_from_slice(&out[m * rows..][..*rows]));
    }
    let stacked = Matrix::stack(packed.map(|(matrix, _)| matrix)).unwrap();
    let mut out = vec![0f32; 2 * 46];
    stacked.multiply(Isa::Scalar, &x, &mut out);
    assert_eq!(out, want.concat());

    let bias: Vec<f32> = (0..46).map(|_| random.float()).collect();
    let with_bias: Vec<f32> = want.iter().flat_map(|row| row.iter().zip(&bias).map(|(x, b)| x + b)).collect();
    assert_eq!(stacked.product(Isa::Scalar, &x, Some(&bias), RowEpilogue::None), with_bias);
}

#[test]
fn an_epilogue_gives_the_bits_of_the_function_behind_the_product() {
    let mut random = Random(17);
    let (half, cols) = (40, 256); // the last panel is not whole
    for format in Format::ALL {
        // What is gated may have another format than its gate.
        let halves =
            [format, Format::Q6K].map(|format| Matrix::pack(format, half, cols, &random.rows(format, half, cols)));
        let matrix = Matrix::stack(halves.map(Result::unwrap)).unwrap();
        for m in [1, 9, 300] {
            let x: Vec<f32> = (0..m * cols).map(|_| random.float()).collect();
            let y: Vec<f32> = (0..m * 2 * half).map(|_| random.float()).collect();
            let bias: Vec<f32> = (0..2 * half).map(|_| random.float()).collect();
            for isa in Isa::available() {
                let product = |bias, then| matrix.product(isa, &x, bias, then);
                let (plain, shifted) = (product(None, RowEpilogue::None), product(Some(&bias), RowEpilogue::None));
                let gated = activation::swiglu(isa, &plain, half);
                assert_eq!(product(None, RowEpilogue::SwiGlu), gated, "{format:?} {isa} {m} rows, SwiGLU");
                let gated = activation::swiglu(isa, &shifted, half);
                assert_eq!(product(Some(&bias), RowEpilogue::SwiGlu), gated, "{format:?} {isa} {m} rows, SwiGLU, bias");
                let bent = activation::gelu(isa, &shifted);
                assert_eq!(product(Some(&bias), RowEpilogue::Gelu), bent, "{format:?} {isa} {m} rows, GELU");
                let added = activation::sum(isa, &y, &shifted);
                assert_eq!(product(Some(&bias), RowEpilogue::Sum(&y)), added, "{format:?} {isa} {m} rows, sum");
            }
        }
    }
}

#[test]
#[should_panic(expected = "a stack of two")]
fn a_gate_is_a_matrix_of_its_own() {
    let matrix = Matrix::pack(Format::F32, 32, 4, &[0; 512]).unwrap();
    matrix.product(Isa::Scalar, &[0.0; 4], None, RowEpilogue::SwiGlu);
}

#[test]
fn wrong_sizes_are_errors() {
    assert!(Matrix::pack(Format::Q4K, 1, 576, &[0; 324]).is_err());
    assert!(Matrix::pack(Format::Q8_0, 2, 32, &[0; 67]).is_err());
    let one = |cols| Matrix::pack(Format::F32, 1, cols, &vec![0; 4 * cols]).unwrap();
    assert!(Matrix::stack([one(4), one(8)]).is_err());
}

#[test]
fn some_columns_have_the_bits_of_all() {
    let mut random = Random(9);
    let cols = 256;
    for format in Format::ALL {
        // Parts whose rows are no whole panels, one of another format.
        let parts = [(format, 33), (Format::Q8_0, 5), (format, 40)];
        let packed =
            parts.map(|(format, rows)| Matrix::pack(format, rows, cols, &random.rows(format, rows, cols)).unwrap());
        let matrix = Matrix::stack(packed).unwrap();
        let x: Vec<f32> = (0..cols).map(|_| random.float()).collect();
        for isa in Isa::available() {
            let mut all = vec![0f32; 78];
            matrix.multiply(isa, &x, &mut all);
            for wanted in [&[][..], &[0], &[77], &[15, 16], &[32, 33, 37, 38], &[1, 2, 3, 30, 34, 54, 76]] {
                let mut some = vec![f32::NAN; wanted.len()];
                matrix.multiply_some(isa, &x, wanted, &mut some);
                let want: Vec<f32> = wanted.iter().map(|column| all[*column as usize]).collect();
                assert_eq!(some, want, "{format:?} {isa} {wanted:?}");
            }
        }
    }
}

/// Packed weights are stored on disk: a change of the layout must raise `LAYOUT` and update these sums.
#[test]
fn the_packed_layout_is_the_one_that_its_number_stands_for() {
    let sum = |bytes: &[u8]| {
        bytes.iter().fold(0xcbf2_9ce4_8422_2325u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
    };
    let packed = Format::ALL.map(|format| {
        let bytes = Random(7).rows(format, 19, 512);
        let matrix = Matrix::pack(format, 19, 512, &bytes).unwrap();
        let (_, packed) = matrix.packed().unwrap();
        let back = Matrix::from_packed(format, 19, 512, packed.clone()).unwrap();
        let (mut rows, mut rows_back) = (vec![0f32; 512], vec![0f32; 512]);
        matrix.row(18, &mut rows);
        back.row(18, &mut rows_back);
        assert_eq!(rows, rows_back, "{format:?}");
        assert!(Matrix::from_packed(format, 40, 512, packed.clone()).is_err(), "{format:?} of another shape");
        sum(&packed)
    });
    let known = [
        0x042b6f34bc0a0852,
        0x110ddaf990fb7d7f,
        0xcde361833c17b2d1,
        0x81a80496a91353f1,
        0x92102085e874cb6e,
        0xf8faa85e1a0527be,
        0x0f286b6614a7653f,
        0x3634e995818856d3,
        0xc545e89aa41cbda8,
        0xff73a8b882c73c83,
        0xdf26ab40ce196379,
        0x1d1a89008738ca92,
        0xecd8772138c8380b,
        0x81a80496a91353f1,
        0x053bf249df9d6864,
    ];
    assert_eq!((kernels::matmul::LAYOUT, packed), (1, known));
}

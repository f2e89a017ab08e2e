//! Weight matrices on a GPU: dense ones as bf16 (or `f32`, where that is asked for), quantised ones in ggml's blocks
//! ([`super::blocks`]).
//!
//! Quantised weights are multiplied with few rows by our kernels. For many rows a slice of them is expanded to bf16 and
//! multiplied by cuBLAS, then the next slice.

use std::ffi::c_void;

use candle_core::cuda_backend::cudarc::cublas::{result::gemm_ex, sys as cublas};
use candle_core::cuda_backend::{CudaDevice, WrapErr};
use candle_core::{DType, Device, Result, Tensor, bail};
use half::bf16;

use super::blocks::Layout;
use super::device::{hold, hold_as, output, run};
use super::launch::{self, After, Blocks, PRODUCT_ROWS, Typed};
use super::tensors::{add, gelu, lookup, swiglu, to_bf16};
use crate::epilogue::Epilogue;
use crate::matmul::{Format, MatrixError};

/// Products of at most this many rows go to our own kernel and not to cuBLAS.
const FEW_ROWS: usize = 4;
/// Bytes that a lane of that kernel reads at once, from where they are aligned.
const ALIGNED: u64 = 16;
/// Columns of quantised weights are multiples of this.
const STRIP: usize = 64;
/// More rows than this are multiplied with expanded weights.
const EXPANDED_ROWS: usize = 2 * PRODUCT_ROWS;
/// Weights that are expanded at once: 32 MiB of bf16, which the second cache of large GPUs holds.
const SLICE: usize = 16 << 20;

/// `[N, K]` weights on a GPU; several parts may be stacked along N.
#[derive(Debug)]
pub struct DeviceMatrix {
    rows: usize,
    cols: usize,
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    /// `[N, K]`
    Dense(Tensor),
    Quantised {
        layout: Layout,
        /// Bodies, then heads, as 32-bit words.
        words: Tensor,
        format: Format,
        rows: usize,
    },
}

/// What follows a product, with tensors held: addresses of `f32`, or 0.
#[derive(Debug, Clone, Copy)]
struct Follows {
    bias: u64,
    residual: u64,
}

/// What weights become on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// Quantised ones stay as they are (the IQ4 formats as Q8_0) where their columns are a multiple of 64; all others become
    /// bf16.
    Stored,
    /// All are expanded to bf16.
    Bf16,
    /// All are expanded to `f32`.
    F32,
}

impl DeviceMatrix {
    /// Copies a matrix from its rows as a file holds them; row `n` is row `source(n)` of the file.
    ///
    /// # Errors
    /// If the bytes do not fit the shape, or the GPU has no room.
    pub fn load(
        format: Format,
        (rows, cols): (usize, usize),
        bytes: &[u8],
        source: impl Fn(usize) -> usize,
        kept: Kept,
        device: &Device,
    ) -> Result<DeviceMatrix> {
        if kept == Kept::Stored && cols.is_multiple_of(STRIP) {
            let (expanded, format) = match format.as_q8_0(bytes) {
                Some(blocks) => (Some(blocks), Format::Q8_0),
                None => (None, format),
            };
            if let Some(layout) = Layout::of(format) {
                let bytes = expanded.as_deref().unwrap_or(bytes);
                let words = layout.words(format, (rows, cols), bytes, source).map_err(candle_core::Error::wrap)?;
                let count = words.len();
                let words = Tensor::from_vec(words, count, device)?;
                return Ok(DeviceMatrix { rows, cols, parts: vec![Part::Quantised { layout, words, format, rows }] });
            }
        }
        let bytes = reordered(format, (rows, cols), bytes, source)?;
        let dense = dense_tensor(format, (rows, cols), &bytes, kept, device)?;
        Ok(DeviceMatrix { rows, cols, parts: vec![Part::Dense(dense)] })
    }

    /// Takes a dense tensor `[N, K]` that is on a GPU.
    ///
    /// # Errors
    /// If it is no contiguous matrix of bf16 or `f32`.
    pub fn from_tensor(weights: Tensor) -> Result<DeviceMatrix> {
        let (rows, cols) = weights.dims2()?;
        if !matches!(weights.dtype(), DType::BF16 | DType::F32) || !weights.is_contiguous() {
            bail!("weights on a GPU are contiguous bf16 or f32, not {:?}", weights.dtype());
        }
        Ok(DeviceMatrix { rows, cols, parts: vec![Part::Dense(weights)] })
    }

    /// Puts matrices with the same columns on top of each other; neighbours of the same kind become one.
    ///
    /// # Errors
    /// If their columns differ, or the GPU has no room.
    pub fn stack(matrices: impl IntoIterator<Item = DeviceMatrix>) -> Result<DeviceMatrix> {
        let mut stacked = DeviceMatrix { rows: 0, cols: 0, parts: Vec::new() };
        for matrix in matrices {
            if !stacked.parts.is_empty() && stacked.cols != matrix.cols {
                let (left, right) = (stacked.cols, matrix.cols);
                return Err(candle_core::Error::wrap(MatrixError::Stack { left, right }));
            }
            stacked.cols = matrix.cols;
            stacked.rows += matrix.rows;
            for part in matrix.parts {
                match (stacked.parts.pop(), part) {
                    (Some(Part::Dense(above)), Part::Dense(below)) if above.dtype() == below.dtype() => {
                        stacked.parts.push(Part::Dense(Tensor::cat(&[above, below], 0)?));
                    }
                    (
                        Some(Part::Quantised { layout, words, format, rows }),
                        Part::Quantised { words: below, format: of_below, rows: more, .. },
                    ) if format == of_below && (rows * stacked.cols / format.block_len()).is_multiple_of(2) => {
                        let words = joined(layout, format, stacked.cols, [(&words, rows), (&below, more)])?;
                        stacked.parts.push(Part::Quantised { layout, words, format, rows: rows + more });
                    }
                    (above, below) => stacked.parts.extend(above.into_iter().chain([below])),
                }
            }
        }
        Ok(stacked)
    }

    /// N
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// K
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Bytes that the weights take on the GPU.
    pub fn bytes(&self) -> usize {
        let bytes = |part: &Part| match part {
            Part::Dense(weights) => weights.elem_count() * weights.dtype().size_in_bytes(),
            Part::Quantised { words, .. } => 4 * words.elem_count(),
        };
        self.parts.iter().map(bytes).sum()
    }

    /// The type in which it takes what it is multiplied with.
    pub fn operand(&self) -> DType {
        if self.parts.iter().any(Part::is_f32) { DType::F32 } else { DType::BF16 }
    }

    /// `[M, K] -> [M, N]`, a bias of `[N]`, then the epilogue.
    ///
    /// # Errors
    /// If the shapes do not fit, or the GPU fails.
    pub fn product(&self, x: &Tensor, bias: Option<&Tensor>, epilogue: Epilogue<'_>) -> Result<Tensor> {
        let (m, cols) = x.dims2()?;
        if cols != self.cols {
            bail!("a product of {:?} with weights of {} columns", x.shape(), self.cols);
        }
        if bias.is_some_and(|bias| bias.elem_count() != self.rows) {
            bail!("a bias of {:?} for {} rows of weights", bias.map(Tensor::shape), self.rows);
        }
        if let Epilogue::Sum(y) = epilogue
            && y.dims() != [m, self.rows]
        {
            bail!("{m} rows of {} and a residual of {:?}", self.rows, y.shape());
        }
        if let Epilogue::SwiGlu(DType::BF16) = epilogue
            && let [Part::Quantised { .. }] = &self.parts[..]
            && (1..=PRODUCT_ROWS).contains(&m)
            && self.rows.is_multiple_of(2)
        {
            return self.gated(&narrowed(x)?, bias);
        }
        let residual = match epilogue {
            Epilogue::Sum(y) => Some(y),
            _ => None,
        };
        let sums = self.sums(x, bias, residual)?;
        match epilogue {
            Epilogue::None | Epilogue::Sum(_) => Ok(sums),
            Epilogue::Gelu(to) => gelu(&sums, to),
            Epilogue::SwiGlu(to) => swiglu(&sums, to),
        }
    }

    /// SwiGLU of a product with few rows, in bf16.
    fn gated(&self, x: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        let (device, m) = (x.device().as_cuda_device()?, x.dim(0)?);
        let [Part::Quantised { layout, words, format, rows }] = &self.parts[..] else {
            bail!("one quantised part is multiplied and gated in one launch");
        };
        let (x, words) = (hold(x)?, hold(words)?);
        let bias = bias.map(|bias| hold_as(bias, DType::F32)).transpose()?;
        let (tensor, out) = output(device, (m, self.rows / 2), DType::BF16)?;
        let bias = bias.as_ref().map_or(0, |bias| bias.values.at);
        let after = After { bias, residual: 0, gated: true, width: self.rows / 2 };
        let weights = self.blocks((*layout, *format), words.values.at, *rows);
        run(device, &launch::quantised_product(x.values.at, m, weights, after, out.at))?;
        Ok(tensor)
    }

    /// `[M, N] f32`: the product with every part, in its columns of the output.
    fn sums(&self, x: &Tensor, bias: Option<&Tensor>, residual: Option<&Tensor>) -> Result<Tensor> {
        let (device, m) = (x.device().as_cuda_device()?, x.dim(0)?);
        let (tensor, out) = output(device, (m, self.rows), DType::F32)?;
        if m == 0 {
            return Ok(tensor);
        }
        let quantised = |part: &Part| matches!(part, Part::Quantised { .. });
        // Our kernels add both where they multiply; beside other products they are added at the end.
        let adds = self.parts.iter().all(quantised) && m <= EXPANDED_ROWS;
        let held =
            [bias, residual].map(|added| added.filter(|_| adds).map(|added| hold_as(added, DType::F32)).transpose());
        let [held_bias, held_residual] = held;
        let (held_bias, held_residual) = (held_bias?, held_residual?);
        let at = |held: &Option<super::device::Held<'_>>| held.as_ref().map_or(0, |held| held.values.at);
        let follows = Follows { bias: at(&held_bias), residual: at(&held_residual) };
        let bf16 = if self.parts.iter().all(Part::is_f32) { x.clone() } else { narrowed(x)? };
        let mut column = 0;
        for part in &self.parts {
            let to = Columns { at: out.at + 4 * column as u64, width: self.rows };
            match part {
                Part::Dense(weights) => multiply_dense(if part.is_f32() { x } else { &bf16 }, weights, to)?,
                Part::Quantised { layout, words, format, rows } => {
                    let words = hold(words)?;
                    let weights = self.blocks((*layout, *format), words.values.at, *rows);
                    let offset = |at: u64| if at == 0 { 0 } else { at + 4 * column as u64 };
                    let follows = Follows { bias: offset(follows.bias), residual: offset(follows.residual) };
                    multiply_quantised(&bf16, weights, follows, to)?;
                }
            }
            column += part.rows()?;
        }
        drop((held_bias, held_residual));
        if adds {
            return Ok(tensor);
        }
        let added = [bias, residual].into_iter().flatten();
        added.into_iter().try_fold(tensor, |sum, added| add(&sum, added))
    }

    fn blocks(&self, (layout, format): (Layout, Format), at: u64, rows: usize) -> Blocks {
        let heads = at + layout.body_bytes(rows * self.cols / format.block_len()) as u64;
        Blocks { format: layout.name, bodies: at, heads, rows, cols: self.cols }
    }

    /// Rows as `f32`: an embedding lookup.
    ///
    /// # Errors
    /// If a row is not there, or the weights are quantised.
    pub fn lookup(&self, ids: &[u32]) -> Result<Tensor> {
        match &self.parts[..] {
            [Part::Dense(weights)] => lookup(weights, ids),
            _ => bail!("rows are looked up in one dense matrix"),
        }
    }
}

impl Part {
    fn is_f32(&self) -> bool {
        matches!(self, Part::Dense(weights) if weights.dtype() != DType::BF16)
    }

    fn rows(&self) -> Result<usize> {
        match self {
            Part::Dense(weights) => weights.dim(0),
            Part::Quantised { rows, .. } => Ok(*rows),
        }
    }
}

/// Two quantised matrices as one: all bodies, then all heads. The first has an even number of blocks, since heads are of 2 or 4
/// bytes, and of words here.
fn joined(layout: Layout, format: Format, cols: usize, parts: [(&Tensor, usize); 2]) -> Result<Tensor> {
    let bodies = |rows: usize| layout.body_bytes(rows * cols / format.block_len()) / 4;
    let [(above, above_rows), (below, below_rows)] = parts;
    let split = |words: &Tensor, rows: usize| -> Result<[Tensor; 2]> {
        let heads = words.elem_count() - bodies(rows);
        Ok([words.narrow(0, 0, bodies(rows))?, words.narrow(0, bodies(rows), heads)?])
    };
    let ([first, first_heads], [second, second_heads]) = (split(above, above_rows)?, split(below, below_rows)?);
    Tensor::cat(&[first, second, first_heads, second_heads], 0)?.contiguous()
}

/// Where a product writes: columns of a wider `f32` matrix.
#[derive(Debug, Clone, Copy)]
struct Columns {
    at: u64,
    /// Of a row.
    width: usize,
}

/// As bf16.
fn narrowed(x: &Tensor) -> Result<Tensor> {
    if x.dtype() == DType::BF16 { Ok(x.clone()) } else { to_bf16(x) }
}

/// The rows in their order, checked against the shape.
fn reordered(
    format: Format,
    (rows, cols): (usize, usize),
    bytes: &[u8],
    source: impl Fn(usize) -> usize,
) -> Result<Vec<u8>> {
    let row_bytes =
        format.row_bytes(cols).ok_or(MatrixError::Blocks { format, cols }).map_err(candle_core::Error::wrap)?;
    let (want, got) = (rows * row_bytes, bytes.len());
    if want != got {
        return Err(candle_core::Error::wrap(MatrixError::Bytes { format, rows, cols, want, got }));
    }
    let mut ordered = Vec::with_capacity(want);
    (0..rows).for_each(|row| ordered.extend_from_slice(&bytes[source(row) * row_bytes..][..row_bytes]));
    Ok(ordered)
}

fn dense_tensor(
    format: Format,
    (rows, cols): (usize, usize),
    bytes: &[u8],
    kept: Kept,
    device: &Device,
) -> Result<Tensor> {
    match (format, kept) {
        (Format::Bf16, Kept::Stored | Kept::Bf16) => Tensor::from_raw_buffer(bytes, DType::BF16, &[rows, cols], device),
        (Format::F32, Kept::F32) => Tensor::from_raw_buffer(bytes, DType::F32, &[rows, cols], device),
        (_, Kept::F32) => Tensor::from_vec(expanded(format, (rows, cols), bytes, |x| x), (rows, cols), device),
        (_, Kept::Stored | Kept::Bf16) => {
            Tensor::from_vec(expanded(format, (rows, cols), bytes, bf16::from_f32), (rows, cols), device)
        }
    }
}

/// The values of all rows; only one row at a time is there in `f32`.
fn expanded<T>(format: Format, (rows, cols): (usize, usize), bytes: &[u8], narrow: impl Fn(f32) -> T) -> Vec<T> {
    let row_bytes = bytes.len() / rows.max(1);
    let mut row = vec![0f32; cols];
    let mut values = Vec::with_capacity(rows * cols);
    for stored in bytes.chunks_exact(row_bytes.max(1)) {
        format.dequantise(stored, &mut row);
        values.extend(row.iter().map(|x| narrow(*x)));
    }
    values
}

fn multiply_dense(x: &Tensor, weights: &Tensor, to: Columns) -> Result<()> {
    let device = x.device().as_cuda_device()?;
    let ((m, k), n) = (x.dims2()?, weights.dim(0)?);
    let widened =
        (weights.dtype() == DType::F32 && x.dtype() != DType::F32).then(|| x.to_dtype(DType::F32)).transpose()?;
    let (x, w) = (hold(widened.as_ref().unwrap_or(x))?, hold(weights)?);
    let aligned = [x.values.at, w.values.at].into_iter().all(|at| at.is_multiple_of(ALIGNED));
    if m <= FEW_ROWS && k.is_multiple_of(8) && w.values.dtype == DType::BF16 && aligned && n == to.width {
        run(device, &launch::few_rows(x.values.at, w.values.at, to.at, m, n, k))
    } else {
        gemm(device, x.values, w.values, to, (m, n, k))
    }
}

/// bf16 `x` by quantised weights: in chunks of rows by our kernels, or with slices of expanded weights by cuBLAS.
fn multiply_quantised(x: &Tensor, weights: Blocks, follows: Follows, to: Columns) -> Result<()> {
    let device = x.device().as_cuda_device()?;
    let (m, k) = x.dims2()?;
    let x = hold_as(x, DType::BF16)?;
    if m <= EXPANDED_ROWS {
        for first in (0..m).step_by(PRODUCT_ROWS) {
            let below = |at: u64| if at == 0 { 0 } else { at + 4 * (first * to.width) as u64 };
            let after = After { bias: follows.bias, residual: below(follows.residual), gated: false, width: to.width };
            let rows = PRODUCT_ROWS.min(m - first);
            let from = x.values.at + 2 * (first * k) as u64;
            run(device, &launch::quantised_product(from, rows, weights, after, below(to.at)))?;
        }
        return Ok(());
    }
    // Whole tiles of cuBLAS, and aligned columns of the output.
    let slice = (SLICE / k).next_multiple_of(128).min(weights.rows);
    let (_slice, expanded) = output(device, (slice, k), DType::BF16)?;
    for first in (0..weights.rows).step_by(slice) {
        let rows = slice.min(weights.rows - first);
        run(device, &launch::expand(weights, first, rows, expanded.at))?;
        let to = Columns { at: to.at + 4 * first as u64, width: to.width };
        gemm(device, x.values, expanded, to, (m, rows, k))?;
    }
    Ok(())
}

/// `to: [M, N] f32 = x: [M, K] · (w: [N, K])ᵀ` by cuBLAS, with sums in `f32`.
fn gemm(device: &CudaDevice, x: Typed, w: Typed, to: Columns, (m, n, k): (usize, usize, usize)) -> Result<()> {
    let kind = match w.dtype {
        DType::BF16 => cublas::cudaDataType_t::CUDA_R_16BF,
        _ => cublas::cudaDataType_t::CUDA_R_32F,
    };
    let int = |n: usize| i32::try_from(n).map_err(candle_core::Error::wrap);
    let (m, n, k, width) = (int(m)?, int(n)?, int(k)?, int(to.width)?);
    let (one, zero) = (1f32, 0f32);
    let blas = device.cublas_handle();
    // cuBLAS counts by columns: to it `w` is [K, N], `x` is [K, M] and `to` is [N, M].
    // SAFETY: the tensors are held by the caller and have these shapes.
    unsafe {
        gemm_ex(
            *blas.handle(),
            cublas::cublasOperation_t::CUBLAS_OP_T,
            cublas::cublasOperation_t::CUBLAS_OP_N,
            n,
            m,
            k,
            (&raw const one).cast(),
            w.at as *const c_void,
            kind,
            k,
            x.at as *const c_void,
            kind,
            k,
            (&raw const zero).cast(),
            to.at as *mut c_void,
            cublas::cudaDataType_t::CUDA_R_32F,
            width,
            cublas::cublasComputeType_t::CUBLAS_COMPUTE_32F,
            cublas::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT_TENSOR_OP,
        )
    }
    .w()
}

//! Weight matrices on a GPU: dense ones as bf16 (or `f32`, where that is asked for), quantised ones in ggml's blocks.

use std::borrow::Cow;
use std::ffi::c_void;

use candle_core::cuda_backend::cudarc::cublas::{result::gemm_ex, sys as cublas};
use candle_core::cuda_backend::{CudaDevice, WrapErr};
use candle_core::quantized::{GgmlDType, QMatMul, QStorage, QTensor};
use candle_core::{DType, Device, Module, Result, Tensor, bail};
use half::bf16;

use super::device::{hold, output, run};
use super::launch::{self, Typed};
use super::quantised::{QuantisedProducts, quantised_products};
use super::tensors::{lookup, to_bf16};
use crate::matmul::{Format, MatrixError};

/// Products of at most this many rows go to our own kernel and not to cuBLAS.
const FEW_ROWS: usize = 4;
/// Bytes that a lane of that kernel reads at once, from where they are aligned.
const ALIGNED: u64 = 16;

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
        weights: QMatMul,
        rows: usize,
        bytes: usize,
    },
}

/// What weights become on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// Quantised ones stay as they are (the IQ4 formats as Q8_0) where this GPU multiplies them ([`QuantisedProducts`]); all others
    /// become bf16.
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
        let bytes = reordered(format, (rows, cols), bytes, source)?;
        let stays = kept == Kept::Stored && quantised_products() != QuantisedProducts::Wrong;
        let part = if format.is_dense() || !stays {
            Part::Dense(dense_tensor(format, (rows, cols), &bytes, kept, device)?)
        } else {
            let bytes = format.as_q8_0(&bytes).unwrap_or(bytes);
            let dtype = format.candle_type().unwrap_or(GgmlDType::Q8_0);
            let storage = QStorage::from_data(Cow::Borrowed(&bytes), device, dtype)?;
            let weights = QMatMul::from_qtensor(QTensor::new(storage, (rows, cols))?)?;
            Part::Quantised { weights, rows, bytes: bytes.len() }
        };
        Ok(DeviceMatrix { rows, cols, parts: vec![part] })
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

    /// Puts matrices with the same columns on top of each other; neighbours that are dense become one.
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
            Part::Quantised { bytes, .. } => *bytes,
        };
        self.parts.iter().map(bytes).sum()
    }

    /// The type in which it takes what it is multiplied with.
    pub fn operand(&self) -> DType {
        let is_bf16 = |part: &Part| matches!(part, Part::Dense(weights) if weights.dtype() == DType::BF16);
        if self.parts.iter().all(is_bf16) { DType::BF16 } else { DType::F32 }
    }

    /// `[M, K] -> [M, N] f32`.
    ///
    /// # Errors
    /// If the shapes do not fit, or the GPU fails.
    pub fn multiply(&self, x: &Tensor) -> Result<Tensor> {
        let (m, cols) = x.dims2()?;
        if cols != self.cols {
            bail!("a product of {:?} with weights of {} columns", x.shape(), self.cols);
        }
        if m == 0 {
            return Ok(output(x.device().as_cuda_device()?, (0, self.rows), DType::F32)?.0);
        }
        let products = self.parts.iter().map(|part| match part {
            Part::Dense(weights) => multiply_dense(x, weights),
            Part::Quantised { weights, rows, .. } => {
                let product = weights.forward(&x.to_dtype(DType::F32)?)?;
                debug_assert_eq!(product.dims().last(), Some(rows));
                Ok(product)
            }
        });
        let products = products.collect::<Result<Vec<_>>>()?;
        if let [product] = &products[..] { Ok(product.clone()) } else { Tensor::cat(&products, 1)?.contiguous() }
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

/// The rows in their order, checked against the shape; copied, since candle reads blocks where they are aligned.
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

fn multiply_dense(x: &Tensor, weights: &Tensor) -> Result<Tensor> {
    let device = x.device().as_cuda_device()?;
    let (m, k) = x.dims2()?;
    let n = weights.dim(0)?;
    let narrowed = match (weights.dtype(), x.dtype()) {
        (DType::BF16, DType::F32) => Some(to_bf16(x)?),
        (DType::F32, DType::BF16) => Some(x.to_dtype(DType::F32)?),
        _ => None,
    };
    let (x, w) = (hold(narrowed.as_ref().unwrap_or(x))?, hold(weights)?);
    let (tensor, out) = output(device, (m, n), DType::F32)?;
    let aligned = [x.values.at, w.values.at].into_iter().all(|at| at.is_multiple_of(ALIGNED));
    if m <= FEW_ROWS && k.is_multiple_of(8) && w.values.dtype == DType::BF16 && aligned {
        run(device, &launch::few_rows(x.values.at, w.values.at, out.at, m, n, k))?;
    } else {
        gemm(device, x.values, w.values, out.at, (m, n, k))?;
    }
    Ok(tensor)
}

/// `out: [M, N] f32 = x: [M, K] · (w: [N, K])ᵀ` by cuBLAS, with sums in `f32`.
fn gemm(device: &CudaDevice, x: Typed, w: Typed, out: u64, (m, n, k): (usize, usize, usize)) -> Result<()> {
    let kind = match w.dtype {
        DType::BF16 => cublas::cudaDataType_t::CUDA_R_16BF,
        _ => cublas::cudaDataType_t::CUDA_R_32F,
    };
    let int = |n: usize| i32::try_from(n).map_err(candle_core::Error::wrap);
    let (m, n, k) = (int(m)?, int(n)?, int(k)?);
    let (one, zero) = (1f32, 0f32);
    let blas = device.cublas_handle();
    // cuBLAS counts by columns: to it `w` is [K, N], `x` is [K, M] and `out` is [N, M].
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
            out as *mut c_void,
            cublas::cudaDataType_t::CUDA_R_32F,
            n,
            cublas::cublasComputeType_t::CUBLAS_COMPUTE_32F,
            cublas::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT_TENSOR_OP,
        )
    }
    .w()
}

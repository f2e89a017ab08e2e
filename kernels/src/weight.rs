//! A weight matrix on its device: packed for the CPU, or in GPU memory.

use candle_core::{DType, Device, Result, Tensor};

#[cfg(feature = "cuda")]
use crate::cuda::DeviceMatrix;
use crate::epilogue::Epilogue;
use crate::matmul::{Format, Matrix, MatrixError};
use crate::ops;

/// `[N, K]` weights.
#[derive(Debug)]
pub enum Weight {
    /// Packed for the CPU kernels.
    Packed(Matrix),
    /// In the memory of a CUDA device.
    #[cfg(feature = "cuda")]
    Device(DeviceMatrix),
}

impl Weight {
    /// N, the width of the output.
    pub fn rows(&self) -> usize {
        match self {
            Weight::Packed(matrix) => matrix.rows(),
            #[cfg(feature = "cuda")]
            Weight::Device(matrix) => matrix.rows(),
        }
    }

    /// Bytes of the weights on their device.
    pub fn bytes(&self) -> usize {
        match self {
            Weight::Packed(matrix) => matrix.bytes(),
            #[cfg(feature = "cuda")]
            Weight::Device(matrix) => matrix.bytes(),
        }
    }

    /// The type of the left operand: `f32`, or bf16 for weights on a GPU that are not `f32`. Kernels that precede a product store their
    /// output in it.
    pub fn operand(&self) -> DType {
        match self {
            Weight::Packed(_) => DType::F32,
            #[cfg(feature = "cuda")]
            Weight::Device(matrix) => matrix.operand(),
        }
    }

    /// True for weights that are bf16 on the CPU.
    pub fn is_bf16(&self) -> bool {
        match self {
            Weight::Packed(matrix) => matrix.formats().all(|format| format == Format::Bf16),
            #[cfg(feature = "cuda")]
            Weight::Device(_) => false,
        }
    }

    /// Stacks matrices of equal width, so that one product serves all of them.
    ///
    /// # Errors
    /// If their widths or devices differ.
    pub fn stack(weights: impl IntoIterator<Item = Weight>) -> Result<Weight> {
        let mut packed = Vec::new();
        #[cfg(feature = "cuda")]
        let mut on_device = Vec::new();
        for weight in weights {
            match weight {
                Weight::Packed(matrix) => packed.push(matrix),
                #[cfg(feature = "cuda")]
                Weight::Device(matrix) => on_device.push(matrix),
            }
        }
        #[cfg(feature = "cuda")]
        if !on_device.is_empty() {
            if !packed.is_empty() {
                candle_core::bail!("weights on different devices cannot be stacked");
            }
            return Ok(Weight::Device(DeviceMatrix::stack(on_device)?));
        }
        Matrix::stack(packed).map(Weight::Packed).map_err(|error: MatrixError| candle_core::Error::wrap(error))
    }

    /// `[N, K] -> [N, rows]`: the product, a bias of `[rows]` added to every row, then the epilogue.
    ///
    /// # Errors
    /// If the width of `x` or of the bias differs.
    pub fn product(&self, x: &Tensor, bias: Option<&Tensor>, epilogue: Epilogue<'_>) -> Result<Tensor> {
        match self {
            Weight::Packed(matrix) => ops::matmul(x, matrix, bias, epilogue),
            #[cfg(feature = "cuda")]
            Weight::Device(matrix) => matrix.product(x, bias, epilogue),
        }
    }

    /// As [`Weight::product`] for selected columns per row; the others may be `-inf`. See [`ops::matmul_some`].
    ///
    /// # Errors
    /// If the width of `x` differs.
    pub fn product_some(&self, x: &Tensor, wanted: &[Option<Vec<u32>>]) -> Result<Tensor> {
        match self {
            Weight::Packed(matrix) => ops::matmul_some(x, matrix, wanted),
            // On a GPU the rows of a batch share one read of the weights, so skipping columns saves nothing.
            #[cfg(feature = "cuda")]
            Weight::Device(matrix) => matrix.product(x, None, Epilogue::None),
        }
    }

    /// Rows as `f32: [N, K]`: an embedding lookup.
    ///
    /// # Errors
    /// If the device is out of memory.
    ///
    /// # Panics
    /// If an id is out of range.
    pub fn lookup(&self, ids: &[u32], device: &Device) -> Result<Tensor> {
        match self {
            Weight::Packed(matrix) => {
                let mut values = vec![0f32; ids.len() * matrix.cols()];
                let rows = values.chunks_exact_mut(matrix.cols());
                ids.iter().zip(rows).for_each(|(id, row)| matrix.row(*id as usize, row));
                Tensor::from_vec(values, (ids.len(), matrix.cols()), device)
            }
            #[cfg(feature = "cuda")]
            Weight::Device(matrix) => matrix.lookup(ids),
        }
    }
}

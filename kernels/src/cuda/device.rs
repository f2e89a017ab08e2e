//! A GPU: finding it, what it is, memory on it, launches.
//!
//! Everything runs on one stream in the order in which it is launched, so no operation waits for another one by an event
//! and tensors need no tracking.

use std::sync::atomic::{AtomicBool, Ordering};

use candle_core::cuda_backend::cudarc::driver::sys::CUdevice_attribute;
use candle_core::cuda_backend::cudarc::driver::{
    CudaContext, CudaSlice, DevicePtr, DeviceRepr, LaunchConfig, PushKernelArg, result, sys,
};
use candle_core::cuda_backend::{CudaDType, CudaDevice, WrapErr};
use candle_core::op::BackpropOp;
use candle_core::{CudaStorage, DType, Device, Result, Shape, Storage, StorageRef, Tensor, bail};
use half::{bf16, f16};

use super::launch::{Argument, Launch, Module, Typed};

/// The oldest driver that reads the PTX of this build: one for the CUDA that it was built with, 13000 for 13.0.
const DRIVER: &str = env!("MEMLOCAL_CUDA");
/// The oldest compute capability that the kernels run on.
const CAPABILITY: (i32, i32) = (8, 0);

/// Why a GPU cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// `libcuda.so.1` is not there or does not start.
    #[error("the NVIDIA driver does not answer ({reason})")]
    NoDriver { reason: String },
    /// The driver cannot read this build's kernels.
    #[error("the NVIDIA driver speaks CUDA {}.{}, and this build needs {}.{}", have / 1000, have % 1000 / 10, want / 1000, want % 1000 / 10)]
    OldDriver { have: i32, want: i32 },
    /// There are fewer devices.
    #[error("there is no GPU {ordinal}; this machine has {devices}")]
    NoDevice { ordinal: usize, devices: usize },
    /// The GPU is older than the kernels.
    #[error("{name} has compute capability {}.{}, and 8.0 is the least", have.0, have.1)]
    OldCard { name: String, have: (i32, i32) },
    /// The device exists but cannot be set up: cuBLAS or cuRAND is missing, or other processes use all of its memory.
    #[error("GPU {ordinal} cannot be set up; cuBLAS and cuRAND must be installed, and memory be free")]
    Setup { ordinal: usize, source: candle_core::Error },
}

/// What a GPU is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    pub name: String,
    pub capability: (i32, i32),
    /// Bytes.
    pub free: usize,
    /// Bytes.
    pub total: usize,
}

/// Opens a GPU.
///
/// # Errors
/// A [`DeviceError`] that names what is missing.
pub fn open(ordinal: usize) -> std::result::Result<Device, DeviceError> {
    let silent = |error: result::DriverError| DeviceError::NoDriver { reason: format!("{:?}", error.0) };
    result::init().map_err(silent)?;
    let mut have = 0;
    // SAFETY: the driver writes one number.
    unsafe { sys::cuDriverGetVersion(&raw mut have) }.result().map_err(silent)?;
    let want = DRIVER.parse().unwrap_or(i32::MAX);
    if have < want {
        return Err(DeviceError::OldDriver { have, want });
    }
    let devices = usize::try_from(CudaContext::device_count().map_err(silent)?).unwrap_or(0);
    if ordinal >= devices {
        return Err(DeviceError::NoDevice { ordinal, devices });
    }
    let context = CudaContext::new(ordinal).map_err(silent)?;
    let capability = context.compute_capability().map_err(silent)?;
    if capability < CAPABILITY {
        return Err(DeviceError::OldCard { name: context.name().map_err(silent)?, have: capability });
    }
    let unfit = |source| DeviceError::Setup { ordinal, source };
    let device = CudaDevice::new_with_stream(ordinal).map_err(unfit)?;
    // SAFETY: there is one stream, so the order of launches is the order of reads and writes.
    unsafe { device.disable_event_tracking() };
    keep_memory(&context).w().map_err(unfit)?;
    let device = Device::Cuda(device);
    Ok(device)
}

/// The name of a GPU, if there is one of this number.
pub fn name(ordinal: usize) -> Option<String> {
    result::init().ok()?;
    CudaContext::new(ordinal).ok()?.name().ok()
}

/// What a device is, and how much memory it has left. Memory that no tensor holds is given back for it ([`release_unused`]).
///
/// # Errors
/// If it is no GPU, or the driver does not say.
pub fn device_info(device: &Device) -> Result<DeviceInfo> {
    release_unused(device)?;
    let stream = device.as_cuda_device()?.cuda_stream();
    let context = stream.context();
    let (free, total) = context.mem_get_info().w()?;
    Ok(DeviceInfo { name: context.name().w()?, capability: context.compute_capability().w()?, free, total })
}

/// Waits for all that was launched, then gives the memory that no tensor holds back to the GPU, for others.
///
/// # Errors
/// If it is no GPU, or something that was launched has failed.
pub fn release_unused(device: &Device) -> Result<()> {
    device.synchronize()?;
    let stream = device.as_cuda_device()?.cuda_stream();
    let context = stream.context();
    if context.has_async_alloc() {
        // SAFETY: the device is that of a context, and its pool lives as long as the process.
        unsafe {
            result::device::get_mem_pool(context.cu_device()).and_then(|pool| result::mem_pool::trim_to(pool, 0))
        }
        .w()?;
    }
    Ok(())
}

/// Memory of dropped tensors stays with the process until [`release_unused`]: else the driver would take it away at every
/// synchronisation, and every step of a network would ask for it again.
fn keep_memory(context: &CudaContext) -> std::result::Result<(), result::DriverError> {
    if !context.has_async_alloc() {
        return Ok(());
    }
    let mut bytes = u64::MAX;
    let threshold = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    // SAFETY: as in `release_unused`; the attribute is a number of 64 bits.
    unsafe {
        let pool = result::device::get_mem_pool(context.cu_device())?;
        result::mem_pool::set_attribute(pool, threshold, (&raw mut bytes).cast())
    }
}

/// Multiprocessors of the GPU.
pub(crate) fn processors(device: &CudaDevice) -> Result<usize> {
    let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
    let count = device.cuda_stream().context().attribute(attribute).w()?;
    Ok(usize::try_from(count).unwrap_or(1))
}

static POISON: AtomicBool = AtomicBool::new(false);

/// Fills every output with NaN before its kernel runs, to show what a kernel forgets to write. For checks.
pub fn poison_outputs(on: bool) {
    POISON.store(on, Ordering::Relaxed);
}

/// A tensor whose values a kernel reads or, in pages, writes. It stays where it is as long as this lives.
pub(crate) struct Held<'a> {
    _storage: StorageRef<'a>,
    pub values: Typed,
}

/// The device address of a contiguous tensor.
pub(crate) fn hold(tensor: &Tensor) -> Result<Held<'_>> {
    let (storage, layout) = tensor.storage_and_layout();
    let Some((start, _)) = layout.contiguous_offsets() else { bail!("kernels take contiguous tensors") };
    let Storage::Cuda(cuda) = &*storage else { bail!("a tensor on another device") };
    let dtype = tensor.dtype();
    let at = match dtype {
        DType::F32 => address(cuda.as_cuda_slice::<f32>()?),
        DType::F16 => address(cuda.as_cuda_slice::<f16>()?),
        DType::BF16 => address(cuda.as_cuda_slice::<bf16>()?),
        DType::U8 => address(cuda.as_cuda_slice::<u8>()?),
        DType::U32 => address(cuda.as_cuda_slice::<u32>()?),
        other => bail!("kernels take no {other:?}"),
    };
    let at = at + (start * dtype.size_in_bytes()) as u64;
    Ok(Held { _storage: storage, values: Typed { at, dtype } })
}

/// As [`hold`], for a tensor of this type.
pub(crate) fn hold_as(tensor: &Tensor, dtype: DType) -> Result<Held<'_>> {
    if tensor.dtype() != dtype {
        bail!("a kernel takes {dtype:?}, not {:?}", tensor.dtype());
    }
    hold(tensor)
}

fn address<T>(slice: &CudaSlice<T>) -> u64 {
    // The second value would record an event, which one stream has no need of.
    slice.device_ptr(slice.stream()).0
}

/// A new tensor, and where its values lie. They are whatever was there before.
pub(crate) fn output(device: &CudaDevice, shape: impl Into<Shape>, dtype: DType) -> Result<(Tensor, Typed)> {
    let shape = shape.into();
    match dtype {
        DType::F32 => typed_output::<f32>(device, shape, dtype),
        DType::BF16 => typed_output::<bf16>(device, shape, dtype),
        DType::U32 => typed_output::<u32>(device, shape, dtype),
        other => bail!("kernels give no {other:?}"),
    }
}

fn typed_output<T: CudaDType + DeviceRepr>(device: &CudaDevice, shape: Shape, dtype: DType) -> Result<(Tensor, Typed)> {
    let count = shape.elem_count();
    if u32::try_from(count).is_err() {
        bail!("kernels count values in 32 bits, and {shape:?} has {count}");
    }
    // SAFETY: the kernel whose output it is writes every value. No tensor is of size 0 to the driver.
    let slice = unsafe { device.alloc::<T>(count.max(1))? };
    let at = address(&slice);
    if POISON.load(Ordering::Relaxed) {
        let stream = device.cuda_stream();
        // SAFETY: the bytes are those that were just allocated.
        unsafe { result::memset_d8_async(at, 0xff, slice.num_bytes(), stream.cu_stream()) }.w()?;
    }
    let storage = Storage::Cuda(CudaStorage::wrap_cuda_slice(slice, device.clone()));
    Ok((Tensor::from_storage(storage, shape, BackpropOp::none(), false), Typed { at, dtype }))
}

/// Runs a kernel after all that was launched before. Nothing is launched for empty tensors.
pub(crate) fn run(device: &CudaDevice, launch: &Launch) -> Result<()> {
    if launch.grid.0 == 0 || launch.grid.1 == 0 {
        return Ok(());
    }
    let (module, ptx) = source(launch.module);
    let kernel = device.get_or_load_custom_func(&launch.kernel, module, ptx)?;
    let mut builder = kernel.builder();
    for argument in &launch.arguments {
        match argument {
            Argument::Pointer(pointer) => builder.arg(pointer),
            Argument::U32(n) => builder.arg(n),
            Argument::F32(x) => builder.arg(x),
        };
    }
    let config = LaunchConfig {
        grid_dim: (launch.grid.0, launch.grid.1, 1),
        block_dim: (launch.block, 1, 1),
        shared_mem_bytes: 0,
    };
    // SAFETY: launch.rs gives each kernel the arguments that it declares (tested on the host), and those who call this hold
    // the tensors.
    unsafe { builder.launch(config) }.w()?;
    Ok(())
}

/// A module's name and its PTX.
fn source(module: Module) -> (&'static str, &'static str) {
    macro_rules! ptx {
        ($name:literal) => {
            (concat!("memlocal-", $name), include_str!(concat!(env!("OUT_DIR"), "/", $name, ".ptx")))
        };
    }
    match module {
        Module::Activation => ptx!("activation"),
        Module::Draw => ptx!("draw"),
        Module::Embedding => ptx!("embedding"),
        Module::Norm => ptx!("norm"),
        Module::Paged => ptx!("paged"),
        Module::Quantised(format) => match format {
            "q2_k" => ptx!("q2_k"),
            "q3_k" => ptx!("q3_k"),
            "q4_0" => ptx!("q4_0"),
            "q4_1" => ptx!("q4_1"),
            "q4_k" => ptx!("q4_k"),
            "q5_0" => ptx!("q5_0"),
            "q5_1" => ptx!("q5_1"),
            "q5_k" => ptx!("q5_k"),
            "q6_k" => ptx!("q6_k"),
            _ => ptx!("q8_0"),
        },
        Module::Ragged => ptx!("ragged"),
        Module::Rope => ptx!("rope"),
        Module::Rows => ptx!("rows"),
    }
}

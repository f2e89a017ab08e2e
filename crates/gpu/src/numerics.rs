//! Every kernel against its reference on the CPU: fresh random inputs, outputs filled with NaN before the kernel runs.

use anyhow::{Context, Result};
use candle_core::quantized::QTensor;
use candle_core::{DType, Device, Tensor};
use kernels::attention::{Heads, PagedSequence, Placed, Precision, Texts};
use kernels::cuda::device::poison_outputs;
use kernels::cuda::{DeviceMatrix, Kept};
use kernels::embedding::Pool;
use kernels::epilogue::Epilogue;
use kernels::matmul::{Format, Matrix};
use kernels::ops;
use kernels::rope::RopeTable;
use kernels::sample::{Adjustment, Draw, Penalties};
use kernels::weight::Weight;

use crate::report::Report;

const PART: &str = "kernel";

/// Where an operation runs, and the type in which it gives what goes into a product.
struct On<'a> {
    device: &'a Device,
    to: DType,
}

impl On<'_> {
    /// The same random numbers on every device.
    fn noise(&self, seed: u64, shape: &[usize]) -> Result<Tensor> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / 4_194_304.0 - 2.0
        };
        let values: Vec<f32> = (0..shape.iter().product()).map(|_| next()).collect();
        Ok(Tensor::from_vec(values, shape, self.device)?)
    }
}

/// Runs every check.
pub fn check(report: &mut Report, device: &Device) -> Result<()> {
    let seed = std::time::UNIX_EPOCH.elapsed()?.as_secs();
    report.measured(PART, "seed of the inputs", seed as f64, "");
    poison_outputs(true);
    rows(report, device, seed);
    products(report, device, seed);
    attention(report, device, seed);
    texts(report, device, seed);
    draws(report, device, seed);
    poison_outputs(false);
    Ok(())
}

/// Compares an operation's output on the GPU with that on the CPU.
fn compare(
    report: &mut Report,
    device: &Device,
    name: &str,
    (to, tolerance): (DType, f64),
    op: impl Fn(&On<'_>) -> Result<Tensor>,
) {
    judge(report, format!("{name}, {to:?}"), tolerance, || {
        error(&op(&On { device, to })?, &op(&On { device: &Device::Cpu, to: DType::F32 })?)
    });
}

/// What cannot be computed is wrong too, and does not keep the others from being checked.
fn judge(report: &mut Report, name: String, tolerance: f64, error: impl Fn() -> Result<f64>) {
    match error() {
        Ok(error) => report.check(PART, name, error, tolerance),
        Err(error) => report.failed(&name, &format!("{error:#}")),
    }
}

fn values(tensor: &Tensor) -> Result<Vec<f32>> {
    Ok(tensor.to_dtype(DType::F32)?.flatten_all()?.to_vec1()?)
}

/// The largest difference as a part of the largest value of its row; NaN if any value is none.
fn error(got: &Tensor, want: &Tensor) -> Result<f64> {
    anyhow::ensure!(got.dims() == want.dims(), "{:?} and not {:?}", got.dims(), want.dims());
    let width = want.dims().last().copied().unwrap_or(1).max(1);
    let (got, want) = (values(got)?, values(want)?);
    let of_row = |(got, want): (&[f32], &[f32])| {
        let largest = want.iter().fold(1e-6f32, |a, b| a.max(b.abs()));
        worst(got.iter().zip(want).map(|(a, b)| (a - b).abs() / largest))
    };
    Ok(f64::from(worst(got.chunks(width).zip(want.chunks(width)).map(of_row))))
}

/// The largest error; NaN is larger than any, and `max` would pass over it.
fn worst(errors: impl Iterator<Item = f32>) -> f32 {
    errors.fold(0f32, |worst, error| if error <= worst { worst } else { error })
}

fn rows(report: &mut Report, device: &Device, seed: u64) {
    let (f32, bf16) = ((DType::F32, 2e-6), (DType::BF16, 1.0 / 256.0));
    for (rows, width) in [(1, 3584), (33, 576), (5, 1000)] {
        for kind in [f32, bf16] {
            compare(report, device, &format!("RMSNorm {rows}x{width}"), kind, |on| {
                Ok(ops::rms_norm(&on.noise(seed, &[rows, width])?, &on.noise(seed + 1, &[width])?, 1e-6, on.to)?)
            });
            compare(report, device, &format!("residual and RMSNorm {rows}x{width}"), kind, |on| {
                let (x, delta) = (on.noise(seed, &[rows, width])?, on.noise(seed + 2, &[rows, width])?);
                let (sum, normed) = ops::add_rms_norm(&x, &delta, &on.noise(seed + 1, &[width])?, 1e-6, on.to)?;
                Ok(Tensor::cat(&[sum, normed.to_dtype(DType::F32)?], 0)?)
            });
            compare(report, device, &format!("SwiGLU {rows}x{width}"), kind, |on| {
                Ok(ops::swiglu(&on.noise(seed, &[rows, 2 * width])?, on.to)?)
            });
            compare(report, device, &format!("GeGLU {rows}x{width}"), kind, |on| {
                Ok(ops::geglu(&on.noise(seed, &[rows, 2 * width])?, on.to)?)
            });
            compare(report, device, &format!("GELU {rows}x{width}"), kind, |on| {
                Ok(ops::gelu(&on.noise(seed, &[rows, width])?, on.to)?)
            });
        }
        compare(report, device, &format!("residual and LayerNorm {rows}x{width}"), (DType::F32, 4e-6), |on| {
            let (x, delta) = (on.noise(seed, &[rows, width])?, on.noise(seed + 2, &[rows, width])?);
            let (weight, bias) = (on.noise(seed + 1, &[width])?, on.noise(seed + 3, &[width])?);
            let first = ops::layer_norm(&x, &weight, &bias, 1e-5)?;
            Ok(Tensor::cat(&[first, ops::add_layer_norm(&x, &delta, &weight, &bias, 1e-5)?], 0)?)
        });
        compare(report, device, &format!("bias {rows}x{width}"), (DType::F32, 0.0), |on| {
            Ok(ops::add(&on.noise(seed, &[rows, width])?, &on.noise(seed + 1, &[width])?)?)
        });
    }
    compare(report, device, "norm of heads", (DType::F32, 2e-6), |on| {
        let heads = Heads { queries: 6, keys: 2, dim: 128 };
        let (q, k) = (on.noise(seed + 1, &[128])?, on.noise(seed + 2, &[128])?);
        Ok(ops::norm_heads(&on.noise(seed, &[7, 10 * 128])?, &q, &k, heads, 1e-6)?)
    });
    compare(report, device, "rows by number", (DType::F32, 0.0), |on| {
        Ok(ops::pick_rows(&on.noise(seed, &[90, 300])?, &[3, 89, 0, 3])?)
    });
}

fn products(report: &mut Report, device: &Device, seed: u64) {
    let formats = [
        (Format::F32, 1e-5),
        (Format::Bf16, 0.01),
        (Format::Q4_0, 0.03),
        (Format::Q4_1, 0.03),
        (Format::Q5_0, 0.03),
        (Format::Q5_1, 0.03),
        (Format::Q8_0, 0.03),
        (Format::Q4K, 0.03),
        (Format::Q5K, 0.03),
        (Format::Q6K, 0.03),
        (Format::Q2K, 0.03),
        (Format::Q3K, 0.03),
    ];
    for (format, tolerance) in formats {
        // Whole tiles of a kernel, and what is none: as narrow as blocks allow.
        for (n, k) in [(192, 1024), (100, if format.block_len() == 256 { 768 } else { 576 })] {
            let name = |rows: usize| format!("product {rows}x{k}x{n}, {format:?}");
            let (packed, on_device) = match weights(format, (n, k), device, seed) {
                Ok(both) => both,
                Err(error) => {
                    report.failed(&name(0), &format!("{error:#}"));
                    continue;
                }
            };
            for rows in [0, 1, 3, 8, 200] {
                judge(report, name(rows), tolerance, || {
                    let x = On { device: &Device::Cpu, to: DType::F32 }.noise(seed + 9, &[200, k])?;
                    let ids: Vec<u32> = (0..rows as u32).collect();
                    let want = packed.product(&ops::pick_rows(&x, &ids)?, None, Epilogue::None)?;
                    error(
                        &on_device.product(&ops::pick_rows(&x.to_device(device)?, &ids)?, None, Epilogue::None)?,
                        &want,
                    )
                });
            }
        }
    }
}

/// The same weights for the CPU and on the GPU.
fn weights(format: Format, (n, k): (usize, usize), device: &Device, seed: u64) -> Result<(Weight, Weight)> {
    let weights = On { device: &Device::Cpu, to: DType::F32 }.noise(seed, &[n, k])?;
    let dtype = format.candle_type().with_context(|| format!("candle does not quantise to {format:?}"))?;
    let bytes = QTensor::quantize(&weights, dtype)?.data()?.into_owned();
    let kept = if format == Format::F32 { Kept::F32 } else { Kept::Stored };
    let packed = Weight::Packed(Matrix::pack(format, n, k, &bytes)?);
    Ok((packed, Weight::Device(DeviceMatrix::load(format, (n, k), &bytes, |row| row, kept, device)?)))
}

/// Sequences whose prompts are run through rotation, pages and attention in one go, some after a prefix.
fn attention(report: &mut Report, device: &Device, seed: u64) {
    for heads in [Heads { queries: 28, keys: 4, dim: 128 }, Heads { queries: 9, keys: 3, dim: 64 }] {
        compare(report, device, &format!("turned queries {heads:?}"), (DType::F32, 2e-6), |on| {
            Ok(attend(on, heads, None, DType::F16, seed)?.0)
        });
        for window in [None, Some(50)] {
            for (pages, to, tolerance) in [
                (DType::F16, DType::F32, 1.0 / 256.0),
                (DType::F16, DType::BF16, 1.0 / 128.0),
                (DType::BF16, DType::F32, 1.0 / 64.0),
                (DType::U8, DType::F32, 1.0 / 256.0),
            ] {
                let name = format!("attention {heads:?} window {window:?} over {pages:?} pages");
                compare(report, device, &name, (to, tolerance), |on| Ok(attend(on, heads, window, pages, seed)?.1));
            }
        }
    }
    for (heads, texts) in [
        (Heads { queries: 16, keys: 16, dim: 64 }, vec![0..128, 128..129, 129..700]),
        (Heads { queries: 12, keys: 12, dim: 32 }, vec![0..33, 33..100]),
    ] {
        for kind in [(DType::F32, 1.0 / 256.0), (DType::BF16, 1.0 / 128.0)] {
            compare(report, device, &format!("attention of texts {heads:?}"), kind, |on| {
                let rows = texts.last().map_or(0, |text| text.end);
                let qkv = on.noise(seed, &[rows, 3 * heads.query_width()])?;
                Ok(ops::ragged_attention(&qkv, heads, Precision::Float, &Texts::new(texts.clone()), on.to)?)
            });
        }
    }
}

/// Prompts of three sequences, then a step that decodes two of them, which share a prefix, beside a chunk of the third: the
/// turned queries and the attention of both.
fn attend(on: &On<'_>, heads: Heads, window: Option<usize>, precision: DType, seed: u64) -> Result<(Tensor, Tensor)> {
    const PAGES: usize = 64;
    let frequencies: Vec<f32> = (0..heads.dim / 2).map(|i| 1e4f32.powf(-(i as f32) / 64.0)).collect();
    let table = RopeTable::new(&frequencies, 4096, 1.0);
    // Whatever no token has written is no number. Pages in 8 bits are rounded alike on both.
    let pages = if precision == DType::U8 {
        Tensor::full(u8::MAX, (PAGES, heads.page().quantised_len()), on.device)?
    } else {
        let pages = Tensor::full(f32::NAN, (PAGES, heads.page().len()), &Device::Cpu)?;
        pages.to_dtype(if on.device.is_cpu() { DType::F32 } else { precision })?.to_device(on.device)?
    };
    let shared: Vec<u32> = (0..6).map(|page| page * 5 + 2).collect();
    let with = |own: &[u32]| shared.iter().chain(own).copied().collect::<Vec<u32>>();
    let lists = [with(&[1, 60]), with(&[3]), (40..56).rev().collect::<Vec<u32>>()];
    let width = heads.query_width() + 2 * heads.key_width();
    let (mut queries, mut attended) = (Vec::new(), Vec::new());
    // (tokens before, tokens) of the three, in two steps; the prefix is written once.
    for (step, spans) in [[(0, 200), (192, 17), (0, 300)], [(200, 1), (209, 2), (300, 90)]].into_iter().enumerate() {
        let (mut positions, mut slots, mut sequences, mut start) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for ((past, tokens), list) in spans.into_iter().zip(&lists) {
            for position in past..past + tokens {
                positions.push(position as u32);
                slots.push(list[position / 32] * 32 + (position % 32) as u32);
            }
            sequences.push(PagedSequence { rows: start..start + tokens, past, pages: list });
            start += tokens;
        }
        let qkv = on.noise(seed + step as u64, &[start, width])?;
        let rows = Placed::new(&positions, &slots, &sequences);
        let q = ops::rotate_and_store(&qkv, &pages, heads, &table, &rows)?;
        attended.push(ops::paged_attention(&q, &pages, heads, window, &rows, on.to)?.to_dtype(DType::F32)?);
        queries.push(q);
    }
    Ok((Tensor::cat(&queries, 0)?, Tensor::cat(&attended, 0)?))
}

fn texts(report: &mut Report, device: &Device, seed: u64) {
    let texts = [0..40, 40..41, 41..700];
    for pool in [Pool::First, Pool::Mean] {
        compare(report, device, &format!("pooling {pool:?}"), (DType::F32, 4e-6), |on| {
            Ok(ops::pool_unit(&on.noise(seed, &[700, 1024])?, &texts, pool)?)
        });
    }
    compare(report, device, "unit rows", (DType::F32, 4e-6), |on| Ok(ops::unit_rows(&on.noise(seed, &[70, 1024])?)?));
    let ids: Vec<u32> = (0..700).map(|i| i * i % 97).collect();
    compare(report, device, "weights of words", (DType::F32, 0.0), |on| {
        Ok(ops::sparse_max(&on.noise(seed, &[700])?, &ids, &texts)?)
    });
}

/// Tokens drawn with every option against those of the CPU. Sums differ in their order, so one of 10^6 may be another.
fn draws(report: &mut Report, device: &Device, seed: u64) {
    const VOCABULARY: usize = 152_064;
    let mask: Vec<u32> = (0..VOCABULARY as u32 / 32).map(|word| word.wrapping_mul(0x9e37_79b9)).collect();
    let adjustments = [Adjustment { token: 70_000, count: 2, seen: true, bias: 3.0 }];
    let penalties = Penalties { frequency: 0.5, presence: 0.25, repetition: 1.3 };
    judge(report, "drawn tokens".into(), 0.0, || {
        let logits = On { device: &Device::Cpu, to: DType::F32 }.noise(seed, &[32, VOCABULARY])?;
        let logits = (logits * 3.0)?;
        let request = |row: usize| {
            let sampled = Draw { temperature: 0.3, seed: seed + row as u64, position: 7, ..Draw::GREEDY };
            let draw = match row % 4 {
                0 => sampled,
                1 => Draw { mask: Some(&mask), temperature: 0.8, top_p: 0.95, ..sampled },
                2 => Draw { adjustments: &adjustments, penalties, top_k: 40, min_p: 0.05, ..sampled },
                _ => Draw { mask: Some(&mask), ..Draw::GREEDY },
            };
            (row, draw)
        };
        let requests: Vec<(usize, Draw<'_>)> = (0..32).map(request).collect();
        let got = ops::draw(&logits.to_device(device)?, &requests)?;
        let want = ops::draw(&logits, &requests)?;
        Ok(got.iter().zip(&want).filter(|(got, want)| got != want).count() as f64)
    });
}

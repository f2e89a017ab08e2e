use kernels::cpu::body;
use kernels::matmul::{Format, Matrix};
use std::time::Instant;
fn main() {
    if let Some(t) = std::env::args().nth(1) {
        kernels::pool::set_threads(t.parse().unwrap());
    }
    for (format, n, k) in [
        (Format::Q4_1, 1536, 576),
        (Format::Q4_1, 576, 1536),
        (Format::Q8_0, 4864, 896),
        (Format::Q4K, 8960, 1536),
        (Format::Q6K, 1536, 8960),
        (Format::F32, 1536, 384),
        (Format::Bf16, 1536, 1536),
    ] {
        let bytes = vec![0x11u8; n * format.row_bytes(k).unwrap()];
        let t = Instant::now();
        let w = Matrix::pack(format, n, k, &bytes).unwrap();
        let pack = t.elapsed();
        for m in [1usize, 4, 16, 512] {
            let x = vec![0.5f32; m * k];
            let mut out = vec![0f32; m * n];
            w.multiply(body(), &x, &mut out);
            let reps = (2_000_000_000 / (m * n * k)).clamp(3, 2000);
            let t = Instant::now();
            for _ in 0..reps {
                w.multiply(body(), &x, &mut out);
            }
            let s = t.elapsed().as_secs_f64() / reps as f64;
            println!(
                "{format:?} {m}x{k}x{n}: {:.1} us  {:.0} GOPS  {:.1} GB/s (pack {pack:?})",
                s * 1e6,
                2.0 * (m * n * k) as f64 / s / 1e9,
                w.bytes() as f64 / s / 1e9
            );
        }
    }
}

use candle_core::Device;
use models::{Batch, KvCache, KvPrecision, LanguageModel, PAGE_TOKENS, PagedSequence};
use std::time::Instant;
fn main() {
    let path = std::env::args().nth(1).unwrap();
    let model = LanguageModel::load(path.as_ref(), &Device::Cpu).unwrap();
    for (past, n, reps) in (if std::env::args().nth(2).is_some() {
        vec![(0usize, 512usize, 8usize)]
    } else {
        vec![(0usize, 512usize, 5usize), (512, 1, 40), (2048, 1, 40), (0, 2048, 2)]
    }) {
        let total = past + n;
        let pages: Vec<u32> = (0..total.div_ceil(PAGE_TOKENS) as u32).collect();
        let cache = KvCache::new(model.spec(), pages.len(), KvPrecision::F16, &Device::Cpu).unwrap();
        let positions: Vec<u32> = (past as u32..total as u32).collect();
        let slots = positions.clone();
        let tokens: Vec<u32> = positions.iter().map(|p| 100 + p % 1000).collect();
        let sequences = [PagedSequence { rows: 0..n, past, pages: &pages }];
        let batch = Batch {
            tokens: &tokens,
            positions: &positions,
            slots: &slots,
            sequences: &sequences,
            logit_rows: &[n as u32 - 1],
        };
        model.network.forward(batch, &cache).unwrap();
        let mut best = f64::MAX;
        let mut sum = 0.0;
        for _ in 0..reps {
            let t = Instant::now();
            model.network.forward(batch, &cache).unwrap();
            let s = t.elapsed().as_secs_f64();
            best = best.min(s);
            sum += s;
        }
        println!(
            "past {past} n {n}: best {:.2} ms mean {:.2} ms, {:.0} tok/s",
            best * 1e3,
            sum / reps as f64 * 1e3,
            n as f64 / (sum / reps as f64)
        );
    }
}

//! The memory of saving an adapter: its weights are written in pieces.
//!
//! One test in its own process, whose peak memory it measures.

use models::adapter::{Adapter, LowRank, Projection, Saved, SavedPrecision};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const RANK: usize = 4;

/// Rows and columns of a module, whose matrices do not fill their last pieces.
const WIDTH: usize = 200_003;

#[test]
fn a_saved_adapter_takes_no_memory_of_its_size() {
    let folder = tempfile::tempdir().unwrap();
    let values = |of: usize| (0..RANK * WIDTH).map(|at| (at % 199 * of) as f32).collect::<Vec<f32>>();
    let module = |at: usize| LowRank { rank: RANK, scale: 2.0, a: values(at), b: values(at + 7) };
    let modules = (1..4).map(|layer| ((layer, Projection::Query), module(layer)));
    let adapter = Adapter { modules: modules.collect() };
    for (precision, width) in [(SavedPrecision::F32, 4), (SavedPrecision::F16, 2)] {
        let how = Saved { base: "tiny", rank: RANK, alpha: 8.0, targets: &[Projection::Query], precision };
        ALLOCATOR.reset_peak_usage();
        let before = ALLOCATOR.current_usage();
        adapter.save(folder.path(), &how).unwrap();
        let taken = ALLOCATOR.peak_usage() - before;
        let bytes = 3 * 2 * RANK * WIDTH * width;
        assert!(taken < bytes / 8, "{taken} bytes were taken to write {bytes}");
        // The numbers are whole and below 2^11, which f16 holds exactly.
        assert!(Adapter::open(folder.path()).unwrap() == adapter, "{precision:?}");
    }
}

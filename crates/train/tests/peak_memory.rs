//! The memory of saving a checkpoint and an adapter: both are written in pieces.
//!
//! A program of its own, whose peak memory one test at a time measures.

use std::sync::Mutex;

use models::adapter::{Adapter, LowRank, Projection, Saved, SavedPrecision};
use peak_alloc::PeakAlloc;
use train::optimiser::Parameter;
use train::state::{self, Position};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Held by the test that runs.
static TURN: Mutex<()> = Mutex::new(());

/// The most memory that `save` takes at a time, in bytes.
fn taken(save: impl FnOnce()) -> usize {
    ALLOCATOR.reset_peak_usage();
    let before = ALLOCATOR.current_usage();
    save();
    ALLOCATOR.peak_usage() - before
}

#[test]
fn a_checkpoint_takes_no_memory_of_its_size() {
    // Weights of each of three parameters, which do not fill their last pieces.
    const WEIGHTS: usize = 700_001;
    let _turn = TURN.lock();
    let folder = tempfile::tempdir().unwrap();
    let values = |of: usize| (0..WEIGHTS).map(|at| (at * of) as f32).collect::<Vec<f32>>();
    let parameter = |at: usize| Parameter { value: values(at), first: values(at + 7), second: values(at + 9) };
    let parameters: Vec<Parameter> = (1..4).map(parameter).collect();
    let settings = vec![("seed".to_owned(), "1".to_owned())];
    let position = Position { step: 3, tokens: 9, seconds: 1.5, settings, time: None };

    let taken = taken(|| state::save(folder.path(), &position, &parameters).unwrap());

    let bytes = std::fs::metadata(folder.path().join(state::FILE)).unwrap().len() as usize;
    assert!(bytes > 3 * 3 * 4 * WEIGHTS && taken < bytes / 8, "{taken} bytes were taken to write {bytes}");
    assert!(state::load(folder.path(), &parameters).unwrap() == Some((position, parameters)));
}

#[test]
fn a_saved_adapter_takes_no_memory_of_its_size() {
    const RANK: usize = 4;
    // Rows and columns of a module, whose matrices do not fill their last pieces.
    const WIDTH: usize = 200_003;
    let _turn = TURN.lock();
    let folder = tempfile::tempdir().unwrap();
    let values = |of: usize| (0..RANK * WIDTH).map(|at| (at % 199 * of) as f32).collect::<Vec<f32>>();
    let module = |at: usize| LowRank { rank: RANK, scale: 2.0, a: values(at), b: values(at + 7) };
    let modules = (1..4).map(|layer| ((layer, Projection::Query), module(layer)));
    let adapter = Adapter { modules: modules.collect() };
    for (precision, width) in [(SavedPrecision::F32, 4), (SavedPrecision::F16, 2)] {
        let how = Saved { base: "tiny", rank: RANK, alpha: 8.0, targets: &[Projection::Query], precision };
        let taken = taken(|| adapter.save(folder.path(), &how).unwrap());
        let bytes = 3 * 2 * RANK * WIDTH * width;
        assert!(taken < bytes / 8, "{taken} bytes were taken to write {bytes}");
        // The numbers are whole and below 2^11, which f16 holds exactly.
        assert!(Adapter::open(folder.path()).unwrap() == adapter, "{precision:?}");
    }
}

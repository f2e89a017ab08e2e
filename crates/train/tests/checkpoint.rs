//! The memory of a checkpoint: it is written in pieces.
//!
//! One test in its own process, whose peak memory it measures.

use peak_alloc::PeakAlloc;
use train::optimiser::Parameter;
use train::state::{self, Position};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Weights of each of three parameters, which do not fill their last pieces.
const WEIGHTS: usize = 700_001;

#[test]
fn a_checkpoint_takes_no_memory_of_its_size() {
    let folder = tempfile::tempdir().unwrap();
    let values = |of: usize| (0..WEIGHTS).map(|at| (at * of) as f32).collect::<Vec<f32>>();
    let parameter = |at: usize| Parameter { value: values(at), first: values(at + 7), second: values(at + 9) };
    let parameters: Vec<Parameter> = (1..4).map(parameter).collect();
    let settings = vec![("seed".to_owned(), "1".to_owned())];
    let position = Position { step: 3, tokens: 9, seconds: 1.5, settings, time: None };

    ALLOCATOR.reset_peak_usage();
    let before = ALLOCATOR.current_usage();
    state::save(folder.path(), &position, &parameters).unwrap();
    let taken = ALLOCATOR.peak_usage() - before;

    let bytes = std::fs::metadata(folder.path().join(state::FILE)).unwrap().len() as usize;
    assert!(bytes > 3 * 3 * 4 * WEIGHTS && taken < bytes / 8, "{taken} bytes were taken to write {bytes}");
    assert!(state::load(folder.path(), &parameters).unwrap() == Some((position, parameters)));
}

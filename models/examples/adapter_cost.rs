//! What adapters cost in decoding: steps of eight sequences without an adapter, with one, and with eight different ones, in turns.
//!
//!     cargo run --release -p models --example adapter_cost -- MODEL [ROUNDS]
//!
//! Prints, for each set of projections and precision of the adapters (rank 16, random values), the median and the least time of a step.

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use candle_core::Device;
use models::adapter::{Adapter, LowRank, Projection};
use models::{
    AdaptedRows, Batch, Checkpoint, Decoder, DecoderSpec, KvCache, KvPrecision, LoadOptions, PAGE_TOKENS, PagedSequence,
};

const SEQUENCES: usize = 8;
const RANK: usize = 16;
/// Tokens that each sequence has already.
const PAST: usize = 127;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let model = PathBuf::from(arguments.next().ok_or("usage: adapter_cost MODEL [ROUNDS]")?);
    let rounds: usize = arguments.next().map_or(Ok(40), |rounds| rounds.parse())?;
    let Checkpoint { spec, weights, .. } = Checkpoint::open(&model, LoadOptions::default())?;
    let mut network = Decoder::load(&spec, &weights, spec.context, &Device::Cpu)?;
    let cache = KvCache::new(network.spec(), SEQUENCES * 4, KvPrecision::F16, &Device::Cpu)?;
    println!("| projections | kept as | adapters | MB each | median ms | least ms | median cost | least cost |");
    println!("|---|---|---:|---:|---:|---:|---:|---:|");
    let query_value = [Projection::Query, Projection::Value];
    for (projections, set) in [("query, value", &query_value[..]), ("all", &Projection::ALL)] {
        for precision in ["f16", "f32"] {
            let mut load = |seed: usize| {
                let adapter = random(network.spec(), set, precision == "f16", seed);
                network.adapt(&adapter)
            };
            let adapters = (0..SEQUENCES).map(&mut load).collect::<models::Result<Vec<usize>>>()?;
            let one = vec![AdaptedRows { adapter: adapters[0], rows: (0..SEQUENCES as u32).collect() }];
            let eight = (0..).zip(&adapters).map(|(row, adapter)| AdaptedRows { adapter: *adapter, rows: vec![row] });
            let eight = eight.collect();
            let variants = [Vec::new(), one, eight];
            let mut times = [const { Vec::new() }; 3];
            for round in 0..rounds + 2 {
                for (adapted, times) in variants.iter().zip(&mut times) {
                    let seconds = step(&network, &cache, adapted)?;
                    // The first rounds fill caches.
                    if round >= 2 {
                        times.push(seconds * 1e3);
                    }
                }
            }
            times.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
            let (median, least) = (|times: &[f64]| times[times.len() / 2], |times: &[f64]| times[0]);
            let megabytes = network.adapter_bytes(adapters[0]) as f64 / 1e6;
            for (count, own) in [0, 1, SEQUENCES].into_iter().zip(&times) {
                let cost = |of: fn(&[f64]) -> f64| 100.0 * (of(own) / of(&times[0]) - 1.0);
                let (median_ms, least_ms) = (median(own), least(own));
                println!(
                    "| {projections} | {precision} | {count} | {megabytes:.1} | {median_ms:.2} | {least_ms:.2} | {:.1} % | {:.1} % |",
                    cost(median),
                    cost(least)
                );
            }
        }
    }
    Ok(())
}

/// Seconds that one step of all sequences takes.
fn step(network: &Decoder, cache: &KvCache, adapted: &[AdaptedRows]) -> models::Result<f64> {
    let rows: Vec<u32> = (0..SEQUENCES as u32).collect();
    let tokens: Vec<u32> = rows.iter().map(|row| 100 + row).collect();
    let positions = [PAST as u32; SEQUENCES];
    let pages: Vec<Vec<u32>> = rows.iter().map(|row| (4 * row..4 * row + 4).collect()).collect();
    let slot = |pages: &Vec<u32>| pages[PAST / PAGE_TOKENS] * PAGE_TOKENS as u32 + (PAST % PAGE_TOKENS) as u32;
    let slots: Vec<u32> = pages.iter().map(slot).collect();
    let sequence = |(row, pages)| PagedSequence { rows: row..row + 1, past: PAST, pages };
    let sequences: Vec<PagedSequence<'_>> = (0..).zip(pages.iter().map(Vec::as_slice)).map(sequence).collect();
    let (tokens, positions, slots, sequences) = (&tokens[..], &positions[..], &slots[..], &sequences[..]);
    let batch = Batch { tokens, positions, slots, sequences, logit_rows: &rows, wanted: &[] };
    let began = Instant::now();
    network.forward_adapted(batch, adapted, cache)?;
    Ok(began.elapsed().as_secs_f64())
}

/// An adapter of small random values, exact in f16 or not.
fn random(spec: &DecoderSpec, projections: &[Projection], half: bool, seed: usize) -> Adapter {
    let mut state = seed as u32 + 1;
    let mut value = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let value = (f64::from(state) / f64::from(u32::MAX) - 0.5) as f32 * 0.02;
        if half { half::f16::from_f32(value).to_f32() } else { value }
    };
    let mut adapter = Adapter::default();
    for layer in 0..spec.layers {
        for projection in projections {
            let (rows, cols) = projection.shape(spec);
            let (a, b) = ((0..RANK * cols).map(|_| value()).collect(), (0..rows * RANK).map(|_| value()).collect());
            adapter.modules.insert((layer, *projection), LowRank { rank: RANK, scale: 2.0, a, b });
        }
    }
    adapter
}

//! Packed weights beside a checkpoint: used when they are what the checkpoint would be packed to, otherwise made again.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use candle_core::Device;
use models::{
    Batch, Decoder, KvCache, KvPrecision, PAGE_TOKENS, PagedSequence, Precision, Quantisation, Spec, Weights,
};

/// A copy of a tiny checkpoint whose matrices have whole blocks, alone in its folder.
fn checkpoint(name: &str) -> PathBuf {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/decoder/llama");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("packed-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    for file in ["config.json", "model.safetensors"] {
        fs::copy(golden.join(file), folder.join(file)).unwrap();
    }
    folder
}

/// Loads as a program does; whether packed weights were there, and the logits after some tokens.
fn start(folder: &Path, precision: Precision) -> (bool, Vec<f32>) {
    let config = serde_json::from_slice(&fs::read(folder.join("config.json")).unwrap()).unwrap();
    let Spec::Decoder(spec) = Spec::from_config(&config).unwrap() else { panic!("no decoder") };
    let weights = Weights::open_folder(folder).unwrap().in_precision(precision).with_packed(&Device::Cpu).unwrap();
    let decoder = Decoder::load(&spec, &weights, spec.context, &Device::Cpu).unwrap();
    let were_packed = weights.are_packed();
    weights.keep_packed();
    let cache = KvCache::new(decoder.spec(), 1, KvPrecision::F32, &Device::Cpu).unwrap();
    let at: Vec<u32> = (0..PAGE_TOKENS as u32 / 2).collect();
    let sequences = [PagedSequence { rows: 0..at.len(), past: 0, pages: &[0] }];
    let (logit_rows, tokens) = ([at.len() as u32 - 1], &at);
    let batch =
        Batch { tokens, positions: &at, slots: &at, sequences: &sequences, logit_rows: &logit_rows, wanted: &[] };
    (were_packed, decoder.forward(batch, &cache).unwrap().logits.flatten_all().unwrap().to_vec1::<f32>().unwrap())
}

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn the_second_start_maps_what_the_first_has_packed() {
    let folder = checkpoint("twice");
    let (first, logits) = start(&folder, Precision::Stored);
    assert!(!first);
    assert_eq!(names(&folder), ["config.json", "model.safetensors", "weights.packed"]);
    assert_eq!(start(&folder, Precision::Stored), (true, logits));
}

#[test]
fn every_precision_has_a_file_of_its_own() {
    let folder = checkpoint("precisions");
    let (_, stored) = start(&folder, Precision::Stored);
    let (first, smaller) = start(&folder, Precision::Quantised(Quantisation::Q8_0));
    assert!(!first && stored != smaller);
    assert_eq!(start(&folder, Precision::Stored), (true, stored));
    assert_eq!(start(&folder, Precision::Quantised(Quantisation::Q8_0)), (true, smaller));
    let (packed, _) = start(&folder, Precision::F32);
    assert!(!packed && !names(&folder).iter().any(|name| name.contains("f32")));
}

#[test]
fn a_damaged_file_is_made_again() {
    let folder = checkpoint("damaged");
    let (_, logits) = start(&folder, Precision::Stored);
    let path = folder.join("weights.packed");
    let sound = fs::read(&path).unwrap();
    let flips = (0..sound.len()).filter(|at| at % (sound.len() / 60) == 0 || *at < 16 || *at + 4 > sound.len());
    for at in flips {
        let mut damaged = sound.clone();
        damaged[at] ^= 0x10;
        fs::write(&path, damaged).unwrap();
        assert_eq!(start(&folder, Precision::Stored), (false, logits.clone()), "byte {at}");
        assert!(fs::read(&path).unwrap() == sound, "byte {at} was not mended");
    }
    for len in [0, 1, 40, sound.len() / 2, sound.len() - 1] {
        fs::write(&path, &sound[..len]).unwrap();
        assert_eq!(start(&folder, Precision::Stored), (false, logits.clone()), "cut to {len}");
    }
}

#[test]
fn weights_that_have_changed_are_packed_anew() {
    let folder = checkpoint("changed");
    let (_, before) = start(&folder, Precision::Stored);
    let path = folder.join("model.safetensors");
    let mut weights = fs::read(&path).unwrap();
    let head = u64::from_le_bytes(weights[..8].try_into().unwrap()) as usize + 8;
    // One value of every sixteen bytes, so that no tensor stays as it was.
    weights[head..].chunks_mut(16).for_each(|bytes| bytes[0] ^= 0x7f);
    fs::write(&path, weights).unwrap();
    let (were_packed, after) = start(&folder, Precision::Stored);
    assert!(!were_packed && before != after);
    assert_eq!(start(&folder, Precision::Stored), (true, after));
}

#[test]
fn weights_that_cannot_be_packed_leave_no_temporary_file() {
    let folder = checkpoint("unwritable");
    fs::create_dir(folder.join("weights.packed")).unwrap();
    fs::write(folder.join("weights.packed/in-the-way"), "x").unwrap();
    let (were_packed, logits) = start(&folder, Precision::Stored);
    assert!(!were_packed);
    assert_eq!(start(&folder, Precision::Stored), (false, logits));
    assert_eq!(names(&folder), ["config.json", "model.safetensors", "weights.packed"]);
}

#[test]
fn what_a_killed_writer_has_left_is_taken_away_and_what_another_writes_is_not() {
    let folder = checkpoint("killed");
    let hours_ago = SystemTime::now() - Duration::from_hours(2);
    fs::write(folder.join("weights.1-0.partial"), "half").unwrap();
    fs::File::options().write(true).open(folder.join("weights.1-0.partial")).unwrap().set_modified(hours_ago).unwrap();
    fs::write(folder.join("weights.2-0.partial"), "half").unwrap();
    start(&folder, Precision::Stored);
    assert_eq!(names(&folder), ["config.json", "model.safetensors", "weights.2-0.partial", "weights.packed"]);
}

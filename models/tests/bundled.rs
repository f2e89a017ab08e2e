//! Checkpoints in a bundle give the numbers of the same files on the disk, from packed weights that are mapped there.

use std::fs;
use std::path::{Path, PathBuf};

use bundle::{Bundle, Readers, Writer};
use candle_core::Device;
use models::{
    Batch, Decoder, KvCache, KvPrecision, LanguageModel, ModelError, PAGE_TOKENS, PagedSequence, Spec, Weights,
    files_of, packed_beside,
};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/decoder/llama")
}

/// Whether packed weights were there, and the logits after some tokens.
fn start(folder: &Path) -> Result<(bool, Vec<f32>), ModelError> {
    let config = serde_json::from_slice(&fs::read(golden().join("config.json")).unwrap()).unwrap();
    let Spec::Decoder(spec) = Spec::from_config(&config).unwrap() else { panic!("no decoder") };
    let weights = Weights::open_folder(folder)?.with_packed(&Device::Cpu)?;
    let decoder = Decoder::load(&spec, &weights, spec.context, &Device::Cpu)?;
    let cache = KvCache::new(decoder.spec(), 1, KvPrecision::F32, &Device::Cpu)?;
    let at: Vec<u32> = (0..PAGE_TOKENS as u32 / 2).collect();
    let sequences = [PagedSequence { rows: 0..at.len(), past: 0, pages: &[0] }];
    let (logit_rows, tokens) = ([at.len() as u32 - 1], &at);
    let batch =
        Batch { tokens, positions: &at, slots: &at, sequences: &sequences, logit_rows: &logit_rows, wanted: &[] };
    Ok((weights.are_packed(), decoder.forward(batch, &cache)?.logits.flatten_all()?.to_vec1::<f32>()?))
}

#[test]
fn a_checkpoint_in_a_bundle_is_mapped_packed_and_checked() {
    let place = tempfile::tempdir().unwrap();
    let office = place.path().join("office");
    let mut writer = Writer::create(&office, "").unwrap();
    for path in files_of(&golden()).unwrap() {
        writer.add(&format!("models/m/{}", path.file_name().unwrap().display()), &path, "").unwrap();
    }
    let (_, logits) = start(&golden()).unwrap();
    writer.finish(Vec::new(), Readers::All).unwrap();
    // Bundles stay open under their path, so each state has its own.
    let (unpacked, finished) = (place.path().join("unpacked"), place.path().join("finished"));
    fs::copy(&office, &unpacked).unwrap();
    assert_eq!(start(&unpacked.join("models/m")).unwrap(), (false, logits.clone()));

    let packed = place.path().join("packed");
    LanguageModel::pack(&unpacked.join("models/m"), &packed).unwrap();
    let mut writer = Writer::append(&office).unwrap();
    let name = packed_beside(&unpacked.join("models/m"));
    writer.add(name.strip_prefix(&unpacked).unwrap().to_str().unwrap(), &packed, "").unwrap();
    let bundle = writer.finish(Vec::new(), Readers::All).unwrap();
    fs::copy(&office, &finished).unwrap();
    assert_eq!(start(&finished.join("models/m")).unwrap(), (true, logits));

    for name in ["models/m/model.safetensors", "models/m/weights.packed"] {
        let entry = bundle.find(name).unwrap();
        let mut bytes = fs::read(&office).unwrap();
        bytes[usize::try_from(entry.offset + entry.bytes / 2).unwrap()] ^= 1;
        let altered = place.path().join(name.replace('/', "-"));
        fs::write(&altered, bytes).unwrap();
        let error = start(&altered.join("models/m")).unwrap_err().to_string();
        assert_eq!(error, format!("the bundle {} was altered: {name}", altered.display()));
        assert!(!Bundle::open(&altered).unwrap().is_sound(entry).unwrap());
    }
}

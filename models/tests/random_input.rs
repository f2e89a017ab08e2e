//! Every reader of files under random damage: it reads them or says what is wrong, without panic and within its memory.
//!
//! `test_support::fuzz` says how often each file is damaged. A failure names the seed, and what it found belongs below as a
//! test of its own. A program of its own, whose address space it measures.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use candle_core::quantized::gguf_file::{self, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use models::adapter::Adapter;
use models::manifest::Manifest;
use models::{Decoder, EncoderTokenizer, Spec, Tokenizer, Weights};
use test_support::fuzz;

/// Address space that reading one damaged file may add.
const MAX_GROWTH_KIB: u64 = 1 << 20;

fn golden(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(path)
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next()).unwrap() % limit.max(1)
    }

    /// One to four changes, rather at the beginning than at the end, where the numbers are.
    fn damage(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        const NUMBERS: [u64; 8] =
            [0, 1, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff, 0x7fff_ffff_ffff_ffff, 0xffff_ffff_ffff_ffff];
        for _ in 0..=self.below(4) {
            let reach = if self.below(2) == 0 { bytes.len().min(400) } else { bytes.len() };
            let at = self.below(reach);
            match self.below(7) {
                0 => bytes.truncate(at),
                1 => drop(bytes.drain(at..(at + self.below(16)).min(bytes.len()))),
                2 => {
                    let piece = bytes[at..(at + self.below(64)).min(bytes.len())].to_vec();
                    bytes.splice(at..at, piece);
                }
                3 => {
                    let number = NUMBERS[self.below(NUMBERS.len())].to_le_bytes();
                    let width = [1, 2, 4, 8][self.below(4)];
                    bytes.iter_mut().skip(at).zip(&number[..width]).for_each(|(byte, new)| *byte = *new);
                }
                4 => {
                    // A digit of JSON.
                    let digits: Vec<usize> =
                        (0..reach.min(bytes.len())).filter(|at| bytes[*at].is_ascii_digit()).collect();
                    if let Some(at) = digits.get(self.below(digits.len())) {
                        bytes.splice(*at..=*at, *b"99999999999");
                    }
                }
                _ => {
                    let new = u8::try_from(self.below(256)).unwrap();
                    bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = new);
                }
            }
        }
        bytes
    }
}

/// The largest address space that this process has had; none where the system does not tell.
fn peak_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmPeak:"))?.split_whitespace().next()?.parse().ok()
}

/// Reads a file undamaged, and then damaged in many ways; `read` returns whether it was read.
fn torture(kind: &str, path: &Path, read: impl Fn() -> bool) {
    let sound = fs::read(path).unwrap();
    assert!(read(), "the sound {kind} is read");
    let mut rounds = fuzz::rounds(100);
    let before = peak_kib();
    let mut readable = 0_u64;
    for seed in &mut rounds {
        fs::write(path, Random(seed).damage(sound.clone())).unwrap();
        let was_read = catch_unwind(AssertUnwindSafe(&read));
        assert!(was_read.is_ok(), "{kind} panics with seed {seed}");
        readable += u64::from(was_read.unwrap_or(false));
        if let (Some(before), Some(now)) = (before, peak_kib()) {
            assert!(now < before + MAX_GROWTH_KIB, "{kind} takes {} MiB with seed {seed}", (now - before) / 1024);
        }
    }
    println!("{kind}: {readable} of {} were read", rounds.done());
}

/// A GGUF file of a tiny network and its tokenizer.
fn write_gguf(path: &Path) {
    let tokens: Vec<Value> = ["a", "b", "ab", "<|end|>"].map(|token| Value::String(token.into())).into();
    let metadata = [
        ("general.architecture", Value::String("llama".into())),
        ("general.alignment", Value::U32(32)),
        ("llama.block_count", Value::U32(1)),
        ("llama.embedding_length", Value::U32(32)),
        ("llama.feed_forward_length", Value::U32(32)),
        ("llama.context_length", Value::U32(64)),
        ("llama.attention.head_count", Value::U32(2)),
        ("llama.attention.head_count_kv", Value::U32(1)),
        ("llama.attention.layer_norm_rms_epsilon", Value::F32(1e-6)),
        ("llama.rope.freq_base", Value::F32(1e4)),
        ("tokenizer.ggml.model", Value::String("gpt2".into())),
        ("tokenizer.ggml.pre", Value::String("smollm".into())),
        ("tokenizer.ggml.tokens", Value::Array(tokens)),
        ("tokenizer.ggml.token_type", Value::Array([1, 1, 1, 3].map(Value::I32).into())),
        ("tokenizer.ggml.merges", Value::Array(vec![Value::String("a b".into())])),
    ];
    let tensor = |shape: &[usize], format| {
        let values = Tensor::ones(shape, candle_core::DType::F32, &Device::Cpu).unwrap();
        QTensor::quantize(&values, format).unwrap()
    };
    let tensors = [
        ("token_embd.weight", tensor(&[4, 32], GgmlDType::Q8_0)),
        ("output_norm.weight", tensor(&[32], GgmlDType::F32)),
        ("blk.0.attn_norm.weight", tensor(&[32], GgmlDType::F32)),
        ("blk.0.attn_q.weight", tensor(&[32, 32], GgmlDType::Q4_0)),
        ("blk.0.attn_k.weight", tensor(&[16, 32], GgmlDType::F16)),
        ("blk.0.attn_v.weight", tensor(&[16, 32], GgmlDType::F32)),
        ("blk.0.attn_output.weight", tensor(&[32, 32], GgmlDType::F32)),
        ("blk.0.ffn_norm.weight", tensor(&[32], GgmlDType::F32)),
        ("blk.0.ffn_gate.weight", tensor(&[32, 32], GgmlDType::F32)),
        ("blk.0.ffn_up.weight", tensor(&[32, 32], GgmlDType::F32)),
        ("blk.0.ffn_down.weight", tensor(&[32, 32], GgmlDType::F32)),
    ];
    let metadata: Vec<(&str, &Value)> = metadata.iter().map(|(key, value)| (*key, value)).collect();
    let tensors: Vec<(&str, &QTensor)> = tensors.iter().map(|(name, tensor)| (*name, tensor)).collect();
    gguf_file::write(&mut fs::File::create(path).unwrap(), &metadata, &tensors).unwrap();
}

fn read_gguf(path: &Path) -> bool {
    let Ok((weights, metadata)) = Weights::open_gguf(path) else { return false };
    let tokenizer = Tokenizer::from_gguf(&metadata).and_then(|tokenizer| tokenizer.encode("abba <|end|>"));
    let Ok(Spec::Decoder(spec)) = Spec::from_gguf(&metadata, &weights) else { return false };
    let decoder = Decoder::load(&spec, &weights, spec.context.min(64), &Device::Cpu);
    decoder.is_ok() && tokenizer.is_ok()
}

#[test]
fn damaged_gguf_files_are_read_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    write_gguf(&path);
    torture("a GGUF file", &path, || read_gguf(&path));
}

#[test]
fn damaged_pieces_are_read_or_refused() {
    let pieces = [
        ("<unk>", 2),
        ("<s>", 3),
        ("<0x0A>", 6),
        ("<0x41>", 6),
        ("a", 1),
        ("b", 1),
        ("\u{2581}", 1),
        ("ab", 1),
        ("x", 4),
    ];
    let scores = (0..pieces.len()).map(|id| Value::F32(-(id as f32))).collect();
    let metadata = [
        ("tokenizer.ggml.model", Value::String("llama".into())),
        ("tokenizer.ggml.tokens", Value::Array(pieces.map(|(piece, _)| Value::String(piece.into())).into())),
        ("tokenizer.ggml.token_type", Value::Array(pieces.map(|(_, kind)| Value::I32(kind)).into())),
        ("tokenizer.ggml.scores", Value::Array(scores)),
        ("tokenizer.ggml.add_space_prefix", Value::Bool(true)),
    ];
    let metadata: Vec<(&str, &Value)> = metadata.iter().map(|(key, value)| (*key, value)).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    gguf_file::write(&mut fs::File::create(&path).unwrap(), &metadata, &[]).unwrap();
    torture("a GGUF file with pieces", &path, || {
        let Ok((_, metadata)) = Weights::open_gguf(&path) else { return false };
        let tokens =
            Tokenizer::from_gguf(&metadata).and_then(|tokenizer| tokenizer.encode_prompt("<s>ab ba é\n x", &[]));
        tokens.is_ok()
    });
}

#[test]
fn damaged_safetensors_and_configurations_are_read_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["config.json", "model.safetensors"] {
        fs::copy(golden("decoder/llama").join(name), folder.path().join(name)).unwrap();
    }
    let read = || {
        let config =
            fs::read(folder.path().join("config.json")).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let (Some(config), Ok(weights)) = (config, Weights::open_folder(folder.path())) else { return false };
        let Ok(Spec::Decoder(spec)) = Spec::from_config(&config) else { return false };
        Decoder::load(&spec, &weights, spec.context.min(64), &Device::Cpu).is_ok()
    };
    torture("a safetensors file", &folder.path().join("model.safetensors"), read);
}

#[test]
fn damaged_pytorch_files_are_read_or_refused() {
    for name in ["pytorch_model.bin", "colbert_linear.pt"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pytorch_model.bin");
        fs::copy(golden("encoder/xlm_roberta").join(name), &path).unwrap();
        torture(name, &path, || Weights::open_folder(folder.path()).is_ok());
    }
}

#[test]
fn damaged_tokenizers_are_read_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    fs::copy(golden("decoder/llama/tokenizer.json"), &path).unwrap();
    torture("a tokenizer", &path, || {
        let encoder = EncoderTokenizer::from_file(&path).and_then(|tokenizer| tokenizer.encode("a <pad> \u{1f600} b"));
        Tokenizer::from_file(&path).is_ok_and(|tokenizer| tokenizer.encode("a <s> \u{1f600} b").is_ok())
            && encoder.is_ok()
    });
}

#[test]
fn damaged_adapters_are_read_or_refused() {
    let config = fs::read(golden("decoder/llama/config.json")).unwrap();
    let Spec::Decoder(spec) = Spec::from_config(&serde_json::from_slice(&config).unwrap()).unwrap() else { panic!() };
    for name in ["adapter_config.json", "adapter_model.safetensors"] {
        let folder = tempfile::tempdir().unwrap();
        for name in ["adapter_config.json", "adapter_model.safetensors"] {
            fs::copy(golden("lora").join(name), folder.path().join(name)).unwrap();
        }
        torture(name, &folder.path().join(name), || match Adapter::open(folder.path()) {
            Ok(adapter) => {
                let _ = adapter.check(&spec);
                true
            }
            Err(_) => false,
        });
    }
}

#[test]
fn damaged_manifests_are_read_or_refused() {
    let manifests = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests");
    let manifest = fs::read_dir(manifests).unwrap().next().unwrap().unwrap().path();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("manifest.toml");
    fs::copy(manifest, &path).unwrap();
    torture("a manifest", &path, || {
        fs::read_to_string(&path).is_ok_and(|text| toml::from_str::<Manifest>(&text).is_ok())
    });
}

#[test]
fn damaged_packed_weights_are_mapped_or_packed_again() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["config.json", "model.safetensors"] {
        fs::copy(golden("decoder/llama").join(name), folder.path().join(name)).unwrap();
    }
    let config = serde_json::from_slice(&fs::read(folder.path().join("config.json")).unwrap()).unwrap();
    let Spec::Decoder(spec) = Spec::from_config(&config).unwrap() else { panic!("no decoder") };
    let open = || Weights::open_folder(folder.path()).unwrap().with_packed(&Device::Cpu).unwrap();
    let first = open();
    Decoder::load(&spec, &first, spec.context, &Device::Cpu).unwrap();
    first.keep_packed();
    let path = folder.path().join("weights.packed");
    torture("a file of packed weights", &path, || {
        // With a digest that fits: otherwise nothing is read of a damaged file.
        let damaged = fs::read(&path).unwrap();
        let content = &damaged[..damaged.len().saturating_sub(32)];
        fs::write(&path, [content, blake3::hash(content).as_bytes()].concat()).unwrap();
        let weights = open();
        Decoder::load(&spec, &weights, spec.context, &Device::Cpu).is_ok() && weights.are_packed()
    });
}

/// The bytes of a GGUF file with these numbers as metadata, and a tensor of this shape.
fn gguf(metadata: &[(&str, u32)], shape: &[u64]) -> Vec<u8> {
    let text = |text: &str| [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat();
    let mut bytes = [&b"GGUF"[..], &3_u32.to_le_bytes(), &1_u64.to_le_bytes()].concat();
    bytes.extend((metadata.len() as u64).to_le_bytes());
    for (key, value) in metadata {
        bytes.extend([text(key), 4_u32.to_le_bytes().to_vec(), value.to_le_bytes().to_vec()].concat());
    }
    bytes.extend([text("token_embd.weight"), u32::try_from(shape.len()).unwrap().to_le_bytes().to_vec()].concat());
    shape.iter().for_each(|dim| bytes.extend(dim.to_le_bytes()));
    bytes.extend([0_u32.to_le_bytes().to_vec(), 0_u64.to_le_bytes().to_vec(), vec![0; 256]].concat());
    bytes
}

fn refusal(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    fs::write(&path, bytes).unwrap();
    Weights::open_gguf(&path).unwrap_err().to_string()
}

#[test]
fn a_gguf_file_aligned_to_zero_is_refused() {
    assert!(refusal(&gguf(&[("general.alignment", 0)], &[4])).ends_with("its `general.alignment` is 0"));
    assert!(refusal(&gguf(&[("a", 7), ("general.alignment\0", 0)], &[4])).ends_with("its `general.alignment` is 0"));
}

#[test]
fn a_gguf_tensor_without_a_kernel_is_refused_by_its_type() {
    let mut bytes = gguf(&[], &[256]);
    // Behind the type come the offset and 256 bytes.
    let at = bytes.len() - 256 - 8 - 4;
    for (number, name) in [(16_u32, "IQ2_XXS"), (39, "MXFP4"), (77, "of number 77")] {
        bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
        assert_eq!(refusal(&bytes), format!("tensor type {name} of `token_embd.weight` is not supported"));
    }
}

#[test]
fn a_gguf_tensor_with_more_values_than_memory_has_addresses_is_refused() {
    for shape in [&[1 << 62, 4][..], &[4, 1 << 62, 4], &[1 << 62, 1 << 62], &[u64::MAX, 1]] {
        let reason = refusal(&gguf(&[], shape));
        assert!(reason.contains("impossible shape") || reason.contains("its tensors need"), "{shape:?}: {reason}");
    }
}

#[test]
fn a_tokenizer_with_an_absurd_id_is_refused() {
    let mut json: serde_json::Value =
        serde_json::from_slice(&fs::read(golden("decoder/llama/tokenizer.json")).unwrap()).unwrap();
    json["model"]["vocab"]["zzz"] = 4_000_000_000_u32.into();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    fs::write(&path, json.to_string()).unwrap();
    let error = Tokenizer::from_file(&path).unwrap_err().to_string();
    assert!(error.contains("4000000000") && error.contains("4194304"), "{error}");
}

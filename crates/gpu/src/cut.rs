//! The first layers of a GGUF model, as many as fit into a size, with the first tokens of its vocabulary: a bundle for a machine
//! without network must be small. What such a model writes means nothing, but both devices must write the same.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufReader, BufWriter};

use anyhow::{Context, Result};
use candle_core::Device;
use candle_core::quantized::gguf_file::{Content, Value, write};
use candle_core::quantized::{QStorage, QTensor};

/// Tokens of the vocabulary that are kept. Most of a small model is its token table.
const TOKENS: usize = 8192;

/// Copies `from` to `to` with as many layers as fit into `megabytes` of tensors.
pub fn cut(from: &str, to: &str, megabytes: &str) -> Result<()> {
    let most = megabytes.parse::<u64>().context("MEGABYTES is a number")? * 1_000_000;
    let mut file = BufReader::new(File::open(from).with_context(|| format!("cannot read {from}"))?);
    let mut content = Content::read(&mut file)?;
    let architecture = content.metadata.get("general.architecture").context("no architecture")?.to_string()?.clone();
    let key = format!("{architecture}.block_count");
    let layers = content.metadata.get(&key).context("no number of layers")?.to_u32()?;
    let mut names: Vec<String> = content.tensor_infos.keys().cloned().collect();
    names.sort();
    let mut tensors: Vec<(String, QTensor)> = Vec::new();
    for name in names {
        let tensor = content.tensor(&mut file, &name, &Device::Cpu)?;
        let has_tokens = matches!(name.as_str(), "token_embd.weight" | "output.weight");
        tensors.push((name, if has_tokens { first_rows(&tensor)? } else { tensor }));
    }
    // The size of the vocabulary is the length of this list.
    if let Some(Value::Array(tokens)) = content.metadata.get_mut("tokenizer.ggml.tokens") {
        tokens.truncate(TOKENS);
    }
    let bytes_of = |kept: &dyn Fn(Option<u32>) -> bool| -> u64 {
        let sizes = tensors.iter().filter(|(name, _)| kept(layer(name)));
        sizes.map(|(_, tensor)| tensor.storage_size_in_bytes() as u64).sum()
    };
    let fits = |count: &u32| bytes_of(&|layer| layer.is_none_or(|layer| layer < *count)) <= most;
    let count = (1..=layers).rev().find(fits).context("not even one layer fits")?;
    content.metadata.insert(key, Value::U32(count));
    let metadata: Vec<(&str, &Value)> = content.metadata.iter().map(|(key, value)| (key.as_str(), value)).collect();
    let kept = tensors.iter().filter(|(name, _)| layer(name).is_none_or(|layer| layer < count));
    let kept: Vec<(&str, &QTensor)> = kept.map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let writing = || format!("cannot write {to}");
    let mut out = BufWriter::new(File::create(to).with_context(writing)?);
    write(&mut out, &metadata, &kept).with_context(writing)?;
    out.into_inner()?.sync_all().with_context(writing)?;
    eprintln!("memlocal-gpu: {count} of {layers} layers");
    Ok(())
}

/// The rows of the first tokens.
fn first_rows(tensor: &QTensor) -> Result<QTensor> {
    let (rows, cols) = tensor.shape().dims2()?;
    let (kept, data) = (rows.min(TOKENS), tensor.data()?);
    let bytes = &data[..data.len() / rows * kept];
    Ok(QTensor::new(QStorage::from_data(Cow::Borrowed(bytes), &Device::Cpu, tensor.dtype())?, (kept, cols))?)
}

/// The layer that a tensor belongs to, if any.
fn layer(name: &str) -> Option<u32> {
    name.strip_prefix("blk.")?.split('.').next()?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::env;
    use std::path::Path;
    use std::process::Command;

    use candle_core::quantized::GgmlDType;
    use candle_core::{DType, Tensor};

    use super::*;

    const FOLDER: &str = "MEMLOCAL_TEST_CUT";

    fn cut_in(folder: &Path) -> Result<()> {
        let [from, to] = ["whole.gguf", "cut.gguf"].map(|name| folder.join(name).display().to_string());
        cut(&from, &to, "1")
    }

    #[test]
    fn the_first_tokens_of_the_vocabulary_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let [from, to] = ["whole.gguf", "cut.gguf"].map(|name| folder.path().join(name).display().to_string());
        let rows = TOKENS + 100;
        let table = Tensor::arange(0f32, (rows * 32) as f32, &Device::Cpu).unwrap().reshape((rows, 32)).unwrap();
        let layer = Tensor::ones((8, 32), DType::F32, &Device::Cpu).unwrap();
        let [table, layer] = [table, layer].map(|tensor| QTensor::quantize(&tensor, GgmlDType::F32).unwrap());
        let (architecture, layers) = (Value::String("llama".into()), Value::U32(1));
        let tokens = Value::Array(vec![Value::U32(0); rows]);
        let metadata = [
            ("general.architecture", &architecture),
            ("llama.block_count", &layers),
            ("tokenizer.ggml.tokens", &tokens),
        ];
        let tensors = [("token_embd.weight", &table), ("blk.0.w", &layer)];
        write(&mut File::create(&from).unwrap(), &metadata, &tensors).unwrap();
        cut(&from, &to, "2").unwrap();
        let mut file = File::open(&to).unwrap();
        let content = Content::read(&mut file).unwrap();
        assert_eq!(content.metadata["tokenizer.ggml.tokens"].to_vec().unwrap().len(), TOKENS);
        let kept = content.tensor(&mut file, "token_embd.weight", &Device::Cpu).unwrap();
        assert_eq!(kept.shape().dims(), [TOKENS, 32]);
        assert_eq!(kept.data().unwrap()[..], table.data().unwrap()[..TOKENS * 32 * 4]);
    }

    /// Runs itself in a process whose files are limited to 1 KiB at most: the end of the tensors cannot be written.
    #[test]
    fn a_file_that_is_not_written_whole_is_an_error() {
        if let Some(folder) = env::var_os(FOLDER) {
            cut_in(Path::new(&folder)).unwrap_err();
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let ones = Tensor::ones((8, 64), DType::F32, &Device::Cpu).unwrap();
        let tensor = QTensor::quantize(&ones, GgmlDType::F32).unwrap();
        let metadata =
            [("general.architecture", &Value::String("llama".into())), ("llama.block_count", &Value::U32(1))];
        let mut file = File::create(folder.path().join("whole.gguf")).unwrap();
        write(&mut file, &metadata, &[("blk.0.w", &tensor)]).unwrap();
        cut_in(folder.path()).unwrap();
        let run = Command::new("sh")
            .args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\" --exact \"$1\""])
            .arg(env::current_exe().unwrap())
            .arg("cut::tests::a_file_that_is_not_written_whole_is_an_error")
            .env(FOLDER, folder.path())
            .output()
            .unwrap();
        assert!(run.status.success(), "{run:?}");
    }
}

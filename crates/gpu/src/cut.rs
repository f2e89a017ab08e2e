//! The first layers of a GGUF model, as many as fit into a size: a bundle for a machine without network must be small.
//! What such a model writes means nothing, but both devices must write the same.

use std::fs::File;
use std::io::{BufReader, BufWriter};

use anyhow::{Context, Result};
use candle_core::Device;
use candle_core::quantized::QTensor;
use candle_core::quantized::gguf_file::{Content, Value, write};

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
        tensors.push((name.clone(), content.tensor(&mut file, &name, &Device::Cpu)?));
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

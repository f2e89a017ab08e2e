//! Speed of candle on the CPU, measured as `memlocal-bench engine` measures.
//!
//!     cargo run --release -- MODEL.gguf          reading prompts, and decoding answers at once (Qwen2, Llama)
//!     cargo run --release -- FOLDER              embedding texts in f32 (XLM-RoBERTa, BERT)
//!
//! The models are those of candle-transformers. Answers at once are one batch, greedy, after one token each: the
//! models refuse several longer prompts at once.
//! Products in bf16 are slower than in f32 with candle on CPUs.

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use candle_core::quantized::gguf_file::Content;
use candle_core::{D, DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::{bert, quantized_llama, quantized_qwen2, xlm_roberta};
use serde_json::{Value, json};

/// Tokens of a prompt that is read.
const PROMPT: usize = 512;
/// Answers at once.
const AT_ONCE: [usize; 4] = [1, 4, 8, 16];
/// Tokens of an answer.
const ANSWER: usize = 64;
/// Texts and tokens of each.
const TEXTS: [(usize, usize); 2] = [(32, 128), (8, 512)];
const REPETITIONS: usize = 3;

fn main() -> Result<()> {
    let path = std::env::args().nth(1).context("MODEL.gguf or FOLDER")?;
    let path = Path::new(&path);
    if path.is_dir() { embed(path) } else { generate(path) }
}

enum Decoder {
    Qwen2(quantized_qwen2::ModelWeights),
    Llama(quantized_llama::ModelWeights),
}

impl Decoder {
    fn open(path: &Path) -> Result<Decoder> {
        let mut file = File::open(path)?;
        let content = Content::read(&mut file)?;
        let kind = content.metadata.get("general.architecture").context("an architecture")?.to_string()?.clone();
        Ok(match kind.as_str() {
            "qwen2" => Decoder::Qwen2(quantized_qwen2::ModelWeights::from_gguf(content, &mut file, &Device::Cpu)?),
            "llama" => Decoder::Llama(quantized_llama::ModelWeights::from_gguf(content, &mut file, &Device::Cpu)?),
            other => bail!("{other} is not measured"),
        })
    }

    /// Logits of the last position. The cache is empty before position 0.
    fn forward(&mut self, tokens: &Tensor, position: usize) -> Result<Tensor> {
        Ok(match self {
            Decoder::Qwen2(model) => model.forward(tokens, position)?,
            Decoder::Llama(model) => model.forward(tokens, position)?,
        })
    }
}

fn generate(path: &Path) -> Result<()> {
    let mut model = Decoder::open(path)?;
    let speed = repeated(|| {
        let start = Instant::now();
        model.forward(&tokens(1, PROMPT)?, 0)?;
        Ok(PROMPT as f64 / start.elapsed().as_secs_f64())
    });
    println!("prefill of {PROMPT} tokens: {:.0} tokens/s", speed?);
    for count in AT_ONCE {
        let speed = repeated(|| {
            let mut logits = model.forward(&tokens(count, 1)?, 0)?;
            let start = Instant::now();
            for position in 1..=ANSWER {
                let next = logits.argmax(D::Minus1)?.reshape((count, 1))?;
                logits = model.forward(&next, position)?;
            }
            Ok((count * ANSWER) as f64 / start.elapsed().as_secs_f64())
        });
        println!("decode, {count} at once: {:.1} tokens/s", speed?);
    }
    Ok(())
}

enum Encoder {
    Bert(bert::BertModel),
    XlmRoberta(xlm_roberta::XLMRobertaModel),
}

impl Encoder {
    fn open(folder: &Path) -> Result<Encoder> {
        let mut config: Value = serde_json::from_reader(File::open(folder.join("config.json"))?)?;
        let kind = config["model_type"].as_str().unwrap_or_default().to_owned();
        let files = [folder.join("model.safetensors")];
        // SAFETY: nothing writes to the file while it is mapped.
        let weights = unsafe { VarBuilder::from_mmaped_safetensors(&files, DType::F32, &Device::Cpu)? };
        Ok(match kind.as_str() {
            "bert" => Encoder::Bert(bert::BertModel::load(weights, &serde_json::from_value(config)?)?),
            "xlm-roberta" => {
                for dropout in ["attention_probs_dropout_prob", "hidden_dropout_prob"] {
                    config[dropout] = json!(0.0);
                }
                Encoder::XlmRoberta(xlm_roberta::XLMRobertaModel::new(&serde_json::from_value(config)?, weights)?)
            }
            other => bail!("{other} is not measured"),
        })
    }

    fn forward(&self, tokens: &Tensor) -> Result<Tensor> {
        let (types, mask) = (tokens.zeros_like()?, tokens.ones_like()?);
        Ok(match self {
            Encoder::Bert(model) => model.forward(tokens, &types, Some(&mask))?,
            Encoder::XlmRoberta(model) => model.forward(tokens, &mask, &types, None, None, None)?,
        })
    }
}

fn embed(folder: &Path) -> Result<()> {
    let model = Encoder::open(folder)?;
    for (count, length) in TEXTS {
        let texts = tokens(count, length)?;
        let speed = repeated(|| {
            let start = Instant::now();
            model.forward(&texts)?.to_dtype(DType::F32)?;
            Ok((count * length) as f64 / start.elapsed().as_secs_f64())
        });
        println!("{count} texts of {length} tokens: {:.0} tokens/s", speed?);
    }
    Ok(())
}

/// The median of several measurements after one that does not count.
fn repeated(mut measure: impl FnMut() -> Result<f64>) -> Result<f64> {
    measure()?;
    let mut all = (0..REPETITIONS).map(|_| measure()).collect::<Result<Vec<f64>>>()?;
    all.sort_by(f64::total_cmp);
    Ok(all[all.len() / 2])
}

/// Ids of some rows, all different in their first tokens.
fn tokens(rows: usize, length: usize) -> Result<Tensor> {
    let ids: Vec<u32> = (0..rows * length).map(|at| 100 + (at * 7919 + at / length) as u32 % 20_000).collect();
    Ok(Tensor::from_vec(ids, (rows, length), &Device::Cpu)?)
}

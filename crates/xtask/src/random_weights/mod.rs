//! Checkpoints of published shapes with random weights, to measure speed where the real ones are unavailable.
//!
//! Speed depends on shapes and formats, not on values; the values are small enough that no layer overflows. The tokenizer
//! is a real one and given as a file, so that tokenising takes as long as with the real model.

mod blocks;
mod gguf;
mod safetensors;

use std::fs;
use std::path::{Path, PathBuf};

use blocks::Format;

/// The usage of the command.
pub const USAGE: &str = "cargo xtask random-weights SHAPE TOKENIZER.json FOLDER    \
    write a checkpoint with random weights; shapes: qwen2.5-0.5b-q4_k_m, qwen2.5-0.5b-q8_0, qwen2.5-0.5b-bf16, \
    qwen2.5-1.5b-q4_k_m, qwen2.5-7b-q4_k_m, qwen2.5-7b-bf16, qwen2.5-14b-q4_k_m, bge-m3";

/// A decoder of the Qwen2.5 family.
struct Qwen {
    hidden: usize,
    layers: usize,
    heads: usize,
    key_heads: usize,
    ffn: usize,
    /// Rows of the embedding.
    vocab: usize,
    /// True if the embedding is the output matrix too.
    tied: bool,
}

const QWEN_0_5B: Qwen =
    Qwen { hidden: 896, layers: 24, heads: 14, key_heads: 2, ffn: 4864, vocab: 151_936, tied: true };
const QWEN_1_5B: Qwen =
    Qwen { hidden: 1536, layers: 28, heads: 12, key_heads: 2, ffn: 8960, vocab: 151_936, tied: true };
const QWEN_7B: Qwen =
    Qwen { hidden: 3584, layers: 28, heads: 28, key_heads: 4, ffn: 18_944, vocab: 152_064, tied: false };
const QWEN_14B: Qwen =
    Qwen { hidden: 5120, layers: 48, heads: 40, key_heads: 8, ffn: 13_824, vocab: 152_064, tied: false };

/// Which format a matrix has: one for all, or llama.cpp's mixture.
#[derive(Clone, Copy)]
enum Mixture {
    All(Format),
    Q4KM,
}

/// Writes the checkpoint that the arguments name and prints its path.
pub fn run(arguments: &[String]) -> Result<PathBuf, String> {
    let [shape, tokenizer, folder] = arguments else { return Err(USAGE.into()) };
    let folder = Path::new(folder);
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let text = fs::read_to_string(tokenizer).map_err(|error| format!("{tokenizer}: {error}"))?;
    let qwen = |qwen: &Qwen, mixture| {
        let path = folder.join(format!("{shape}.gguf"));
        gguf::write(&path, qwen, mixture, &text).map(|()| path)
    };
    match shape.as_str() {
        "qwen2.5-0.5b-q4_k_m" => qwen(&QWEN_0_5B, Mixture::Q4KM),
        "qwen2.5-0.5b-q8_0" => qwen(&QWEN_0_5B, Mixture::All(Format::Q8_0)),
        "qwen2.5-0.5b-bf16" => qwen(&QWEN_0_5B, Mixture::All(Format::Bf16)),
        "qwen2.5-1.5b-q4_k_m" => qwen(&QWEN_1_5B, Mixture::Q4KM),
        "qwen2.5-7b-q4_k_m" => qwen(&QWEN_7B, Mixture::Q4KM),
        "qwen2.5-7b-bf16" => qwen(&QWEN_7B, Mixture::All(Format::Bf16)),
        "qwen2.5-14b-q4_k_m" => qwen(&QWEN_14B, Mixture::Q4KM),
        "bge-m3" => safetensors::write_bge_m3(&folder.join("bge-m3"), &text),
        other => Err(format!("`{other}` is no shape\n{USAGE}")),
    }
}

impl Mixture {
    /// The types that llama.cpp's quantiser chooses: more bits for sensitive matrices, and smaller blocks where
    /// rows are no multiple of 256 (which is why a 0.5B "Q4_K_M" file is mostly Q5_0).
    fn of(self, name: &str, layer: usize, layers: usize, cols: usize) -> Format {
        let Mixture::Q4KM = self else {
            let Mixture::All(format) = self else { unreachable!("two kinds") };
            return format;
        };
        let more = layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
        let wants_more = match name {
            "output" => true,
            "attn_v" | "ffn_down" => more,
            _ => false,
        };
        match (wants_more, cols.is_multiple_of(256)) {
            (true, true) => Format::Q6K,
            (true, false) => Format::Q8_0,
            (false, true) => Format::Q4K,
            (false, false) => Format::Q5_0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mixture_is_that_of_published_files() {
        let check = |name, layer, cols, expect| {
            assert_eq!(Mixture::Q4KM.of(name, layer, 24, cols), expect, "{name} of layer {layer} with {cols}");
        };
        check("output", 0, 896, Format::Q8_0);
        check("output", 0, 1536, Format::Q6K);
        check("token_embd", 0, 3584, Format::Q4K);
        check("attn_q", 0, 896, Format::Q5_0);
        check("attn_v", 0, 896, Format::Q8_0);
        check("attn_v", 3, 896, Format::Q5_0);
        check("ffn_down", 0, 4864, Format::Q6K);
        check("ffn_down", 3, 4864, Format::Q4K);
        check("ffn_down", 5, 4864, Format::Q6K);
        check("ffn_down", 21, 4864, Format::Q6K);
    }
}

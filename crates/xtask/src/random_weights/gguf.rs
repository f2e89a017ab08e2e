//! A decoder as a GGUF file (version 3).

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use random::Random;
use serde_json::Value;

use super::blocks::Format;
use super::{Mixture, Qwen};

/// Tensors start at multiples of this, the format's default.
const ALIGNMENT: usize = 32;

/// Qwen2.5's turns without tools and without its own system prompt.
const TEMPLATE: &str = "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + \
    '<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

struct TensorInfo {
    name: String,
    /// Columns first, as ggml counts.
    dims: Vec<usize>,
    format: Format,
}

pub(super) fn write(path: &Path, qwen: &Qwen, mixture: Mixture, tokenizer: &str) -> Result<(), String> {
    let tokenizer: Value = serde_json::from_str(tokenizer).map_err(|error| format!("the tokenizer: {error}"))?;
    let head = head(qwen, &tokenizer)?;
    let tensors = tensors(qwen, mixture);
    let written = File::create(path).and_then(|file| put(BufWriter::new(file), &head, &tensors));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

fn put(mut out: impl Write, head: &Head, tensors: &[TensorInfo]) -> io::Result<()> {
    let mut start = b"GGUF".to_vec();
    start.extend(3u32.to_le_bytes());
    start.extend((tensors.len() as u64).to_le_bytes());
    start.extend((head.count as u64).to_le_bytes());
    start.extend(&head.bytes);
    let mut offset = 0usize;
    for tensor in tensors {
        text(&mut start, &tensor.name);
        start.extend((tensor.dims.len() as u32).to_le_bytes());
        tensor.dims.iter().for_each(|dim| start.extend((*dim as u64).to_le_bytes()));
        start.extend(tensor.format.ggml().to_le_bytes());
        start.extend((offset as u64).to_le_bytes());
        offset += tensor.bytes().next_multiple_of(ALIGNMENT);
    }
    start.resize(start.len().next_multiple_of(ALIGNMENT), 0);
    out.write_all(&start)?;
    let mut random = Random::new(1);
    for tensor in tensors {
        let values = tensor.dims.iter().product();
        let mut bytes = if tensor.name.ends_with("norm.weight") {
            1f32.to_le_bytes().repeat(values)
        } else {
            tensor.format.random(values, &mut random)
        };
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        out.write_all(&bytes)?;
    }
    out.flush()
}

impl TensorInfo {
    fn bytes(&self) -> usize {
        self.format.bytes(self.dims.iter().product())
    }
}

fn tensors(qwen: &Qwen, mixture: Mixture) -> Vec<TensorInfo> {
    let (hidden, ffn) = (qwen.hidden, qwen.ffn);
    let key_width = hidden / qwen.heads * qwen.key_heads;
    let vector = |name: String, len| TensorInfo { name, dims: vec![len], format: Format::F32 };
    let table = |name: &str, role: &str| TensorInfo {
        name: format!("{name}.weight"),
        dims: vec![hidden, qwen.vocab],
        format: mixture.of(role, 0, qwen.layers, hidden),
    };
    let mut tensors = if qwen.tied {
        vec![table("token_embd", "output")]
    } else {
        vec![table("token_embd", "token_embd"), table("output", "output")]
    };
    for layer in 0..qwen.layers {
        let name = |part: &str, kind: &str| format!("blk.{layer}.{part}.{kind}");
        let matrices = [
            ("attn_q", hidden, hidden),
            ("attn_k", hidden, key_width),
            ("attn_v", hidden, key_width),
            ("attn_output", hidden, hidden),
            ("ffn_gate", hidden, ffn),
            ("ffn_up", hidden, ffn),
            ("ffn_down", ffn, hidden),
        ];
        for (part, cols, rows) in matrices {
            let format = mixture.of(part, layer, qwen.layers, cols);
            tensors.push(TensorInfo { name: name(part, "weight"), dims: vec![cols, rows], format });
        }
        tensors.extend(
            [("attn_q", hidden), ("attn_k", key_width), ("attn_v", key_width)]
                .map(|(part, len)| vector(name(part, "bias"), len)),
        );
        tensors.extend(["attn_norm", "ffn_norm"].map(|part| vector(name(part, "weight"), hidden)));
    }
    tensors.push(vector("output_norm.weight".into(), hidden));
    tensors
}

/// The file's typed keys and values.
#[derive(Default)]
struct Head {
    count: usize,
    bytes: Vec<u8>,
}

fn head(qwen: &Qwen, tokenizer: &Value) -> Result<Head, String> {
    let mut head = Head::default();
    head.text("general.architecture", "qwen2");
    head.text("general.name", "random weights");
    let numbers = [
        ("context_length", 32_768),
        ("embedding_length", qwen.hidden),
        ("block_count", qwen.layers),
        ("feed_forward_length", qwen.ffn),
        ("attention.head_count", qwen.heads),
        ("attention.head_count_kv", qwen.key_heads),
    ];
    numbers.into_iter().for_each(|(key, value)| head.number(&format!("qwen2.{key}"), value as u32));
    head.float("qwen2.rope.freq_base", 1_000_000.0);
    head.float("qwen2.attention.layer_norm_rms_epsilon", 1e-6);
    head.text("tokenizer.ggml.model", "gpt2");
    head.text("tokenizer.ggml.pre", "qwen2");
    let (tokens, kinds) = tokens(tokenizer, qwen.vocab)?;
    let special = |name: &str| tokens.iter().position(|token| token == name).unwrap_or_default() as u32;
    head.number("tokenizer.ggml.bos_token_id", special("<|endoftext|>"));
    head.number("tokenizer.ggml.eos_token_id", special("<|im_end|>"));
    head.texts("tokenizer.ggml.tokens", &tokens);
    head.kinds("tokenizer.ggml.token_type", &kinds);
    head.texts("tokenizer.ggml.merges", &merges(tokenizer)?);
    head.text("tokenizer.chat_template", TEMPLATE);
    Ok(head)
}

/// Tokens by id, padded to the embedding's rows, and their kinds: 1 ordinary, 3 control, 5 unused.
fn tokens(tokenizer: &Value, rows: usize) -> Result<(Vec<String>, Vec<i32>), String> {
    let vocab = tokenizer["model"]["vocab"].as_object().ok_or("the tokenizer has no vocabulary")?;
    let mut tokens: Vec<String> = (0..rows).map(|id| format!("[PAD{id}]")).collect();
    let mut kinds = vec![5; rows];
    let mut set = |id: &Value, token: &str, kind| {
        let id = id.as_u64().and_then(|id| usize::try_from(id).ok()).filter(|id| *id < rows);
        let id = id.ok_or_else(|| format!("token {token:?} has no id within {rows}"))?;
        (tokens[id], kinds[id]) = (token.to_owned(), kind);
        Ok::<_, String>(())
    };
    for (token, id) in vocab {
        set(id, token, 1)?;
    }
    for added in tokenizer["added_tokens"].as_array().into_iter().flatten() {
        set(&added["id"], added["content"].as_str().unwrap_or_default(), 3)?;
    }
    Ok((tokens, kinds))
}

/// Merges as `left right`, from either form in which a `tokenizer.json` has them.
fn merges(tokenizer: &Value) -> Result<Vec<String>, String> {
    let merges = tokenizer["model"]["merges"].as_array().ok_or("the tokenizer has no merges")?;
    let merge = |merge: &Value| match (merge.as_str(), merge.as_array().map(Vec::as_slice)) {
        (Some(text), _) => Some(text.to_owned()),
        (_, Some([left, right])) => Some(format!("{} {}", left.as_str()?, right.as_str()?)),
        _ => None,
    };
    merges.iter().map(|pair| merge(pair).ok_or_else(|| format!("{pair} is no merge"))).collect()
}

impl Head {
    fn key(&mut self, key: &str, kind: u32) {
        self.count += 1;
        text(&mut self.bytes, key);
        self.bytes.extend(kind.to_le_bytes());
    }

    fn number(&mut self, key: &str, value: u32) {
        self.key(key, 4);
        self.bytes.extend(value.to_le_bytes());
    }

    fn float(&mut self, key: &str, value: f32) {
        self.key(key, 6);
        self.bytes.extend(value.to_le_bytes());
    }

    fn text(&mut self, key: &str, value: &str) {
        self.key(key, 8);
        text(&mut self.bytes, value);
    }

    fn texts(&mut self, key: &str, values: &[String]) {
        self.list(key, 8, values.len());
        values.iter().for_each(|value| text(&mut self.bytes, value));
    }

    fn kinds(&mut self, key: &str, values: &[i32]) {
        self.list(key, 5, values.len());
        values.iter().for_each(|value| self.bytes.extend(value.to_le_bytes()));
    }

    fn list(&mut self, key: &str, kind: u32, len: usize) {
        self.key(key, 9);
        self.bytes.extend(kind.to_le_bytes());
        self.bytes.extend((len as u64).to_le_bytes());
    }
}

fn text(out: &mut Vec<u8>, value: &str) {
    out.extend((value.len() as u64).to_le_bytes());
    out.extend(value.as_bytes());
}

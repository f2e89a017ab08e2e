//! GGUF files: typed metadata and the location of each tensor.

mod head;
mod types;

use std::collections::HashMap;

use candle_core::quantized::gguf_file::Value;

use crate::error::{ModelError, Result};
use crate::location::Location;
use crate::mapped::MappedFile;

pub(crate) use types::format_name;

/// The key-value part of a GGUF file.
#[derive(Debug)]
pub struct Metadata(HashMap<String, Value>);

impl Metadata {
    fn get(&self, key: &str) -> Result<&Value> {
        self.0.get(key).ok_or_else(|| ModelError::config(format!("`{key}` is missing")))
    }

    /// All keys, in no order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// A value for an error message.
    pub(crate) fn shown(&self, key: &str) -> String {
        self.0.get(key).map(|value| format!("{value:?}")).unwrap_or_default()
    }

    /// True for a file of this architecture.
    pub(crate) fn is_of(&self, architecture: &str) -> Result<bool> {
        Ok(self.optional_text("general.architecture")? == Some(architecture))
    }

    /// A string that may be missing.
    pub(crate) fn optional_text(&self, key: &str) -> Result<Option<&str>> {
        self.0.contains_key(key).then(|| self.text(key)).transpose()
    }

    /// A whole number that may be missing.
    pub(crate) fn optional_number(&self, key: &str) -> Result<Option<usize>> {
        self.0.contains_key(key).then(|| self.number(key)).transpose()
    }

    /// A floating-point number that may be missing.
    pub(crate) fn optional_float(&self, key: &str) -> Result<Option<f32>> {
        self.0.contains_key(key).then(|| self.float(key)).transpose()
    }

    /// A truth value that may be missing.
    pub(crate) fn optional_flag(&self, key: &str) -> Result<Option<bool>> {
        match self.0.get(key) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(value) => Err(wrong_type(key, value)),
        }
    }

    /// A string.
    pub fn text(&self, key: &str) -> Result<&str> {
        let value = self.get(key)?;
        value.to_string().map(String::as_str).map_err(|_| wrong_type(key, value))
    }

    /// A whole number that is not negative, of any width.
    pub fn number(&self, key: &str) -> Result<usize> {
        let value = self.get(key)?;
        whole_number(value).ok_or_else(|| wrong_type(key, value))
    }

    /// A floating-point number.
    pub fn float(&self, key: &str) -> Result<f32> {
        match self.get(key)? {
            Value::F32(x) => Ok(*x),
            Value::F64(x) => Ok(*x as f32),
            value => Err(wrong_type(key, value)),
        }
    }

    /// The elements of a list.
    pub fn list(&self, key: &str) -> Result<&[Value]> {
        let value = self.get(key)?;
        value.to_vec().map(Vec::as_slice).map_err(|_| wrong_type(key, value))
    }

    /// A list of strings.
    pub fn texts(&self, key: &str) -> Result<Vec<&str>> {
        let texts = self.list(key)?.iter().map(|value| match value {
            Value::String(text) => Ok(text.as_str()),
            value => Err(wrong_type(key, value)),
        });
        texts.collect()
    }

    /// A list of floating-point numbers.
    pub(crate) fn floats(&self, key: &str) -> Result<Vec<f32>> {
        let floats = self.list(key)?.iter().map(|value| match value {
            Value::F32(x) => Ok(*x),
            value => Err(wrong_type(key, value)),
        });
        floats.collect()
    }

    /// A list of whole numbers.
    pub fn numbers(&self, key: &str) -> Result<Vec<usize>> {
        self.list(key)?.iter().map(|value| whole_number(value).ok_or_else(|| wrong_type(key, value))).collect()
    }

    /// Number of elements of a list.
    pub fn list_len(&self, key: &str) -> Result<usize> {
        self.list(key).map(<[Value]>::len)
    }
}

fn whole_number(value: &Value) -> Option<usize> {
    match value {
        Value::U8(n) => Some(usize::from(*n)),
        Value::U16(n) => Some(usize::from(*n)),
        Value::U32(n) => usize::try_from(*n).ok(),
        Value::U64(n) => usize::try_from(*n).ok(),
        Value::I32(n) => usize::try_from(*n).ok(),
        Value::I64(n) => usize::try_from(*n).ok(),
        _ => None,
    }
}

fn wrong_type(key: &str, value: &Value) -> ModelError {
    ModelError::config(format!("`{key}` is of type {:?}", value.value_type()))
}

/// Reads the head of a GGUF file and checks that every tensor is within it.
///
/// # Errors
/// [`ModelError::Damaged`] for a foreign or truncated file, [`ModelError::Unsupported`] for a tensor type without kernel.
pub(crate) fn read(file: &MappedFile, index: usize) -> Result<(Metadata, HashMap<String, Location>)> {
    let damaged = |reason: String| ModelError::Damaged { path: file.path().to_owned(), reason };
    let head = head::read(file).map_err(damaged)?;
    let mut tensors = HashMap::with_capacity(head.tensors.len());
    let mut needed = 0;
    for head::Tensor { name, kind, shape, offset } in head.tensors {
        let format =
            types::format_of(kind).map_err(|kind| ModelError::UnsupportedTensor { name: name.clone(), kind })?;
        let cols = shape.last().copied().unwrap_or(1);
        let rows = shape[..shape.len().saturating_sub(1)].iter().try_fold(1_usize, |rows, dim| rows.checked_mul(*dim));
        // No format has more bytes than four per value.
        let row = cols.checked_mul(4).and_then(|_| format.row_bytes(cols));
        let bytes = row.zip(rows).and_then(|(row, rows)| row.checked_mul(rows));
        let bytes = bytes.ok_or_else(|| damaged(format!("tensor `{name}` has the impossible shape {shape:?}")))?;
        let start = head.data.saturating_add(offset);
        let end = start.saturating_add(bytes);
        needed = needed.max(end);
        tensors.insert(name, Location { file: index, bytes: start..end, format, shape });
    }
    if needed > file.len() {
        return Err(damaged(format!("it is cut off after {} bytes, its tensors need {needed}", file.len())));
    }
    Ok((Metadata(head.metadata), tensors))
}

/// The name that llama.cpp gives to a tensor with this Hugging Face name; the experts of a layer share one tensor.
pub(crate) fn gguf_name(name: &str) -> String {
    const WHOLE: [(&str, &str); 3] =
        [("model.embed_tokens", "token_embd"), ("model.norm", "output_norm"), ("lm_head", "output")];
    const IN_LAYER: [(&str, &str); 14] = [
        ("input_layernorm", "attn_norm"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.q_norm", "attn_q_norm"),
        ("self_attn.k_norm", "attn_k_norm"),
        ("self_attn.o_proj", "attn_output"),
        ("post_attention_layernorm", "ffn_norm"),
        ("pre_feedforward_layernorm", "ffn_norm"),
        ("post_feedforward_layernorm", "post_ffw_norm"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
        ("mlp.gate", "ffn_gate_inp"),
    ];
    if let Some((layer, _, part)) = expert_of(name) {
        return format!("blk.{layer}.ffn_{}_exps.weight", part.trim_end_matches("_proj"));
    }
    let (stem, kind) = name.rsplit_once('.').unwrap_or((name, "weight"));
    let translate =
        |table: &[(&str, &'static str)], stem: &str| table.iter().find(|(hf, _)| *hf == stem).map(|(_, gguf)| *gguf);
    match stem.strip_prefix("model.layers.").and_then(|rest| rest.split_once('.')) {
        Some((layer, part)) => format!("blk.{layer}.{}.{kind}", translate(&IN_LAYER, part).unwrap_or(part)),
        None => format!("{}.{kind}", translate(&WHOLE, stem).unwrap_or(stem)),
    }
}

/// Layer, expert and projection of the Hugging Face name of an expert's weights.
pub(crate) fn expert_of(name: &str) -> Option<(&str, usize, &str)> {
    let rest = name.strip_prefix("model.layers.")?.strip_suffix(".weight")?;
    let (layer, rest) = rest.split_once(".mlp.experts.")?;
    let (expert, part) = rest.split_once('.')?;
    Some((layer, expert.parse().ok()?, part))
}

#[cfg(test)]
mod tests {
    use super::gguf_name;

    #[test]
    fn names_are_translated() {
        assert_eq!(gguf_name("model.embed_tokens.weight"), "token_embd.weight");
        assert_eq!(gguf_name("model.layers.12.self_attn.q_proj.bias"), "blk.12.attn_q.bias");
        assert_eq!(gguf_name("model.layers.0.mlp.down_proj.weight"), "blk.0.ffn_down.weight");
        assert_eq!(gguf_name("lm_head.weight"), "output.weight");
        assert_eq!(gguf_name("model.layers.3.mlp.experts.17.gate_proj.weight"), "blk.3.ffn_gate_exps.weight");
        assert_eq!(gguf_name("model.layers.3.mlp.gate.weight"), "blk.3.ffn_gate_inp.weight");
    }
}

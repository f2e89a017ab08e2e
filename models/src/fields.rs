//! Typed access to a `config.json` that records which fields were read, so that a field that nothing honours is an error.

use std::cell::RefCell;
use std::collections::HashSet;

use serde_json::{Value, json};

use crate::error::{ModelError, Result};

/// Fields that do not change what a network computes: training, generation defaults, provenance, names of classes.
const WITHOUT_EFFECT: &[&str] = &[
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_flash_attn_2_enabled",
    "_name_or_path",
    "architectures",
    "attention_dropout",
    "attention_probs_dropout_prob",
    "attn_implementation",
    "bos_token_id",
    "cache_implementation",
    "classifier_dropout",
    "do_sample",
    "dtype",
    "eos_token_id",
    "finetuning_task",
    "gradient_checkpointing",
    "hidden_dropout_prob",
    "id2label",
    "initializer_range",
    "is_llama_config",
    "label2id",
    "max_length",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "pad_token_id",
    "pretraining_tp",
    "problem_type",
    "return_dict",
    "task_specific_params",
    "temperature",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "transformers.js_config",
    "transformers_version",
    "unsloth_fixed",
    "unsloth_version",
    "use_bfloat16",
    "use_cache",
];

/// A JSON object, and which of its fields were read.
pub(crate) struct Fields<'a> {
    object: &'a Value,
    /// How errors name the object: nothing, or `rope_scaling.`.
    prefix: String,
    read: RefCell<HashSet<String>>,
}

impl<'a> Fields<'a> {
    pub fn new(object: &'a Value) -> Fields<'a> {
        Fields { object, prefix: String::new(), read: RefCell::default() }
    }

    /// True if the field is there, `null` or not.
    pub fn has(&self, name: &str) -> bool {
        self.object.get(name).is_some()
    }

    /// A field that may be missing or `null`.
    fn optional<T>(&self, name: &str, as_type: impl Fn(&'a Value) -> Option<T>) -> Result<Option<T>> {
        self.read.borrow_mut().insert(name.to_owned());
        let Some(value) = self.object.get(name).filter(|value| !value.is_null()) else { return Ok(None) };
        let wrong_type = || ModelError::config(format!("`{}{name}` is {value}", self.prefix));
        as_type(value).ok_or_else(wrong_type).map(Some)
    }

    fn present<T>(&self, name: &str, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| ModelError::config(format!("`{}{name}` is missing", self.prefix)))
    }

    pub fn optional_text(&self, name: &str) -> Result<Option<&'a str>> {
        self.optional(name, Value::as_str)
    }

    pub fn text(&self, name: &str) -> Result<&'a str> {
        self.present(name, self.optional_text(name)?)
    }

    pub fn optional_number(&self, name: &str) -> Result<Option<usize>> {
        self.optional(name, |value| value.as_u64().and_then(|n| usize::try_from(n).ok()))
    }

    pub fn number(&self, name: &str) -> Result<usize> {
        self.present(name, self.optional_number(name)?)
    }

    pub fn optional_float(&self, name: &str) -> Result<Option<f32>> {
        self.optional(name, |value| value.as_f64().map(|x| x as f32))
    }

    pub fn float(&self, name: &str) -> Result<f32> {
        self.present(name, self.optional_float(name)?)
    }

    /// False where it is missing.
    pub fn flag(&self, name: &str) -> Result<bool> {
        Ok(self.optional(name, Value::as_bool)?.unwrap_or(false))
    }

    /// The number of elements of a list.
    pub fn optional_list_len(&self, name: &str) -> Result<Option<usize>> {
        self.optional(name, |value| value.as_array().map(Vec::len))
    }

    /// A list of strings.
    pub fn optional_texts(&self, name: &str) -> Result<Option<Vec<&'a str>>> {
        self.optional(name, |value| value.as_array()?.iter().map(Value::as_str).collect())
    }

    /// An object within this one; its fields are checked by its own [`Fields::finish`].
    pub fn part(&self, name: &str) -> Result<Option<Fields<'a>>> {
        let object = self.optional(name, |value| value.is_object().then_some(value))?;
        let prefix = format!("{}{name}.", self.prefix);
        Ok(object.map(|object| Fields { object, prefix, read: RefCell::default() }))
    }

    /// Refuses a field that nothing has read, unless it is known to have no effect or has the value in `neutral` at which it
    /// has none.
    ///
    /// # Errors
    /// [`ModelError::UnusedField`] for the first such field.
    pub fn finish(self, neutral: &[(&str, Value)]) -> Result<()> {
        let read = self.read.into_inner();
        // Not the parts about the rotary embedding.
        let is_network = matches!(self.prefix.as_str(), "" | "text_config.");
        let is_neutral = |name: &str, value: &Value| {
            let same = |expected: &Value| {
                expected == value || (expected.as_f64().is_some() && expected.as_f64() == value.as_f64())
            };
            neutral.iter().any(|(known, expected)| *known == name && same(expected))
        };
        let fields = self.object.as_object().into_iter().flatten();
        let unused = fields.filter(|(_, value)| !value.is_null()).find(|(name, value)| {
            let without_effect = is_network && WITHOUT_EFFECT.contains(&name.as_str());
            !read.contains(*name) && !without_effect && !is_neutral(name, value)
        });
        match unused {
            Some((name, value)) => Err(ModelError::unused_field(format!("{}{name}", self.prefix), value)),
            None => Ok(()),
        }
    }
}

/// Fields that switch on what no network here has, and the values at which they do not.
pub(crate) fn switched_off() -> Vec<(&'static str, Value)> {
    vec![
        ("add_cross_attention", json!(false)),
        ("chunk_size_feed_forward", json!(0)),
        ("is_decoder", json!(false)),
        ("is_encoder_decoder", json!(false)),
        ("mlp_bias", json!(false)),
        ("partial_rotary_factor", json!(1.0)),
        ("pruned_heads", json!({})),
        ("rope_interleaved", json!(false)),
        ("tie_encoder_decoder", json!(false)),
        ("use_mrope", json!(false)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_was_not_read_is_an_error_unless_it_has_no_effect() {
        let check = |object: Value, expected: Option<&str>| {
            let fields = Fields::new(&object);
            fields.number("width").unwrap();
            let found = match fields.finish(&switched_off()) {
                Err(ModelError::UnusedField { name, .. }) => Some(name),
                other => other.map(|()| None).unwrap(),
            };
            assert_eq!(found.as_deref(), expected, "{object}");
        };
        check(json!({ "width": 3 }), None);
        check(json!({ "width": 3, "use_cache": true, "torch_dtype": "bfloat16" }), None);
        check(json!({ "width": 3, "logit_scale": 0.5 }), Some("logit_scale"));
        check(json!({ "width": 3, "logit_scale": null }), None);
        check(json!({ "width": 3, "partial_rotary_factor": 1 }), None);
        check(json!({ "width": 3, "partial_rotary_factor": 0.5 }), Some("partial_rotary_factor"));
        check(json!({ "width": 3, "is_decoder": true }), Some("is_decoder"));
    }

    #[test]
    fn a_field_within_an_object_is_named_with_it() {
        let object = json!({ "rope_scaling": { "factor": 2.0, "use_cache": true } });
        let fields = Fields::new(&object);
        let part = fields.part("rope_scaling").unwrap().unwrap();
        part.float("factor").unwrap();
        let error = part.finish(&[]).unwrap_err().to_string();
        assert!(error.contains("`rope_scaling.use_cache`"), "{error}");
    }
}

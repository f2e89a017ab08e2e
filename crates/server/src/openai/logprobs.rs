//! Log-probabilities in the formats of OpenAI's two endpoints.

use std::borrow::Cow;

use calls::TokenLogprob;
use serde_json::{Map, Value, json};

/// The format of chat completions.
pub(super) fn of_chat(tokens: &[TokenLogprob]) -> Value {
    json!({ "content": entries(tokens), "refusal": null })
}

/// An entry for each token, with the most likely ones in its place.
pub(crate) fn entries(tokens: &[TokenLogprob]) -> Vec<Value> {
    let entry = |bytes: &[u8], logprob: f32| json!({ "token": text(bytes), "logprob": logprob, "bytes": bytes });
    let all = tokens.iter().map(|token| {
        let mut one = entry(&token.bytes, token.logprob);
        one["top_logprobs"] = token.top.iter().map(|(bytes, logprob)| entry(bytes, *logprob)).collect();
        one
    });
    all.collect()
}

/// The format of completions. Tokens with equal text, such as fragments of characters, share an entry.
pub(super) fn of_completion(tokens: &[TokenLogprob]) -> Value {
    let mut offset = 0;
    let mut offsets = Vec::new();
    for token in tokens {
        offsets.push(offset);
        offset += text(&token.bytes).chars().count();
    }
    let top = |token: &TokenLogprob| -> Value {
        token
            .top
            .iter()
            .map(|(bytes, logprob)| (text(bytes).into_owned(), json!(logprob)))
            .collect::<Map<_, _>>()
            .into()
    };
    json!({
        "tokens": tokens.iter().map(|token| text(&token.bytes)).collect::<Vec<_>>(),
        "token_logprobs": tokens.iter().map(|token| token.logprob).collect::<Vec<_>>(),
        "top_logprobs": tokens.iter().map(top).collect::<Vec<_>>(),
        "text_offset": offsets,
    })
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

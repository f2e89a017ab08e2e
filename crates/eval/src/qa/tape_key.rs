//! Keys of the tape: digests of all inputs of a reply or of scores.

use calls::{AdapterChoice, Call, OutputFormat, Prompt, Sampling, ScoreRequest, Stability};
use store::Digest;

/// Digest of all inputs of a reply: model, prompt, output format and sampling.
pub(crate) fn key(call: &Call, model: &str) -> String {
    let output_format = match &call.output_format {
        OutputFormat::Text => "text".to_owned(),
        OutputFormat::Choice(choices) => format!("choice {choices:?}"),
        OutputFormat::Json(schema) => format!("json {schema}"),
    };
    let mut how = format!("{} {} {:?} {}", call.step, call.agent, call.limits, sampling(&call.sampling));
    // Only where there are any, so that digests of older tapes stay valid.
    if call.adapter != AdapterChoice::OfAgent {
        how.extend([" ", &format!("{:?}", call.adapter)]);
    }
    if let Some(alternatives) = call.logprobs {
        how.extend([" logprobs ", &alternatives.to_string()]);
    }
    let parts = [vec![model.to_owned(), how, output_format], turns(&call.prompt)].concat();
    short(&parts.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Sampling options; penalties and biases only if there are any, so that digests of older tapes stay valid.
fn sampling(sampling: &Sampling) -> String {
    let Sampling { temperature, top_p, top_k, min_p, seed, .. } = sampling;
    let drawn = format!(
        "Sampling {{ temperature: {temperature:?}, top_p: {top_p:?}, top_k: {top_k}, min_p: {min_p:?}, seed: {seed} }}"
    );
    let Sampling { frequency_penalty, presence_penalty, repetition_penalty, logit_bias, .. } = sampling;
    if (*frequency_penalty, *presence_penalty, *repetition_penalty) == (0.0, 0.0, 1.0) && logit_bias.is_empty() {
        return drawn;
    }
    format!("{drawn} {frequency_penalty} {presence_penalty} {repetition_penalty} {logit_bias:?}")
}

/// Digest of all inputs of scores.
pub(super) fn score_key(request: &ScoreRequest, model: &str) -> String {
    let how = format!("score {} {} {} {:?}", request.step, request.agent, request.end, request.prompt.as_bare());
    let parts = [vec![model.to_owned(), how], turns(&request.prompt), request.continuations.clone()].concat();
    short(&parts.iter().map(String::as_str).collect::<Vec<_>>())
}

fn turns(prompt: &Prompt) -> Vec<String> {
    prompt.messages().into_iter().map(|turn| format!("{}: {}", turn.role.as_str(), turn.content)).collect()
}

/// Digest of a prompt's instructions.
pub(super) fn instructions(call: &Call) -> String {
    let fixed = call.prompt.segments().iter().filter(|segment| segment.stability == Stability::Static);
    short(&fixed.map(|segment| segment.text.as_str()).collect::<Vec<_>>())
}

/// The digest that the tape has of some texts.
pub(super) fn short(parts: &[&str]) -> String {
    Digest::of(parts).to_string()[..32].to_owned()
}

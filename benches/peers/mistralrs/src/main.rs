//! Speed of mistral.rs on the CPU, measured as `memlocal-bench engine` measures: reading prompts, and decoding answers at once.
//!
//!     cargo run --release -- FOLDER MODEL.gguf [TOKEN ...]
//!
//! TOKENs are the ids of tokens that end an answer; they are never drawn, so that answers have their full length.

use std::collections::HashMap;
use std::time::Instant;

use anyhow::{Context, Result};
use futures_util::future::try_join_all;
use mistralrs::{GgufModelBuilder, Model, RequestBuilder, TextMessageRole};

/// Tokens of a prompt that is read, about.
const PROMPT: usize = 512;
/// Answers at once.
const AT_ONCE: [usize; 4] = [1, 4, 8, 16];
/// Tokens of an answer.
const ANSWER: usize = 64;
const REPETITIONS: usize = 3;

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (folder, file) = (arguments.next().context("FOLDER")?, arguments.next().context("MODEL.gguf")?);
    let ends = arguments.map(|id| Ok((id.parse()?, -1000.0))).collect::<Result<HashMap<u32, f32>>>()?;
    let template = "{% for message in messages %}{{ message['content'] }}{% endfor %}";
    let model = GgufModelBuilder::new(folder, vec![file])
        .with_jinja_explicit(template_file(template)?)
        .with_prefix_cache_n(None)
        .with_force_cpu()
        .build()
        .await?;
    let speed = repeated(async || {
        let (tokens, seconds) = answered(&model, &[prompt(PROMPT, 0)], 1, &ends).await?;
        Ok(tokens.0 as f64 / seconds)
    });
    println!("prefill of about {PROMPT} tokens: {:.0} tokens/s", speed.await?);
    for count in AT_ONCE {
        let speed = repeated(async || {
            let prompts: Vec<String> = (0..count).map(|at| prompt(16, at)).collect();
            let (_, reading) = answered(&model, &prompts, 1, &ends).await?;
            let (tokens, seconds) = answered(&model, &prompts, ANSWER + 1, &ends).await?;
            Ok((tokens.1 - count) as f64 / (seconds - reading))
        });
        println!("decode, {count} at once: {:.1} tokens/s", speed.await?);
    }
    Ok(())
}

/// The median of several measurements after one that does not count.
async fn repeated(measure: impl AsyncFn() -> Result<f64>) -> Result<f64> {
    measure().await?;
    let mut all = Vec::new();
    for _ in 0..REPETITIONS {
        all.push(measure().await?);
    }
    all.sort_by(f64::total_cmp);
    Ok(all[all.len() / 2])
}

/// Words that are about one token each; prompts of different numbers share no beginning.
fn prompt(words: usize, number: usize) -> String {
    let list = ["time", "house", "water", "night", "money", "story", "light", "paper", "music", "river", "stone"];
    let word = |at: usize| list[(at * (number + 3) + number * 5 + at / list.len()) % list.len()];
    (0..words).map(word).collect::<Vec<_>>().join(" ")
}

/// Sends prompts at once. Returns their tokens, the tokens of the answers, and the seconds until the last one was there.
async fn answered(
    model: &Model,
    prompts: &[String],
    most: usize,
    ends: &HashMap<u32, f32>,
) -> Result<((usize, usize), f64)> {
    let start = Instant::now();
    let replies = try_join_all(prompts.iter().map(async |prompt| {
        let request = RequestBuilder::new()
            .add_message(TextMessageRole::User, prompt)
            .set_deterministic_sampler()
            .set_sampler_logits_bias(ends.clone())
            .set_sampler_max_len(most);
        anyhow::Ok(model.send_chat_request(request).await?)
    }));
    let replies = replies.await?;
    let seconds = start.elapsed().as_secs_f64();
    let tokens = replies.iter().fold((0, 0), |(read, written), reply| {
        (read + reply.usage.prompt_tokens, written + reply.usage.completion_tokens)
    });
    Ok((tokens, seconds))
}

fn template_file(template: &str) -> Result<String> {
    let path = std::env::temp_dir().join(format!("template-{}.jinja", std::process::id()));
    std::fs::write(&path, template)?;
    path.to_str().map(str::to_owned).context("the path is UTF-8")
}

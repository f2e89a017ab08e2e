//! Random calls on random weights: with any drafts and in any batch the reply is the same, what is streamed is the reply, and
//! stop strings end it where the text without them has the first.

use std::sync::{Arc, Mutex};

use calls::{Call, Caller, Finish, Limits, OnText, OutputFormat, Piece, Reply, Sampling, TenantId, TokenLogprob};
use engine::{Config, Engine};
use futures_util::future::join_all;
use models::Tokenizer;
use serde_json::json;

use crate::tiny::{ask, model, run, start};

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    fn pick<T: Clone>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())].clone()
    }
}

/// Letters that replies mostly consist of, so that drafts are often right.
const LETTERS: &str = "abc";

fn token(letter: char) -> u32 {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/decoder/llama/tokenizer.json");
    Tokenizer::from_file(golden.as_ref()).unwrap().encode(&letter.to_string()).unwrap()[0]
}

fn output_format(random: &mut Random) -> OutputFormat {
    let letters = json!({ "enum": ["a", "b", "ab", "abc", "cab"] });
    match random.below(6) {
        0 => OutputFormat::Choice(["abcabcabc", "abcabcab", "cabcab", "b"].map(str::to_owned).to_vec()),
        1 => OutputFormat::Json(json!({ "type": "string", "maxLength": 12 })),
        // No grammar enforces that items are unique.
        2 => OutputFormat::Json(json!({ "type": "array", "items": letters, "uniqueItems": true, "maxItems": 4 })),
        _ => OutputFormat::Text,
    }
}

fn call(random: &mut Random, letters: &[u32]) -> Call {
    let prompt = ["Write abcabcabcabc.", "abc cab bca", "Say it: [\"a\",\"b\",\"abc\",\"cab\"]"];
    let biased = random.below(4) > 0;
    let bias = |token: &u32| (*token, if biased { 8.0 + random.below(3) as f32 } else { 0.5 });
    let logit_bias = letters.iter().map(bias).collect();
    let sampling = Sampling {
        top_p: random.pick(&[1.0, 0.9]),
        top_k: random.pick(&[0, 0, 3]),
        min_p: random.pick(&[0.0, 0.0, 0.05]),
        frequency_penalty: random.pick(&[0.0, 0.0, 0.3]),
        presence_penalty: random.pick(&[0.0, 0.0, -0.5]),
        repetition_penalty: random.pick(&[1.0, 1.0, 1.1]),
        logit_bias,
        ..Sampling::at(random.pick(&[0.0, 0.7, 1.5]), random.below(1000) as u64)
    };
    let limits = Limits {
        max_output_tokens: 25 + random.below(20),
        thinking_tokens: random.pick(&[0, 0, 0, 45, 60]),
        min_output_tokens: random.pick(&[0, 0, 10]),
        stop_loops: random.below(2) == 0,
    };
    Call {
        output_format: output_format(random),
        limits,
        sampling,
        logprobs: random.pick(&[None, None, Some(0), Some(2)]),
        tenant: TenantId::new(random.below(2) as u64),
        ..ask(random.pick(&prompt), 1)
    }
}

/// What a reply is, apart from time and caches.
type Essence = (String, Option<String>, Finish, Option<String>, usize, Vec<TokenLogprob>, Option<u32>);

fn essence(reply: Reply) -> Essence {
    let Reply { text, thought, finish, stopped_by, end_token, usage, logprobs, .. } = reply;
    (text, thought, finish, stopped_by, usage.output_tokens, logprobs, end_token)
}

/// The reply to a call, checked against its stream.
async fn streamed(engine: &Engine, call: Call) -> Essence {
    let pieces = Arc::new(Mutex::new((String::new(), String::new(), Vec::new())));
    let sink = Arc::clone(&pieces);
    let on_text = Some(OnText::pieces(move |piece| {
        let (thought, text, logprobs) = &mut *sink.lock().unwrap();
        match piece {
            Piece::Thought(piece) => thought.push_str(piece),
            Piece::Text(piece, of_tokens) => {
                text.push_str(piece);
                logprobs.extend_from_slice(of_tokens);
            }
            Piece::ToolCall(_) | Piece::Arguments(_) => unreachable!("there are no tools"),
        }
    }));
    let reply = engine.call(Call { on_text, ..call }).await.unwrap();
    let (thought, text, logprobs) = &*pieces.lock().unwrap();
    assert_eq!((text, logprobs), (&reply.text, &reply.logprobs));
    assert_eq!(thought.trim(), reply.thought.as_deref().unwrap_or_default());
    essence(reply)
}

fn engines(name: &str) -> [Engine; 3] {
    [0, 8, 200].map(|max_draft_tokens| {
        let model = model(&format!("{name}-{max_draft_tokens}"), |tokenizer| tokenizer);
        start(model, Config { kv_tokens: 4096, max_draft_tokens, max_running: 6, ..Config::default() })
    })
}

#[test]
fn drafts_and_batches_change_no_reply() {
    let ([plain, some, many], letters) = (engines("random-drafts"), LETTERS.chars().map(token).collect::<Vec<_>>());
    let mut random = Random(5);
    for round in 0..25 {
        let calls: Vec<Call> = (0..8).map(|_| call(&mut random, &letters)).collect();
        let alone: Vec<Essence> = calls.iter().map(|call| run(streamed(&plain, call.clone()))).collect();
        for (drafts, engine) in [(0, &plain), (8, &some), (200, &many)] {
            let together = run(join_all(calls.iter().map(|call| streamed(engine, call.clone()))));
            for ((call, alone), together) in calls.iter().zip(&alone).zip(&together) {
                assert_eq!(alone, together, "round {round}, {drafts} drafts: {call:?}");
            }
        }
    }
}

/// The text before the first of some stop strings that is complete, and that string.
fn stopped<'a>(text: &'a str, stops: &'a [String]) -> Option<(&'a str, &'a str)> {
    (1..=text.len()).find_map(|end| {
        let found = stops.iter().filter_map(|stop| Some((text[..end].find(stop.as_str())?, stop.as_str())));
        found.min_by_key(|(at, _)| *at).map(|(at, stop)| (&text[..at], stop))
    })
}

#[test]
fn stop_strings_end_a_reply_where_the_text_without_them_has_the_first() {
    let ([plain, some, many], letters) = (engines("random-stops"), LETTERS.chars().map(token).collect::<Vec<_>>());
    let (mut random, mut stops_found) = (Random(9), 0);
    for round in 0..60 {
        let logit_bias = letters.iter().map(|token| (*token, 1000.0)).collect();
        let sampling = Sampling { logit_bias, ..Sampling::at(1.0, round) };
        let call = Call { sampling, output_format: OutputFormat::Text, ..call(&mut random, &letters) };
        let word = |random: &mut Random| (0..=random.below(5)).map(|_| random.pick(&['a', 'b', 'c'])).collect();
        let stop: Vec<String> = (0..=random.below(3)).map(|_| word(&mut random)).collect();
        let whole = run(streamed(&plain, call.clone()));
        for engine in [&plain, &some, &many] {
            let reply = run(streamed(engine, Call { stop: stop.clone(), ..call.clone() }));
            match stopped(&whole.0, &stop) {
                Some((text, by)) => {
                    assert_eq!((&*reply.0, reply.2, reply.3.as_deref()), (text, Finish::Stop, Some(by)), "{stop:?}");
                    stops_found += 1;
                }
                None => assert_eq!(reply, whole, "{stop:?}"),
            }
        }
    }
    assert!(stops_found > 60, "{stops_found}");
}

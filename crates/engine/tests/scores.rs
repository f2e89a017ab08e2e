//! Scores of given texts: equal to those of one forward pass over the whole text, whatever else is scored, at the cost
//! of their rows.

use calls::{
    Agent, Call, CallError, Caller, Finish, Priority, Prompt, Sampling, Score, ScoreRequest, Scorer, Stability, Status,
    TenantId, WorkflowId,
};
use candle_core::Device;
use engine::{Config, Engine};
use futures_util::FutureExt;
use futures_util::future::join_all;
use models::{Batch, KvCache, KvPrecision, LanguageModel, PagedSequence};

use crate::gate::Gate;
use crate::smollm2;
use crate::tiny::{ask, letters, model, run, start};

fn request(prompt: Prompt, continuations: &[&str], end: bool) -> ScoreRequest {
    let continuations = continuations.iter().map(|text| (*text).to_owned()).collect();
    let (workflow, tenant, priority) = (WorkflowId::default(), TenantId::LOCAL, Priority::default());
    ScoreRequest { agent: Agent::Responder, step: "test", workflow, tenant, priority, prompt, continuations, end }
}

fn score(engine: &Engine, request: ScoreRequest) -> Vec<Score> {
    run(engine.scorer().expect("an engine scores").score(request)).unwrap().scores
}

/// Log-probability of all tokens from `from` on, and of the end after them, in one pass over all rows.
fn brute_force(model: &LanguageModel, tokens: &[u32], from: usize) -> (f64, f64) {
    let to_u32 = |n: usize| u32::try_from(n).unwrap();
    let pages: Vec<u32> = (0..to_u32(tokens.len().div_ceil(32))).collect();
    let cache = KvCache::new(model.spec(), pages.len(), KvPrecision::F16, &Device::Cpu).unwrap();
    let admission: Vec<u32> = (0..to_u32(tokens.len())).collect();
    let batch = Batch {
        tokens,
        positions: &admission,
        slots: &admission,
        sequences: &[PagedSequence { rows: 0..tokens.len(), past: 0, pages: &pages }],
        logit_rows: &admission,
        wanted: &[],
    };
    let output = model.network.forward(batch, &cache).unwrap();
    let logprob = |row: usize, token: u32| {
        let row = output.row(row).unwrap().unwrap();
        let row: Vec<f64> = row[..model.tokenizer.len()].iter().copied().map(f64::from).collect();
        row[token as usize] - row.iter().map(|logit| logit.exp()).sum::<f64>().ln()
    };
    let sum = (from..tokens.len()).map(|at| logprob(at - 1, tokens[at])).sum();
    let end = model.eos.iter().map(|eos| logprob(tokens.len() - 1, *eos).exp()).sum::<f64>().ln();
    (sum, end)
}

const CONTINUATIONS: [&str; 7] = ["platinum", "p", "plate", "", " a gold chain, 3 ft", "Zoë", "platinum."];

#[test]
fn scores_are_those_of_a_pass_over_the_whole_text() {
    let reference = model("scores-reference", |tokenizer| tokenizer);
    let engine = start(model("scores", |tokenizer| tokenizer), Config { kv_tokens: 4096, ..Config::default() });
    // Prompts that end at different positions in a page.
    for question in
        ["What?", "What was it?", "What was the fob chain made of?", "What was the long fob chain made of??"]
    {
        let call = ask(question, 1);
        let prompt = engine.prompt_ids(&call).unwrap();
        for end in [false, true] {
            let scores = score(&engine, request(call.prompt.clone(), &CONTINUATIONS, end));
            for (text, score) in CONTINUATIONS.iter().zip(&scores) {
                let tokens = [prompt.clone(), reference.tokenizer.encode(text).unwrap()].concat();
                let (sum, ends) = brute_force(&reference, &tokens, prompt.len());
                assert_eq!(score.tokens, text.len(), "every byte is a token");
                assert_eq!(score.end_logprob.is_some(), end);
                let want = if end { sum + ends } else { sum };
                assert!((score.logprob - want).abs() < 1e-4, "{text:?}: {} for {want}", score.logprob);
                assert!(score.end_logprob.is_none_or(|found| (found - ends).abs() < 1e-4), "{text:?}");
            }
        }
    }
}

#[test]
fn a_score_does_not_depend_on_what_else_is_scored_or_written() {
    let engine = || start(model("order", |tokenizer| tokenizer), Config { kv_tokens: 4096, ..Config::default() });
    let prompt = || ask("What was the fob chain made of?", 1).prompt;
    let bits = |scores: &[Score]| scores.iter().map(|score| score.logprob.to_bits()).collect::<Vec<_>>();
    let all = bits(&score(&engine(), request(prompt(), &CONTINUATIONS, true)));
    let mut backwards = CONTINUATIONS;
    backwards.reverse();
    let mut found = bits(&score(&engine(), request(prompt(), &backwards, true)));
    found.reverse();
    assert_eq!(found, all);
    let alone: Vec<u64> =
        CONTINUATIONS.iter().flat_map(|text| bits(&score(&engine(), request(prompt(), &[*text], true)))).collect();
    assert_eq!(alone, all);
    let busy = engine();
    let write = |seed| busy.call(Call { sampling: Sampling::at(1.0, seed), ..ask("Tell me of the sea.", 100) });
    let beside = run(async {
        let scoring =
            async { busy.scorer().unwrap().score(request(prompt(), &CONTINUATIONS, true)).await.unwrap().scores };
        futures_util::future::join(join_all((0..6).map(write)), scoring).await.1
    });
    assert_eq!(bits(&beside), all);
    assert_eq!(bits(&score(&busy, request(prompt(), &CONTINUATIONS, true))), all, "everything is cached");
}

#[test]
fn many_continuations_cost_one_prompt_and_their_own_rows() {
    let config = Config { kv_tokens: 8192, max_running: 40, max_draft_tokens: 0, ..Config::default() };
    let engine = start(model("cost", |tokenizer| tokenizer), config);
    let prompt = ask(&"A long text about the sea. ".repeat(6), 1);
    let prompt_tokens = engine.prompt_ids(&prompt).unwrap().len();
    assert!(prompt_tokens % 32 > 8, "the last page is shared too: {prompt_tokens}");
    let texts: Vec<String> = (0..96).map(|number| format!("{:04}", number * 97)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    // A step runs only once the scorer has submitted all that it can. The call at the gate is of another tenant, with
    // which no page is shared.
    let beside = Call { tenant: TenantId::new(1), ..letters(&engine, 100) };
    let beside_tokens = engine.prompt_ids(&beside).unwrap().len();
    let (beside, gate) = Gate::hold(&engine, beside);
    let mut scoring = engine.score(request(prompt.prompt, &texts, true));
    let mut steps = 0;
    let scores = loop {
        if let Some(scored) = (&mut scoring).now_or_never() {
            break scored.unwrap().scores;
        }
        gate.pass();
        steps += 1;
    };
    assert!(steps < 40, "{steps} steps");
    drop(gate);
    run(beside).unwrap();
    assert!(scores.len() == 96 && scores.iter().all(|score| score.tokens == 4 && score.logprob < 0.0));
    let state = loop {
        let state = engine.state().remove(0);
        if state.running == 0 && state.used_pages == 0 {
            break state;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    };
    // The first token of each continuation is computed as the end of a prompt; no other prompt token is computed again.
    assert_eq!(state.read_tokens, (beside_tokens + prompt_tokens + 96) as u64);
}

#[test]
fn scores_are_the_log_probabilities_of_an_answer_that_says_the_same() {
    let Some(engine) = smollm2::engine(Config::default()) else { return };
    let mut compared = 0;
    for question in ["What is two plus two?", "Name a colour.", "Say hello.", "Who wrote Hamlet?"] {
        let call = smollm2::ask(question, 40);
        let reply = smollm2::run(engine.call(Call { logprobs: Some(0), ..call.clone() })).unwrap();
        let score = score(&engine, request(call.prompt, &[&reply.text], true))[0];
        if reply.finish != Finish::Stop || score.tokens != reply.logprobs.len() {
            continue;
        }
        let written: f64 = reply.logprobs.iter().map(|token| f64::from(token.logprob)).sum();
        let scored = score.logprob - score.end_logprob.unwrap();
        assert!((written - scored).abs() < 1e-4, "{question}: {written} and {scored}");
        compared += 1;
    }
    assert!(compared > 0, "no answer ended by itself");
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_is_scored_for_nothing() {
    let engine = start(model("refused", |tokenizer| tokenizer), Config { kv_tokens: 4096, ..Config::default() });
    let prompt = || Prompt::new().user(Stability::Volatile, "What?");
    let long = "x".repeat(300);
    let refused = run(engine.score(request(prompt(), &["a", &long], true))).unwrap_err();
    assert!(matches!(refused, CallError::TooLong { max_output_tokens: 301, .. }), "{refused}");
    assert_eq!(score(&engine, request(prompt(), &[], true)), []);
    assert!(run(engine.call(ask("Hello", 4))).is_ok(), "the next call is served");
}

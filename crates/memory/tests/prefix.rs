//! The prefixes that prompts of the shared-first layout have in common; the engine computes them once.

use calls::{Agent, Call, Caller, Scripted, Tokens};
use memory::{Event, Layout, Settings, gam};

use crate::scratch::{CONTEXT_TOKENS, Scratch, document, input, script};

/// The prompts of a step as the model reads them.
fn prompts(step: &str, events: &[Event]) -> Vec<String> {
    let prompt = |event: &Event| match event {
        Event::Call { step: found, prompt, .. } if found == step => Some(prompt.clone()),
        _ => None,
    };
    events.iter().filter_map(prompt).collect()
}

/// The length in tokens of the longest common prefix of two prompts.
fn shared_tokens(a: &str, b: &str) -> usize {
    let caller = Scripted::new(CONTEXT_TOKENS);
    let tokens = |text: &str| -> Vec<String> {
        caller.tokens().token_spans(Agent::Memorizer, text).into_iter().map(|span| text[span].to_owned()).collect()
    };
    tokens(a).iter().zip(tokens(b)).take_while(|(a, b)| *a == b).count()
}

fn tokens(text: &str) -> usize {
    Scripted::new(CONTEXT_TOKENS).count_tokens(Agent::Memorizer, text)
}

/// The instructions of a call: the whole system turn.
fn instructions(call: &Call) -> String {
    call.prompt.messages()[0].content.clone()
}

#[test]
fn a_memorizer_prompt_begins_with_the_instructions_and_the_memo_of_the_one_before() {
    let texts: Vec<String> = (1..=12).map(|page| format!("Day {page}: the keeper saw {} ships.", page * 7)).collect();
    let sections: Vec<&str> = texts.iter().map(String::as_str).collect();
    let caller = (1..=12).fold(Scripted::new(CONTEXT_TOKENS), |script, day| {
        script.answer("gam.memorize", format!("On day {day} the keeper wrote down how many ships had passed by."))
    });
    let events =
        Scratch::new().ingest(&[document("log.txt", &sections)], &caller, &Settings::default()).expect("scripted");
    let prompts = prompts("gam.memorize", &events);
    assert_eq!(prompts.len(), 12);
    for (number, (pair, call)) in prompts.windows(2).zip(caller.seen()).enumerate() {
        let memo = if number == 0 { String::new() } else { input(&call, "MEMORY_CONTEXT") };
        let law = tokens(&instructions(&call)) + tokens(&memo);
        let shared = shared_tokens(&pair[0], &pair[1]);
        assert!(shared >= law, "prompts {number} and the next share {shared} tokens, less than {law}");
        // The rest is at most a few delimiters and names of turns and inputs.
        assert!(shared <= law + 12, "prompts {number} and the next share {shared} tokens of {law}");
    }
}

/// The tokens shared by the plans of two questions, and the tokens of instructions and memo.
fn plans(layout: Layout) -> (usize, usize) {
    let scratch = Scratch::lighthouse();
    let ask = |question: &str| {
        let plan = r#"{"info_needs":["who"],"tools":["keyword"],"keyword_collection":["zebra"],"vector_queries":[],"page_index":[]}"#;
        let notes = r#"{"content":"","sources":[]}"#;
        let caller = script(&[("gam.plan", plan), ("gam.integrate", notes), ("answer", "Nobody.")]);
        let asked = scratch.ask(
            question,
            &caller,
            &Settings {
                layout,
                ..Settings::default().with_options(gam::Options { max_iterations: 1, ..gam::Options::default() })
            },
        );
        let call = caller.seen().remove(0);
        (prompts("gam.plan", &asked.events).remove(0), call)
    };
    let ((one, call), (other, _)) = (ask("Who keeps the lamp?"), ask("Where was a storm?"));
    (shared_tokens(&one, &other), tokens(&call.prompt.segments()[0].text) + tokens(&input(&call, "MEMORY")))
}

#[test]
fn plans_of_two_questions_share_all_but_the_question() {
    let (shared, law) = plans(Layout::SharedFirst);
    assert!(shared >= law, "{shared} of {law}");
    // In the paper's order the first sentences are shared.
    let (shared, law) = plans(Layout::Paper);
    assert!(shared < law, "{shared} of {law}");
}

#[test]
fn plans_share_all_but_the_question_to_the_letter() {
    let scratch = Scratch::lighthouse();
    let prompt = |question: &str| {
        let asked = scratch.ask(
            question,
            &script(&[("gam.plan", "?"), ("gam.integrate", "?"), ("answer", "?")]),
            &Settings::default(),
        );
        prompts("gam.plan", &asked.events).remove(0)
    };
    let (one, other) = (prompt("Aaa?"), prompt("Bbb?"));
    let (one, other) = (one.split_once("Aaa?"), other.split_once("Bbb?"));
    assert_eq!(one.expect("the question is there"), other.expect("the question is there"));
    assert!(one.is_some_and(|(before, _)| before.contains("Page 4: The new lamp came from Paris.")));
}

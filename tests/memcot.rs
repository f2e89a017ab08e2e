//! MemCoT with real weights, over both stores: every reply has its output format, every id was shown, every quote is in
//! the file.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use test_support::home::{Home, calls};

const QUESTIONS: [&str; 3] =
    ["What is the name of Bob's dog?", "When did Bob move, and where?", "Who likes the beach?"];

fn talk() -> String {
    let turn = |session: &str, time: &str, speaker: &str, text: &str| json!({ "session": session, "time": time, "speaker": speaker, "text": text });
    let turns = [
        turn("one", "8 May, 2023", "Ann", "Hello Bob, how are you?"),
        turn("one", "8 May, 2023", "Bob", "Fine. I adopted a dog last week."),
        turn("one", "8 May, 2023", "Ann", "What is its name?"),
        turn("one", "8 May, 2023", "Bob", "It is Rex. Here is a photo of him — isn’t he lovely?"),
        turn("two", "9 June, 2023", "Ann", "How is the dog?"),
        turn("two", "9 June, 2023", "Bob", "Rex likes the beach at Pell. We moved to Paris on Monday."),
    ];
    json!(turns).to_string()
}

#[test]
fn every_reply_has_its_form_and_every_quote_is_in_the_file() {
    let Some(home) = Home::new("memcot") else { return };
    home.write("talk.json", talk());
    for store in ["hybrid", "lightrag"] {
        let method = ["--method", "memcot", "--memcot-store", store];
        home.get(&[&["ingest", "talk.json", "--corpus", "talk", "--trace", "built"][..], &method].concat());
        let built = home.trace("built");
        let of_each_turn = if store == "lightrag" { 6 } else { 0 };
        for step in ["memcot.extract", "memcot.glean"] {
            // A reply that was cut is requested once more with the same prompt.
            let prompts: BTreeSet<&str> =
                calls(&built, step).iter().filter_map(|call| call["prompt"].as_str()).collect();
            assert_eq!(prompts.len(), of_each_turn, "{step} for {store}");
        }
        check(&built);
        for (seed, question) in (0..).zip(QUESTIONS) {
            let seed = format!("{seed}");
            let asked = ["ask", question, "--corpus", "talk", "--seed", &seed, "--window", "1", "--json"];
            let said = home.run(&[&asked[..], &method, &["--trace", "asked"]].concat());
            assert_eq!((said.code, said.err.as_str()), (0, ""), "{question} of {store}");
            let answer: Value = serde_json::from_str(&said.out).unwrap();
            quotes_are_exact(&home, &answer);
            let trace = home.trace("asked");
            assert_eq!(answer["usage"]["calls"], calls(&trace, "").len());
            assert!(calls(&trace, "memcot.zoom_in").len() <= 8, "steps of {question}");
            check(&trace);
        }
    }
}

/// Checks that no reply was given up for its form, and that ids are of lines that the prompt shows.
fn check(trace: &[Value]) {
    // A reply that was cut twice decides nothing; that is reported, and is not an error of format either.
    let is_cut = |event: &Value| event["reason"].as_str().is_some_and(|reason| reason.starts_with("the reply was cut"));
    let given_up = trace.iter().filter(|event| event["event"] == "fallback" && !is_cut(event));
    let steps: BTreeSet<&str> = given_up.map(|event| event["step"].as_str().unwrap()).collect();
    // The answer may be missing, which is not an error of format.
    assert!(steps.iter().all(|step| *step == "memcot.respond"), "{steps:?}");
    for (step, field, mark) in [
        ("memcot.zoom_in", "useful_ids", "["),
        ("memcot.zoom_out", "useful_ids", ""),
        ("memcot.judge", "useful_id", "["),
    ] {
        for call in calls(trace, step) {
            let reply: Value = serde_json::from_str(call["output"].as_str().unwrap()).unwrap();
            let prompt = call["prompt"].as_str().unwrap();
            for id in reply[field].as_array().unwrap() {
                let end = if mark.is_empty() { ":" } else { "]" };
                assert!(prompt.contains(&format!("\n{mark}{id}{end} ")), "{step} was not shown {id}: {prompt}");
            }
        }
    }
}

fn quotes_are_exact(home: &Home, answer: &Value) {
    let text = home.get(&["corpus", "show", "talk", "--text", "talk.json"]);
    for citation in answer["citations"].as_array().unwrap() {
        let [start, end] = ["start", "end"].map(|field| citation[field].as_u64().unwrap() as usize);
        let quoted: String = text.chars().skip(start).take(end - start).collect();
        assert_eq!(citation["quote"], quoted);
    }
}

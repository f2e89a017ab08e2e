//! `memlocal ask`: answers, citations, traces.

use serde_json::Value;
use store::Corpora;

use test_support::home::{Home, calls};
use test_support::story::{STORY, memorised};

const QUESTION: &str = "What did Zoë Lindqvist cut the new wick from?";

#[test]
fn an_answer_cites_its_source_to_the_character() {
    let Some(home) = memorised() else { return };
    let check = |method: &str, embedder: &str| {
        let rounds: &[&str] = if method == "gam" { &["--max-iterations", "1"] } else { &[] };
        let asked = [&["ask", QUESTION, "--corpus", "story", "--method", method, "--seed", "7"][..], rounds].concat();
        let said = home.run(&[&asked[..], &["--json", "--trace", method]].concat());
        assert_eq!((said.code, said.err.as_str()), (0, ""), "the output is one object only");
        let answer: Value = serde_json::from_str(&said.out).unwrap();
        let computed = ["short", "probability", "answerable", "abstained"];
        let always: Vec<&str> = fields(&answer).into_iter().filter(|field| !computed.contains(field)).collect();
        assert_eq!(always, ["answer", "statements", "method", "model", "embedder", "citations", "usage"]);
        assert_eq!(answer["method"], method);
        assert_eq!(answer["model"], "smollm2-135m-instruct:q4_1");
        assert_eq!(answer["embedder"], embedder);
        let costs = ["calls", "prompt_tokens", "cached_tokens", "output_tokens", "seconds"];
        assert_eq!(fields(&answer["usage"]), costs);
        adds_up(&home.trace(method), &answer["usage"]);
        quotes_are_exact(home, &answer);
        assert_eq!(home.run(&asked).out, printed(&answer), "the same seed gives the same answer");
        answer
    };
    check("gam", "all-minilm-l6-v2:f32");
    for (method, embedder) in [("rag", "all-minilm-l6-v2:f32"), ("direct", "none")] {
        let answer = check(method, embedder);
        let places: Vec<&Value> = places(&answer).collect();
        assert!(!places.is_empty(), "the question has words of the text");
        let short = answer["short"].as_str().expect("a small model answers with a span");
        assert!(STORY.contains(short) && answer["answer"].as_str().unwrap().contains(short), "{answer}");
        let trace = home.trace(method);
        let read = calls(&trace, "answer.read");
        assert!(read.iter().all(|call| call["model"] == "smollm2-135m-instruct:q4_1:reader"), "{read:?}");
        let shows = |call: &Value| call["prompt"].as_str().unwrap().contains("cut a new one from her own apron");
        assert!(read.iter().copied().any(shows), "{method} shows the text itself: {read:?}");
    }
}

#[test]
fn without_its_adapter_a_small_model_chooses_a_span() {
    let Some(home) = memorised() else { return };
    let asked =
        ["ask", QUESTION, "--corpus", "story", "--method", "rag", "--adapter", "none", "--trace", "spans", "--json"];
    let answer: Value = serde_json::from_str(&home.get(&asked)).unwrap();
    assert!(STORY.contains(answer["short"].as_str().expect("a span")), "{answer}");
    let trace = home.trace("spans");
    assert!(
        calls(&trace, "answer.read").is_empty() && trace.iter().any(|event| event["event"] == "score"),
        "{trace:?}"
    );
}

/// The places of statements that the text has, supported or quoted.
fn places(answer: &Value) -> impl Iterator<Item = &Value> {
    answer["statements"].as_array().unwrap().iter().filter_map(|statement| statement.get("citation"))
}

/// Checks that every quote is in the text that `corpus show` prints, at the position that the citation gives.
fn quotes_are_exact(home: &Home, answer: &Value) {
    let text = home.get(&["corpus", "show", "story", "--text", "story.txt"]);
    assert_eq!(text, STORY);
    for citation in places(answer) {
        assert_eq!(fields(citation), ["path", "page", "start", "end", "quote"]);
        assert_eq!(citation["path"], "~/work/story.txt");
        let [start, end] = ["start", "end"].map(|field| citation[field].as_u64().unwrap() as usize);
        let quoted: String = text.chars().skip(start).take(end - start).collect();
        assert_eq!(citation["quote"], quoted);
    }
}

#[test]
fn one_of_the_options_is_chosen() {
    let Some(home) = memorised() else { return };
    let question = ["ask", QUESTION, "--corpus", "story", "--method", "rag"];
    let options = ["--option", "her own apron", "--option", "an old sail"];
    let said = home.get(&[&question[..], &options, &["--trace", "chosen"]].concat());
    assert!(["[A] her own apron\n", "[B] an old sail\n"].iter().any(|option| said.starts_with(option)), "{said}");
    let trace = home.trace("chosen");
    let [answer] = calls(&trace, "answer")[..] else { panic!("one call answers: {trace:?}") };
    assert!(answer["prompt"].as_str().unwrap().contains("OPTIONS:\n[A] her own apron\n[B] an old sail\n"), "{answer}");
    for wrong in [&options[..2], &["--option", "a sail", "--option", " a sail"], &["--option", "", "--option", "a"]] {
        home.run(&[&question[..], wrong].concat()).is_error(&[
            "error: a choice needs two or more different options, none of them empty",
            "hint: give --option once for each answer to choose from",
        ]);
    }
}

#[test]
fn comorag_loops_over_one_layer() {
    let Some(home) = Home::new("layers") else { return };
    home.write("story.txt", STORY);
    let asked = ["ask", QUESTION, "--docs", "story.txt", "--method", "comorag", "--max-iterations", "1"];
    let asked = [&asked[..], &["--layers", "episodic", "--profile", "paper", "--trace", "trace"]].concat();
    home.get(&asked);
    let trace = home.trace("trace");
    for other in ["comorag.entities", "comorag.triples", "comorag.summarize", "comorag.filter"] {
        assert!(calls(&trace, other).is_empty(), "{other} is of another layer");
    }
    let prompt = calls(&trace, "comorag.answer")[0]["prompt"].as_str().unwrap();
    assert!(prompt.contains("SUMMARY_BY_EPISODIC:\n") && !prompt.contains("DETAIL_ARTICLE:\n"), "{prompt}");
}

#[test]
fn all_methods_are_compared_in_one_table() {
    let Some(home) = Home::new("compared") else { return };
    home.write("lamp.txt", "The lamp was out for two hours. Captain Orsini had slept.\n");
    let question = ["ask", "How long was the lamp out?", "--docs", "lamp.txt"];
    let asked = [&question[..], &["--compare", "--methods", "all", "--max-iterations", "1"]].concat();
    let said = home.run(&[&asked[..], &["--json"]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    let answers: Vec<Value> = serde_json::from_str(&said.out).unwrap();
    let methods: Vec<&str> = answers.iter().map(|answer| answer["method"].as_str().unwrap()).collect();
    assert_eq!(methods, ["gam", "memcot", "comorag", "mindgraph", "rag", "direct"]);
    for answer in &answers {
        assert!(answer["usage"]["calls"].as_u64().unwrap() > 0, "{answer}");
        assert!(answer["seconds"].as_f64().unwrap() > 0.0, "{answer}");
    }
    let table = home.run(&[&question[..], &["--compare", "--methods", "rag,direct"]].concat());
    assert_eq!(table.code, 0, "{}", table.err);
    let names: Vec<&str> = table.out.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["method", "rag", "direct"], "a row for each, in the order of the flag");
}

#[test]
fn what_is_memorised_of_documents_is_kept() {
    let Some(home) = Home::new("kept") else { return };
    home.write("notes/bill.md", "# The bill\n\nThe harbour office sent a bill of twelve crowns for the wick.\n");
    let ask = |trace: &str, docs: &str| {
        let gam = ["--method", "gam", "--max-iterations", "1"];
        let asked = [&["ask", "How much was the wick?", "--docs", docs, "--trace", trace][..], &gam].concat();
        let said = home.run(&asked);
        assert_eq!(said.code, 0, "{}", said.err);
        (said, calls(&home.trace(trace), "gam.memorize").len())
    };
    let (first, memorised) = ask("first", "notes");
    assert!(first.err.starts_with("added notes/bill.md (1 page)\nmemorising: 1 page done in "), "{}", first.err);
    // One page; a reply that was cut is requested once more.
    assert!((1..=2).contains(&memorised), "{memorised} calls");

    let (second, memorised) = ask("second", "./notes/../notes");
    assert_eq!((second.out, memorised), (first.out, 0));
    let lines: Vec<&str> = second.err.lines().collect();
    let [blank, usage] = lines[..] else { panic!("nothing is read, fetched or memorised again: {}", second.err) };
    assert!(blank.is_empty() && usage.contains(" calls, "), "{usage}");
}

#[test]
fn documents_that_are_gone_are_not_asked() {
    let Some(home) = Home::new("docs-gone") else { return };
    home.write("notes/a.md", "The harbour office sent a bill for the wick.\n");
    home.write("notes/b.md", "The bill was of twelve crowns.\n");
    home.write("notes/c.md", "The lamp was out for two hours.\n");
    let ask = |code: i32, method: &[&str]| {
        let said = home.run(&[&["ask", "What was the bill?", "--docs", "notes"], method].concat());
        assert_eq!(said.code, code, "{}", said.err);
        said
    };
    let rag = ["--method", "rag"];
    assert!(ask(0, &rag).out.contains("notes/b.md"));
    std::fs::remove_file(home.path("notes/b.md")).unwrap();
    home.write("notes/c.md", "");
    let said = ask(3, &rag);
    assert!(said.err.starts_with("skipped notes/c.md: the file is empty\nremoved notes/b.md\n"), "{}", said.err);
    assert!(!said.out.contains("notes/b.md") && !said.out.contains("twelve crowns"), "{}", said.out);
    // What could not be read meanwhile was kept.
    home.write("notes/c.md", "The lamp was out for two hours.\n");
    let said = ask(0, &rag);
    assert!(!said.err.contains("added ") && !said.err.contains("removed "), "{}", said.err);
    std::fs::remove_file(home.path("notes/c.md")).unwrap();
    let said = ask(0, &["--compare", "--methods", "direct"]);
    assert!(said.err.contains("removed notes/c.md\n"), "{}", said.err);
}

#[test]
fn the_method_is_chosen_for_the_model_and_the_text() {
    let Some(home) = Home::new("chosen") else { return };
    home.write("lamp.txt", "The lamp was out for two hours.\n");
    home.write("story.txt", STORY.repeat(6));
    let check = |docs: &str, method: &str, why: &str| {
        let said = home.run(&["ask", "How long was the lamp out?", "--docs", docs, "--explain", "--json"]);
        let answer: Value = serde_json::from_str(&said.out).unwrap();
        let reason = answer["chosen"].as_str().unwrap();
        assert!(answer["method"] == method && reason.contains(why), "{answer}");
        assert!(said.err.contains(&format!("\nmethod {method}: {reason}\n")), "{}", said.err);
    };
    let size = "smollm2-135m-instruct:q4_1 (134 million parameters) answers from up to 1024 tokens";
    check("lamp.txt", "direct", &format!("{size} at once"));
    check("story.txt", "rag", &format!("{size} at once; a model below 6 billion parameters retrieves"));
}

#[test]
fn documents_that_another_process_reads_are_waited_for() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;
    let Some(home) = Home::new("two-asks") else { return };
    home.write("lamp.txt", "The lamp was out for three nights.\n");
    let ask = ["ask", "How long was the lamp out?", "--docs", "lamp.txt", "--method", "direct"];
    let first = home.get(&ask);
    let corpora = Corpora::new(home.data());
    let name = corpora.list().expect("the corpora are read").remove(0).name.to_string();
    let writer = corpora.open_writer(&name).expect("nothing else writes it");
    let mut second = home.command(&ask).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut errors = BufReader::new(second.stderr.take().expect("it is piped")).lines().map_while(Result::ok);
    let waits = errors.any(|line| line.starts_with("waiting: "));
    assert!(waits, "it waits for the other process");
    drop(writer);
    let second = second.wait_with_output().expect("it ends");
    assert!(second.status.success());
    let answer = |text: &str| text.split("calls, ").next().unwrap_or_default().to_owned();
    assert_eq!(answer(&String::from_utf8_lossy(&second.stdout)), answer(&first));
}

#[test]
fn documents_that_cannot_be_read_are_named_and_the_rest_is_asked() {
    let Some(home) = Home::new("skipped") else { return };
    home.write("lamp.txt", "The lamp was out for two hours.\n");
    home.write("empty.txt", "");
    let said = home.run(&["ask", "How long was the lamp out?", "--docs", "empty.txt", "lamp.txt", "--method", "rag"]);
    let read = "skipped empty.txt: the file is empty\nadded lamp.txt (1 page)\n";
    assert!(said.code == 3 && said.err.starts_with(read), "{said:?}");
    let cited = "\n\n[1] lamp.txt, page 1, characters 0 to 31\n    The lamp was out for two hours.\n";
    assert!(said.out.ends_with(cited), "{}", said.out);
}

#[test]
fn a_citation_has_the_number_of_the_page_in_its_document() {
    let Some(home) = Home::new("page-numbers") else { return };
    home.write("a.txt", "The wall fell in May.\n");
    home.write("lamp.txt", "The lamp was out for two hours.\n");
    home.get(&["ingest", "a.txt", "lamp.txt", "--corpus", "all", "--method", "rag"]);
    let asked = home.get(&["ask", "How long was the lamp out?", "--corpus", "all", "--method", "rag"]);
    assert!(asked.contains(" lamp.txt, page 1, characters 0 to 31\n"), "{asked}");
    let pages = home.get(&["corpus", "show", "all", "--pages"]);
    let lamp = pages.lines().find(|line| line.starts_with("page 1 of lamp.txt, characters 0 to 32, "));
    assert!(lamp.is_some_and(|line| line.ends_with(", id 2")), "{pages}");
}

#[test]
fn a_text_that_does_not_fit_is_refused_with_both_numbers() {
    let Some(home) = Home::new("long") else { return };
    home.write("long.txt", STORY.repeat(60));
    let said = home.run(&["ask", "Who?", "--docs", "long.txt", "--method", "direct", "--profile", "paper"]);
    let lines: Vec<&str> = said.err.lines().collect();
    let [added, error, hint] = lines[..] else { panic!("{}", said.err) };
    assert!(added.starts_with("added long.txt ("), "{added}");
    let numbers: Vec<usize> = error.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [prompt_tokens, output_tokens, context_tokens] = numbers[..] else { panic!("{error}") };
    assert_eq!((said.code, said.out.as_str(), context_tokens), (1, "", 8192));
    assert!(prompt_tokens + output_tokens > context_tokens, "{error}");
    assert!(hint.starts_with("hint: use a method that retrieves what it needs (gam,"), "{hint}");
    let compared = ["ask", "Who?", "--docs", "long.txt", "--compare", "--methods", "direct", "--profile", "paper"];
    assert_eq!(home.run(&compared).err.lines().last(), Some(hint), "a comparison has the hint of its error");
}

#[test]
fn a_question_needs_words_and_something_to_ask() {
    let home = Home::bare("usage");
    home.write("a.txt", "a");
    let check = |words: &[&str], code: i32, says: &str| {
        let said = home.run(words);
        assert_eq!((said.code, said.out.as_str()), (code, ""));
        assert!(said.err.contains(says), "{}", said.err);
    };
    check(
        &["ask", " ", "--docs", "a.txt"],
        1,
        "error: the question is empty\nhint: put the question in quotes after `ask`\n",
    );
    check(&["ask", "Who?"], 2, "<--corpus <NAME>|--docs <PATH>...>");
    check(
        &["ask", "Who?", "--corpus", "a", "--docs", "a.txt"],
        2,
        "'--corpus <NAME>' cannot be used with '--docs <PATH>...'",
    );
    check(
        &["ask", "Who?", "--docs", "a.txt", "--method", "best"],
        2,
        "`best` is not one of auto, gam, memcot, comorag, mindgraph, rag, direct",
    );
    check(&["ask", "Who?", "--docs", "a.txt", "--k", "0"], 2, "it must be 1 or more");
    check(&["ask", "Who?", "--docs", "a.txt", "--evidence-tokens", "1"], 2, "it must be 64 or more");
    check(&["ask", "Who?", "--docs", "a.txt", "--temperature", "-1"], 2, "it must be 0 to 2");
    check(&["ask", "Who?", "--docs", "a.txt", "--temperature", "3"], 2, "it must be 0 to 2");
}

fn fields(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Checks that the costs of the calls and scores in a trace add up to the reported total.
fn adds_up(trace: &[Value], usage: &Value) {
    let calls = calls(trace, "");
    assert_eq!(usage["calls"], calls.len());
    for field in ["prompt_tokens", "cached_tokens", "output_tokens"] {
        let sum: u64 = calls.iter().map(|call| call[field].as_u64().unwrap_or_default()).sum();
        assert_eq!(usage[field], sum, "{field}");
    }
    let milliseconds: u64 = calls.iter().map(|call| call["milliseconds"].as_u64().unwrap()).sum();
    let seconds = usage["seconds"].as_f64().unwrap();
    // Each call is rounded down to whole milliseconds.
    assert!(
        (0.0..=calls.len() as f64 + 1.0).contains(&(seconds * 1000.0 - milliseconds as f64)),
        "{seconds} {milliseconds}"
    );
}

/// The output without `--json`.
fn printed(answer: &Value) -> String {
    let mut lines = vec![answer["answer"].as_str().unwrap().to_owned()];
    if let Some(short) = answer["short"].as_str() {
        match answer["probability"].as_f64() {
            Some(right) => lines.push(format!("\nshort answer: {short} ({:.0} % likely to be right)", right * 100.0)),
            None if answer["answer"] == short => {}
            None => lines.push(format!("\nshort answer: {short}")),
        }
    }
    let mut place = |what: String, citation: &Value| {
        let [page, start, end] = ["page", "start", "end"].map(|field| &citation[field]);
        lines.push(format!("\n{what} story.txt, page {page}, characters {start} to {end}"));
        lines.extend(citation["quote"].as_str().unwrap().lines().map(|line| format!("    {line}")));
    };
    let statements = answer["statements"].as_array().unwrap();
    for statement in statements.iter().filter(|statement| statement["verdict"] == "quoted") {
        place("NOT CONFIRMED AS THE ANSWER, words of".into(), &statement["citation"]);
    }
    for (number, citation) in (1..).zip(answer["citations"].as_array().unwrap()) {
        place(format!("[{number}]"), citation);
    }
    lines.join("\n") + "\n"
}

#[test]
fn the_portable_backend_answers_with_the_same_evidence() {
    let Some(home) = Home::new("portable") else { return };
    // The paragraph with the evidence alone: this backend is slow.
    home.write("story.txt", STORY.split("\n\n").nth(2).unwrap());
    let asked = ["ask", QUESTION, "--docs", "story.txt", "--method", "rag", "--json"];
    let answer = |backend: &str| -> Value {
        let said = home.run(&[&asked[..], &["--backend", backend, "--trace", backend]].concat());
        assert_eq!(said.code, 0, "{}", said.err);
        let trace = home.trace(backend);
        // The adapter that the model comes with reads the answer.
        let read = calls(&trace, "answer.read");
        assert!(read.iter().all(|call| call["model"] == "smollm2-135m-instruct:q4_1:reader"), "{read:?}");
        serde_json::from_str(&said.out).unwrap()
    };
    let (portable, kernels) = (answer("portable"), answer("kernels"));
    assert!(STORY.contains(portable["short"].as_str().expect("a small model answers with a span")), "{portable}");
    for field in ["answer", "short", "citations", "model", "embedder"] {
        assert_eq!(portable[field], kernels[field], "{field}");
    }
}

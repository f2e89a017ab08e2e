//! The memorizer (equations 1 and 2): one call per page, given the abstracts before it; each reply is stored at once.

use std::ops::Range;
use std::sync::Mutex;

use calls::{Agent, BoxFuture, Call, CallError, Caller, ModelInfo, Reply, Scripted, Tokens};
use memory::{Event, MemoryError, Settings};
use store::{Author, PassageId};

use crate::scratch::{CONTEXT_TOKENS, Scratch, calls_of, document, input, script, sessions};

fn memorizer(abstracts: &[&str]) -> Scripted {
    abstracts.iter().fold(Scripted::new(CONTEXT_TOKENS), |script, text| script.answer("gam.memorize", *text))
}

/// The memorizer's prompts: memory and message of every call.
fn shown(caller: &Scripted) -> Vec<(String, String)> {
    let calls = calls_of("gam.memorize", caller);
    calls.iter().map(|call| (input(call, "MEMORY_CONTEXT"), input(call, "INPUT_MESSAGE"))).collect()
}

fn pairs(shown: &[(String, String)]) -> Vec<(&str, &str)> {
    shown.iter().map(|(memory, message)| (memory.as_str(), message.as_str())).collect()
}

#[test]
fn pages_are_memorised_in_order_each_with_the_abstracts_before_it() {
    let scratch = Scratch::new();
    let sources = [document("a.txt", &["One.", "Two."]), document("b.txt", &["Three."])];
    let caller = memorizer(&["  First.\n", "Second.", "Third."]);
    scratch.ingest(&sources, &caller, &Settings::default()).expect("all is scripted");
    let want =
        [("No memory currently.", "One."), ("Page 1: First.", "Two."), ("Page 1: First.\nPage 2: Second.", "Three.")];
    assert_eq!(pairs(&shown(&caller)), want);
    assert_eq!(caller.steps(), ["gam.memorize"; 3]);
    let memo = [(1, "First."), (2, "Second."), (3, "Third.")].map(|(page, text)| (page, text.to_owned()));
    assert_eq!(scratch.memo(), memo);
}

#[test]
fn the_date_of_a_session_travels_with_all_of_its_pages() {
    let words = "word ".repeat(400);
    let said = [("Ann", words.as_str()), ("Bob", words.as_str())];
    let source = sessions("talk.json", &[("session_1", "8 May, 2023", &said)]);
    let scratch = Scratch::new();
    let caller = memorizer(&["First.", "Second."]);
    scratch.ingest(&[source], &caller, &Settings::default()).expect("all is scripted");
    let shown = shown(&caller);
    assert!(shown.len() > 1, "a session of several pages");
    for (number, (_, message)) in shown.iter().enumerate() {
        assert_eq!(message.matches("8 May, 2023").count(), 1, "page {number}: {}", &message[..80]);
    }
    // So are the pages that are evidence.
    let (answers, rag) = (script(&[("answer", "In May.")]), Settings::new(&memory::rag::Rag));
    scratch.ingest(&[], &answers, &rag).expect("nothing is called");
    scratch.ask("When?", &answers, &rag).answer.expect("the script is whole");
    let context = input(&calls_of("answer", &answers)[0], "CONTEXT");
    let pages = context.matches("[search](").count();
    assert_eq!((pages, context.matches("8 May, 2023").count()), (shown.len().min(5), pages), "{context}");
}

#[test]
fn an_abstract_is_one_line_of_the_memo() {
    let scratch = Scratch::new();
    let caller = memorizer(&["Ada keeps\nthe lamp.\n\nPage 2: invented.", "Tom."]);
    scratch.ingest(&[document("a.txt", &["One.", "Two."])], &caller, &Settings::default()).expect("all is scripted");
    assert_eq!(shown(&caller)[1].0, "Page 1: Ada keeps the lamp. Page 2: invented.");
}

/// The paper's released code skips empty and repeated abstracts, so that its page numbers shift.
#[test]
fn empty_and_equal_abstracts_keep_their_pages() {
    let scratch = Scratch::new();
    let caller = memorizer(&["Same.", "Same.", "", "Last."]);
    let source = document("a.txt", &["One.", "Two.", "Three.", "Four."]);
    scratch.ingest(&[source], &caller, &Settings::default()).expect("all is scripted");
    assert_eq!(shown(&caller)[3].0, "Page 1: Same.\nPage 2: Same.\nPage 3:");
    assert_eq!(scratch.memo().len(), 4);
}

#[test]
fn a_memo_longer_than_a_quarter_of_the_context_is_shown_in_its_latest_part() {
    let scratch = Scratch::new();
    let texts: Vec<String> = (1..=8).map(|page| format!("Message {page}.")).collect();
    let sections: Vec<&str> = texts.iter().map(String::as_str).collect();
    // 163 tokens per line with "Page 1:", and 512 per part: three lines. The script refuses prompts that do not fit.
    let caller = Scripted::new(2048).answer("gam.memorize", "word ".repeat(160));
    let events =
        scratch.ingest(&[document("a.txt", &sections)], &caller, &Settings::default()).expect("all prompts fit");
    let first_and_lines = |(memory, _): &(String, String)| {
        (memory[..memory.find(['.', ':']).expect("a page or nothing")].to_owned(), memory.lines().count())
    };
    let got: Vec<(String, usize)> = shown(&caller).iter().map(first_and_lines).collect();
    let want = [
        ("No memory currently", 1),
        ("Page 1", 1),
        ("Page 1", 2),
        ("Page 1", 3),
        ("Page 4", 1),
        ("Page 4", 2),
        ("Page 4", 3),
        ("Page 7", 1),
    ];
    assert_eq!(got, want.map(|(first, lines)| (first.to_owned(), lines)));
    let memo = |event: &Event| match event {
        Event::Memo { step, entries, left_out } => Some((step.clone(), *entries, *left_out)),
        _ => None,
    };
    let traced: Vec<_> = events.iter().filter_map(memo).collect();
    let want = [(4, 3), (5, 3), (6, 3), (7, 6)];
    assert_eq!(traced, want.map(|(entries, left_out)| ("gam.memorize".to_owned(), entries, left_out)));
}

#[test]
fn abstracts_that_were_stored_before_are_in_the_memo_at_their_pages() {
    let scratch = Scratch::new();
    let sources = [document("a.txt", &["One.", "Two.", "Three.", "Four.", "Five."])];
    let no_calls = Scripted::new(CONTEXT_TOKENS);
    scratch.ingest(&sources, &no_calls, &Settings::new(&memory::rag::Rag)).expect("nothing is called");
    let author = Author { model: "scripted".to_owned(), prompt: "0123".to_owned() };
    for (page, text) in [(2, "Second."), (3, "Third."), (5, "Fifth.")] {
        scratch.writer().put_notes(PassageId(page), &[("abstract", text)], &author).expect("the page is there");
    }
    let caller = memorizer(&["First.", "Fourth."]);
    scratch.ingest(&[], &caller, &Settings::default()).expect("all is scripted");
    let want = [("No memory currently.", "One."), ("Page 1: First.\nPage 2: Second.\nPage 3: Third.", "Four.")];
    assert_eq!(pairs(&shown(&caller)), want);
}

/// A script that records the texts whose tokens are counted.
struct Counting {
    script: Scripted,
    counted: Mutex<Vec<String>>,
}

impl Caller for Counting {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Reply, CallError>> {
        self.script.call(call)
    }

    fn tokens(&self) -> &dyn Tokens {
        self
    }

    fn models(&self) -> &dyn ModelInfo {
        self.script.models()
    }
}

impl Tokens for Counting {
    fn context_tokens(&self, agent: Agent) -> usize {
        self.script.context_tokens(agent)
    }

    fn token_spans(&self, agent: Agent, text: &str) -> Vec<Range<usize>> {
        self.counted.lock().expect("no test panics with the lock").push(text.to_owned());
        self.script.token_spans(agent, text)
    }

    fn prompt_tokens(&self, call: &Call) -> usize {
        self.script.prompt_tokens(call)
    }
}

#[test]
fn the_tokens_of_an_abstract_are_counted_once_however_many_pages_follow() {
    let script = memorizer(&["First.", "Second.", "Third.", "Fourth."]);
    let caller = Counting { script, counted: Mutex::default() };
    let sources = [document("a.txt", &["One.", "Two.", "Three.", "Four."])];
    Scratch::new().ingest(&sources, &caller, &Settings::default()).expect("all is scripted");
    let counted = caller.counted.into_inner().expect("no test panics with the lock");
    let lines: Vec<&String> = counted.iter().filter(|text| text.starts_with("Page ")).collect();
    assert_eq!(lines, ["Page 1: First.", "Page 2: Second.", "Page 3: Third.", "Page 4: Fourth."]);
}

#[test]
fn a_changed_document_is_memorised_anew_and_a_removed_one_is_forgotten() {
    let scratch = Scratch::new();
    let (a, b) = (document("a.txt", &["One.", "Two."]), document("b.txt", &["Three."]));
    scratch
        .ingest(&[a.clone(), b], &memorizer(&["First.", "Second.", "Third."]), &Settings::default())
        .expect("scripted");

    // Nothing has changed, so no call is made.
    scratch.ingest(&[a], &Scripted::new(CONTEXT_TOKENS), &Settings::default()).expect("the script has no answers");

    // An unchanged page now belongs to another text.
    let caller = memorizer(&["First again.", "Changed."]);
    scratch.ingest(&[document("a.txt", &["One.", "Zwei."])], &caller, &Settings::default()).expect("scripted");
    let want = [("Page 3: Third.", "One."), ("Page 3: Third.\nPage 4: First again.", "Zwei.")];
    assert_eq!(pairs(&shown(&caller)), want);

    let mut writer = scratch.writer();
    let b = writer.document_at("b.txt").expect("it can be read").expect("it is there");
    writer.remove_document(b.id).expect("it is there");
    drop(writer);
    let caller = memorizer(&["Fourth."]);
    scratch.ingest(&[document("c.txt", &["Four."])], &caller, &Settings::default()).expect("scripted");
    assert_eq!(pairs(&shown(&caller)), [("Page 4: First again.\nPage 5: Changed.", "Four.")]);
}

/// Cutting a text anew discards all its abstracts.
#[test]
fn an_unchanged_text_keeps_its_pages_unless_other_pages_are_asked_for() {
    let scratch = Scratch::new();
    let source = [document("a.txt", &[&"word ".repeat(600)])];
    scratch.ingest(&source, &memorizer(&["First.", "Second."]), &Settings::default()).expect("pages of 512 tokens");
    let no_calls = |context_tokens, page_tokens| {
        let settings = Settings { page_tokens, ..Settings::default() };
        scratch.ingest(&source, &Scripted::new(context_tokens), &settings).expect("the script has no answers");
        assert_eq!(scratch.memo().len(), 2);
    };
    // This model alone would have pages of 128 tokens.
    no_calls(2048, None);
    no_calls(2048, Some(512));
    let caller = memorizer(&["First.", "Second.", "Third."]);
    let settings = Settings { page_tokens: Some(200), ..Settings::default() };
    scratch.ingest(&source, &caller, &settings).expect("pages of 200 tokens");
    assert_eq!(scratch.memo().len(), 3);
}

#[test]
fn a_failure_keeps_what_was_written_and_is_no_memory_itself() {
    let whole = Scratch::new();
    let source = [document("a.txt", &["One.", "Two.", "Three.", "Four."])];
    let abstracts = ["First.", "Second.", "Third.", "Fourth."];
    whole.ingest(&source, &memorizer(&abstracts), &Settings::default()).expect("all is scripted");
    let errors = [
        CallError::Failed { step: "gam.memorize", reason: "the device is gone".into() },
        CallError::Overloaded { queued: 3 },
        CallError::TooLong { step: "gam.memorize", prompt_tokens: 9, max_output_tokens: 9, context_tokens: 9 },
    ];
    for error in errors {
        let scratch = Scratch::new();
        let fails = memorizer(&abstracts[..2]).fail("gam.memorize", error.clone());
        match scratch.ingest(&source, &fails, &Settings::default()) {
            Err(MemoryError::Call(found)) => assert_eq!(found, error),
            other => panic!("{other:?}"),
        }
        assert_eq!(scratch.memo(), [(1, "First.".to_owned()), (2, "Second.".to_owned())]);

        let resumed = memorizer(&abstracts[2..]);
        scratch.ingest(&source, &resumed, &Settings::default()).expect("the rest is scripted");
        let want = [
            ("Page 1: First.\nPage 2: Second.", "Three."),
            ("Page 1: First.\nPage 2: Second.\nPage 3: Third.", "Four."),
        ];
        assert_eq!(pairs(&shown(&resumed)), want);
        let digest = |scratch: &Scratch| scratch.corpus().digest().expect("it can be read");
        assert_eq!(digest(&scratch), digest(&whole));
    }
}

//! The page in a real browser, in front of scripted models, by keyboard and by pointer.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use calls::{Caller, ModelState, Scripted, Status};
use serde_json::{Value, json};
use server::{Keys, KeysFile};

use crate::graph::{self, built};
use crate::host::{CONTEXT_TOKENS, Host, eventually, says};
use crate::shelf;
use test_support::browser::Browser;
use test_support::double::Double;
use test_support::thinker::Thinker;

const STORY: &str = "# The light at Pell\n\nThe mill stood by the river, and its wheel had not turned since the flood of the\n\
                     autumn before.\n\n## The wedding\n\nIn 1911 Ada Brook, who kept the light, married Tom Reed. Their cat \
                     was grey.\n\nThe new lamp was bought in Paris for 900 crowns.";
pub const QUESTION: &str = "When did Ada Brook marry?";
const SUGGESTED: &str = "Where was the new lamp bought?";
const ANSWER: &str = "Ada Brook married Tom Reed in 1911. They kept bees.";

/// A browser at an address of the page; `None` if there is no browser.
pub fn browse(host: &Host, hash: &str) -> Option<Browser> {
    let profile = host.folder.path().join("browser");
    fs::create_dir_all(&profile).expect("it can be made");
    let mut page = Browser::start(&profile)?;
    page.width(1400);
    page.open(&format!("http://{}/{hash}", host.address));
    Some(page)
}

/// The same on a corpus.
pub fn page(host: &Host, corpus: &str, view: &str) -> Option<Browser> {
    let mut page = browse(host, &format!("#/c/{corpus}/{view}"))?;
    page.until("the corpus is chosen", "document.getElementById('count').textContent !== ''");
    // A hidden box takes no focus.
    page.until("a view is shown", "document.body.dataset.view !== undefined");
    Some(page)
}

/// The text of an element; empty if it is missing or hidden.
pub fn text(selector: &str) -> String {
    format!("(at => at?.checkVisibility() ? at.innerText : '')(document.querySelector({}))", json!(selector))
}

pub fn click(page: &mut Browser, selector: &str) {
    page.until("it can be clicked", &format!("document.querySelector({}) !== null", json!(selector)));
    page.value(&format!("document.querySelector({}).click()", json!(selector)));
}

/// Clicks the button of an element with this text.
fn press(page: &mut Browser, within: &str, label: &str) {
    let found = format!(
        "[...document.querySelectorAll({})].find(at => at.textContent === {} && at.checkVisibility())",
        json!(format!("{within} button")),
        json!(label)
    );
    page.until("the button is there", &format!("{found} !== undefined"));
    page.value(&format!("{found}.click()"));
}

/// Drops files on the page as a user does.
fn drop_files(page: &mut Browser, files: &[(&str, &str)]) {
    page.value(&format!(
        "(() => {{
        const transfer = new DataTransfer();
        for (const [name, text] of {}) transfer.items.add(new File([text], name));
        document.body.dispatchEvent(new DragEvent('drop', {{ dataTransfer: transfer, bubbles: true, cancelable: true }}));
    }})()",
        json!(files)
    ));
}

/// Asks in the box by keyboard.
pub fn ask(page: &mut Browser, question: &str) {
    page.value(&format!(
        "(at => {{ at.focus(); at.value = {}; }})(document.getElementById('question'))",
        json!(question)
    ));
    page.press("Enter");
}

pub fn answered(page: &mut Browser) {
    page.until("there is an answer", "document.querySelector('.turn:last-child .tools') !== null");
    // The list of conversations is made anew after an answer.
    page.until("it is listed", "document.querySelector('#threads a[aria-current]') !== null");
}

/// Waits until no questions are being suggested: the server reads the corpus for them, and deletes nothing meanwhile.
fn suggested(page: &mut Browser) {
    page.until("questions are suggested", "document.getElementById('suggesting').textContent === ''");
}

/// Presses Tab until an expression is true of the focused element.
#[track_caller]
fn tab_to(page: &mut Browser, what: &str) {
    for _ in 0..60 {
        page.press("Tab");
        if page.value(&format!("(at => {what})(document.activeElement)")) == true {
            return;
        }
    }
    panic!("the keyboard does not reach {what}: {}", page.value("document.activeElement.outerHTML"));
}

fn focused(page: &mut Browser) -> Value {
    page.value("document.activeElement.getAttribute('aria-label') || document.activeElement.textContent")
}

fn asked() -> Scripted {
    let suggested = json!({ "question": SUGGESTED }).to_string();
    let rewritten = json!({ "question": "What colour was their cat?" }).to_string();
    let script = Scripted::new(CONTEXT_TOKENS).answer("answer", ANSWER).answer("suggest", suggested);
    script.answer("follow_up.rewrite", rewritten)
}

/// A corpus with a story, prepared for `rag`.
pub fn told() -> Host {
    let shelf = Arc::new(shelf::Three::default());
    let host = Host::with(Arc::new(half_cached(asked())), |config| {
        config.shelf = Some(shelf);
        config.settings =
            vec![("host".to_owned(), "127.0.0.1".to_owned()), ("load-models".to_owned(), "auto".to_owned())];
    });
    host.corpus("a", &[("story.md", STORY), ("letter.txt", "Dear Tom, the rope has come.")]);
    host
}

#[test]
fn dropped_files_become_a_corpus_that_answers_at_once() {
    let host = Host::new(asked());
    let Some(mut page) = browse(&host, "") else { return };
    page.until("the first screen is there", "!document.getElementById('new-view').hidden");
    assert_eq!(page.value(&text("h1")), "Ask your documents");
    ask(&mut page, QUESTION);
    page.until("it needs documents", &format!("{}.startsWith('Add documents first')", text("#problem")));
    let image = ("портрет.png", "\0");
    drop_files(&mut page, &[("Свет в Пелле.md", STORY), image]);
    answered(&mut page);
    assert_eq!(page.value(&text("#corpus-title")), "Свет в Пелле and 1 other");
    assert_eq!(page.value(&text(".question")), QUESTION);
    assert!(page.value(&text(".prose")).as_str().unwrap().starts_with("Ada Brook married Tom Reed in 1911."));
    page.until("one file is named", &format!("{} === '1 file could not be read. Show'", text("#strip")));
    click(&mut page, "#strip-link");
    page.until("the good one is listed", &format!("{}.includes('Свет в Пелле.md')", text("#documents")));
    let job = page.value(&text(".job"));
    assert!(job.as_str().unwrap().contains("портрет.png\nunsupported file type"), "the reason is shown: {job}");
    assert_eq!(job.as_str().unwrap().matches(" .pdf ").count(), 1, "the types are listed once: {job}");
    press(&mut page, ".job", "Dismiss");
    page.until("it is dismissed", "document.querySelector('.job') === null");

    // The same files again, in the corpus that is chosen.
    drop_files(&mut page, &[("letter.txt", "Dear Tom."), ("note.txt", "Rope.")]);
    page.until("they are added", &format!("{} === '3'", text("#count")));
    assert_eq!(host.get("/v1/corpora").json()["corpora"].as_array().map(Vec::len), Some(1));
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn dropped_files_of_one_name_are_kept_apart_and_arrive_if_the_user_leaves() {
    let host = Host::new(asked());
    let Some(mut page) = browse(&host, "") else { return };
    let titles = || {
        let listed = host.get("/v1/corpora").json()["corpora"].take();
        listed.as_array().map_or(Vec::new(), |all| all.iter().map(|corpus| corpus["title"].clone()).collect())
    };
    // Another view is opened as soon as each corpus exists.
    for count in 1..=2 {
        page.value("location.hash = '#/new'");
        page.until("the first screen is there", "!document.getElementById('new-view').hidden");
        drop_files(&mut page, &[("same.txt", "The lamp is red."), ("same.txt", "The lamp is blue.")]);
        eventually("a corpus is made", || titles().len() == count);
        page.value("location.hash = '#/operations'");
        page.until("the view is there", "!document.getElementById('operations-view').hidden");
    }
    assert_eq!(titles(), ["same and 1 other", "same and 1 other (2)"]);
    for name in ["same-and-1-other", "same-and-1-other-2"] {
        let listed = || host.get(&format!("/v1/corpora/{name}/documents")).json()["documents"].take();
        eventually("both are read", || listed().as_array().map(Vec::len) == Some(2));
        let documents = listed();
        let mut names: Vec<_> =
            documents.as_array().unwrap().iter().filter_map(|document| document["name"].as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["same (2).txt", "same.txt"]);
    }
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn an_answer_shows_its_verdicts_and_opens_its_sources() {
    let host = told();
    let Some(mut page) = page(&host, "a", "ask") else { return };
    ask(&mut page, QUESTION);
    answered(&mut page);
    assert_eq!(page.value(&text(".verdicts")), "2 statements checked: 1 supported, 1 not supported");
    assert_eq!(page.value("document.querySelector('.statement.unsupported').textContent.trim()"), "They kept bees.");
    let kept = "/^\\S+\\[1\\]$/.test(document.querySelector('.unbroken').textContent)";
    assert_eq!(page.value(kept), true, "the mark follows the last word");
    let wraps = "getComputedStyle(document.querySelector('.unbroken')).whiteSpace";
    assert_eq!(page.value(wraps), "nowrap");
    page.value("document.getElementById('main').focus()");
    tab_to(&mut page, "at.className === 'mark'");
    assert_eq!(focused(&mut page), "Supported by source 1: story.md");
    page.press("Enter");
    page.until("the place is marked", "document.querySelector('#source-text mark') !== null");
    let quote = page.value("document.querySelector('.source-card .quote').textContent");
    let marked = page.value("document.activeElement.tagName + document.querySelector('#source-text mark').textContent");
    assert_eq!(marked, format!("MARK{}", quote.as_str().unwrap()));
    assert_eq!(page.value("document.querySelector('#source-text h3').innerText"), "The light at Pell");
    let reflowed = "document.querySelector('#source-text p').innerText.includes('flood of the autumn before.')";
    assert_eq!(page.value(reflowed), true, "line breaks of the source are not those of the reader");
    page.value(
        "(at => { at.value = 'the light'; at.dispatchEvent(new Event('input')); })(document.getElementById('source-find'))",
    );
    page.until("the search finds", &format!("{} === 'Hit 1 of 2'", text("#source-where")));
    click(&mut page, "#source-next");
    assert_eq!(page.value(&text("#source-where")), "Hit 2 of 2");
    page.value("document.getElementById('source-text').focus()");
    page.press("Escape");
    assert_eq!(page.value("document.getElementById('source').hidden"), true);
    assert_eq!(focused(&mut page), "Supported by source 1: story.md", "and back");
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn suggested_questions_are_made_once_and_asked_by_a_click() {
    let host = told();
    let Some(mut page) = page(&host, "a", "ask") else { return };
    page.until("one is suggested", "document.querySelectorAll('#suggestions button').length === 1");
    assert_eq!(page.value(&text("#suggestions")), SUGGESTED);
    let made = host.get("/v1/corpora/a/questions").json();
    assert_eq!((&made["made"], &made["questions"][0]["question"]), (&json!(true), &json!(SUGGESTED)));
    page.open("about:blank");
    page.open(&format!("http://{}/#/c/a/ask", host.address));
    press(&mut page, "#suggestions", SUGGESTED);
    answered(&mut page);
    assert_eq!(page.value(&text(".question")), SUGGESTED);
    assert_eq!(page.value(&text("#suggestions")), "", "they are for the first question");
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn an_answer_is_saved_as_a_note_and_notes_are_written_and_become_sources() {
    let host = told();
    let Some(mut page) = page(&host, "a", "ask") else { return };
    ask(&mut page, QUESTION);
    answered(&mut page);
    press(&mut page, ".turn .tools", "Save as note");
    page.until("it is saved", &format!("{} === 'The answer is among the notes.'", text("#done")));
    click(&mut page, "#notes-tab");
    page.until("it is listed", &format!("{} === '{QUESTION}'", text(".note-card h2")));
    click(&mut page, ".note-card .mark");
    page.until("its source is open", "document.querySelector('#source-text mark') !== null");
    page.press("Escape");

    click(&mut page, "#note-new");
    page.value("document.getElementById('note-title').value = 'Лампа'");
    page.value("document.getElementById('note-text').value = '**900** crowns <b>each</b>'");
    press(&mut page, "#note", "Save");
    page.until("it is written", &format!("{} === 'Лампа'", text(".note-card:first-child h2")));
    assert_eq!(
        page.value("document.querySelector('.note-card .prose').innerHTML"),
        "<p><strong>900</strong> crowns &lt;b&gt;each&lt;/b&gt;</p>"
    );
    press(&mut page, ".note-card:first-child", "Edit");
    page.value("document.getElementById('note-text').value = '900 crowns'");
    press(&mut page, "#note", "Save");
    page.until("it is changed", &format!("{} === '900 crowns'", text(".note-card:first-child .prose")));
    press(&mut page, ".note-card:first-child", "Add to sources");
    page.until("it is a source", &format!("{} === '3'", text("#count")));
    press(&mut page, ".note-card:first-child", "Delete");
    press(&mut page, "#confirm", "Delete");
    page.until("it is deleted", "document.querySelectorAll('.note-card').length === 1");
    let notes = host.get("/v1/corpora/a/notes").json();
    assert_eq!(notes["notes"][0]["saved"]["question"], QUESTION);
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn conversations_survive_a_reload_and_can_be_compared_renamed_and_deleted() {
    let host = told();
    let Some(mut page) = page(&host, "a", "ask") else { return };
    ask(&mut page, QUESTION);
    answered(&mut page);
    let choose = "(at => { at.value = 'direct'; at.dispatchEvent(new Event('change')); })(document.querySelector('.tools select'))";
    page.value(choose);
    let pending = page.value("document.querySelectorAll('.pending').length");
    assert_eq!(pending, 0, "the keyboard chooses each option that it passes");
    press(&mut page, ".tools", "Compare with");
    page.until("two answers are side by side", "document.querySelectorAll('.answers.side .about').length === 2");
    let about = page.value("[...document.querySelectorAll('.about')].map(at => at.textContent.split(' · ')[0])");
    assert_eq!(about, json!(["Quick", "Whole text"]));
    let offered = "[...document.querySelectorAll('.tools optgroup option')].map(at => at.value).includes('memcot')";
    assert_eq!(page.value(offered), true, "any method can be compared");
    ask(&mut page, "And the cat?");
    page.until("there are two turns", "document.querySelectorAll('.turn .tools').length === 2");

    for link in ["#sources-tab", "#operations-link", "#ask-tab"] {
        click(&mut page, link);
    }
    page.until("the conversation is back", "!document.getElementById('ask-view').hidden");
    assert_eq!(page.value("document.querySelectorAll('.turn .tools').length"), 2);

    let address = page.value("location.href");
    page.open("about:blank");
    page.open(address.as_str().unwrap());
    page.until("both turns are back", "document.querySelectorAll('.turn .tools').length === 2");
    assert_eq!(
        page.value("[...document.querySelectorAll('.question')].map(at => at.textContent)"),
        json!([QUESTION, "And the cat?"])
    );
    assert!(page.value(&text(".turn .tools")).as_str().unwrap().contains("2 of 2"));
    page.value("document.querySelector('details.found').open = true");
    page.until("the steps come from the trace", "document.querySelectorAll('.steps li').length > 1");

    click(&mut page, "#thread-rename");
    page.value("document.getElementById('rename-text').value = 'Свадьба'");
    press(&mut page, "#rename", "Rename");
    page.until("it is renamed", &format!("{} === 'Свадьба'", text("#threads a")));
    click(&mut page, "#thread-delete");
    press(&mut page, "#confirm", "Delete");
    page.until("it is gone", &format!("{} === 'None yet.'", text("#threads-none")));
    assert_eq!(host.get("/v1/corpora/a/threads").json()["threads"], json!([]));

    click(&mut page, "#corpus-rename");
    page.value("document.getElementById('rename-text').value = 'Pell 🌊'");
    press(&mut page, "#rename", "Rename");
    page.until("the corpus is renamed", &format!("{}.startsWith('Pell 🌊')", text("#corpora a")));
    click(&mut page, "#corpus-delete");
    suggested(&mut page);
    press(&mut page, "#confirm", "Delete");
    page.until("the first screen is back", "!document.getElementById('new-view').hidden");
    assert_eq!(host.get("/v1/corpora").json()["corpora"], json!([]));
    assert_eq!(page.complaints, Vec::<String>::new());
}

/// An answer of a thread that the server has kept.
fn kept(answer: &str, more: &Value) -> Value {
    let usage = json!({ "calls": 1, "prompt_tokens": 10, "cached_tokens": 5, "output_tokens": 2, "seconds": 166.0 });
    let mut kept = json!({ "answer": answer, "statements": [], "citations": [], "method": "rag", "model": "m",
        "usage": usage, "trace": "trace-0" });
    more.as_object().expect("fields").iter().for_each(|(name, value)| kept[name] = value.clone());
    kept
}

#[test]
fn text_of_models_is_never_markup_and_an_abstention_is_an_answer() {
    let host = told();
    let id = format!("thread-{:032x}", 1);
    let hostile = "# Head <img src=x onerror=alert(1)>\n\n**bold** `code` [in](javascript:alert(1)) [out](https://example.org)\n\n- one\n  - two\n\n| a | b |\n|---|---|\n| 1 | <b>2</b> |\n\n```\n<script>alert(1)</script>\n```\n\n😀 Bees. Cats.";
    let start = hostile.chars().count() - 11;
    let citation = json!({ "path": "story.md", "page": 1, "start": 2, "end": 7, "quote": "<i>The</i>" });
    let statements = json!([
        { "text": "Bees.", "start": start, "end": start + 5, "verdict": "contradicted", "citation": citation },
        { "text": "Cats.", "start": start + 6, "end": start + 11, "verdict": "unsupported" }
    ]);
    let answers = [
        kept(hostile, &json!({ "statements": statements })),
        kept("Not in the documents.", &json!({ "abstained": true, "elapsed_seconds": 30.0, "method": "gam" })),
    ];
    let turns: Vec<Value> =
        answers.iter().map(|answer| json!({ "question": "<u>Who?</u>", "created": 1, "answers": [answer] })).collect();
    let thread = json!({ "id": id, "title": "<u>Who?</u>", "created": 1, "updated": 1, "turns": turns });
    let folder = host.folder.path().join("corpora/a/threads");
    fs::create_dir_all(&folder).expect("it can be made");
    fs::write(folder.join(format!("{id}.json")), thread.to_string()).expect("it can be written");

    let Some(mut page) = page(&host, "a", &format!("ask/{id}")) else { return };
    page.until("both answers are shown", "document.querySelectorAll('.turn .tools').length === 2");
    let made = "document.querySelectorAll('#turns img, #turns script, #turns b, #turns u, #turns i').length";
    assert_eq!(page.value(made), 0);
    let shown = "[...document.querySelectorAll('.turn:first-child .prose > *')].map(at => at.tagName).join()";
    assert_eq!(page.value(shown), "H3,P,UL,DIV,PRE,P");
    assert_eq!(
        page.value("[...document.querySelectorAll('.prose a')].map(at => at.href)"),
        json!(["https://example.org/"])
    );
    assert_eq!(page.value(&text(".prose pre")), "<script>alert(1)</script>");
    assert_eq!(page.value(&text(".statement.contradicted")), "Bees.", "places count characters");
    assert_eq!(page.value(&text(".prose > p:last-child")), "😀 Bees. contradicted[1] Cats. not supported");
    assert_eq!(
        page.value("[...document.querySelectorAll('.about')].map(at => at.textContent)"),
        json!(["Quick · m · 1 call", "Thorough · m · 30 s · 1 call"]),
        "the time is the one that passed, and not the sum over the calls"
    );
    assert_eq!(page.value("document.querySelectorAll('.abstained').length"), 1);
    let abstained = page.value(&text(".abstained"));
    let advice = "Nothing in these documents answers this question well enough. Ask in other words.";
    assert_eq!(abstained.as_str().unwrap().split('\n').collect::<Vec<_>>(), ["Not in the documents.", "", advice]);
    assert_eq!(page.value("document.getElementById('problem').hidden"), true);
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn an_answer_is_stopped_and_a_job_is_cancelled_retried_and_dismissed() {
    let thinker = Thinker::default();
    let host = Host::with(Arc::new(thinker.clone()), |_| {});
    assert_eq!(host.post("/v1/corpora", &json!({ "name": "a" })).status, 201);
    let body = json!({ "name": "one.txt", "text": "One.", "method": "gam" });
    assert_eq!(host.post("/v1/corpora/a/documents", &body).status, 202);
    eventually("the memorizer is asked", || thinker.begun() == 1);
    // Its questions are made already.
    fs::write(host.folder.path().join("corpora/a/questions.json"), r#"{"documents":1,"questions":[]}"#)
        .expect("it can be written");
    let Some(mut page) = page(&host, "a", "sources") else { return };
    page.until("the job is shown", &format!("{}.includes('Cancel')", text(".job")));
    page.until("its document is listed meanwhile", &format!("{}.includes('one.txt')", text("#documents")));
    press(&mut page, ".job", "Cancel");
    page.until("it is stopped", &format!("{}.startsWith('Stopped: 1 file')", text(".job")));
    assert_eq!(thinker.given_up(), 1);
    page.open("about:blank");
    page.open(&format!("http://{}/#/c/a/sources", host.address));
    press(&mut page, ".job", "Try again");
    eventually("the memorizer is asked again", || thinker.begun() == 2);
    press(&mut page, ".job", "Cancel");
    press(&mut page, ".job", "Dismiss");
    page.until("it is dismissed", "document.querySelector('.job') === null");
    assert_eq!(host.get("/v1/jobs").json()["jobs"], json!([]));

    click(&mut page, "#ask-tab");
    ask(&mut page, "Who?");
    eventually("the question is asked", || thinker.begun() == 3);
    page.until("it can be stopped", "!document.getElementById('stop-button').hidden");
    click(&mut page, "#stop-button");
    page.until("it is stopped", &format!("{}.startsWith('Stopped.')", text(".turn .answer")));
    eventually("the call is given up", || thinker.given_up() == 3);
    press(&mut page, ".turn", "Change the question");
    assert_eq!(page.value("document.getElementById('question').value"), "Who?");
    page.open("about:blank");
    page.open(&format!("http://{}/#/c/a/ask", host.address));
    page.until("its conversation is empty and not listed", &format!("{} === 'None yet.'", text("#threads-none")));
    assert_eq!(page.complaints, Vec::<String>::new());
}

/// A script whose prompts are half cached.
fn half_cached(script: Scripted) -> Double {
    Double::new(script).answering(|script, call| {
        Box::pin(async move {
            let mut reply = script.call(call).await?;
            reply.usage.cached_tokens = reply.usage.prompt_tokens / 2;
            Ok(reply)
        })
    })
}

#[test]
fn a_thorough_answer_shows_its_steps_in_words() {
    let plan = json!({ "info_needs": ["the year"], "tools": ["keyword", "page_index"], "keyword_collection": ["married"],
        "vector_queries": [], "page_index": [1] });
    let script = asked()
        .answer("gam.memorize", "Ada Brook married Tom Reed in 1911.")
        .answer("gam.plan", plan.to_string())
        .answer("gam.integrate", json!({ "content": "Ada Brook married in 1911.", "sources": [1] }).to_string())
        .answer(
            "gam.integrate",
            json!({ "content": "Ada Brook married Tom Reed in 1911.", "sources": [1] }).to_string(),
        )
        .answer("gam.info_check", json!({ "enough": false }).to_string())
        .answer("gam.info_check", json!({ "enough": true }).to_string())
        .answer("gam.follow_up", json!({ "new_requests": ["Which year?"] }).to_string());
    let host = Host::new(half_cached(script));
    host.corpus("a", &[("story.md", STORY)]);
    let Some(mut page) = page(&host, "a", "ask") else { return };
    click(&mut page, "[value=thorough]");
    ask(&mut page, QUESTION);
    answered(&mut page);
    let did = page.value("[...document.querySelectorAll('.did')].map(at => at.textContent)");
    let did: Vec<&str> = did.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(did[0].starts_with("Prepared the documents (") && did[0].ends_with(": 1 of 1 page"), "{did:?}");
    let round = [
        "Planned what to look for",
        "Searched by words for “married”: 1 page",
        "Searched by page number for “1”: 1 page",
        "Read 1 page",
        "Took notes from what was read",
        "Checked whether the notes are enough",
    ];
    assert_eq!(&did[1..7], round);
    assert_eq!(did[7], "Decided what to look for next");
    assert_eq!(&did[8..14], round);
    assert_eq!(&did[14..], ["Wrote the answer", "Checked 2 statements: 1 supported, 0 contradicted, 1 not supported"]);
    assert_eq!(page.value("document.querySelector('.found').open"), false, "it is folded");

    // The page shows what the server reports of a call, in words and to scale.
    let threads = host.get("/v1/corpora/a/threads").json();
    let thread = threads["threads"][0]["id"].as_str().expect("an id");
    let answer = host.get(&format!("/v1/corpora/a/threads/{thread}")).json()["turns"][0]["answers"][0].take();
    let trace = host.get(&format!("/v1/traces/{}", answer["trace"].as_str().expect("an id"))).json();
    let plan = &trace["events"][0];
    let (prompt, cached) = (plan["prompt_tokens"].as_u64().unwrap(), plan["cached_tokens"].as_u64().unwrap());
    assert!(cached > 0 && plan["step"] == "gam.plan", "{plan}");
    let cost = page.value("document.querySelector('.steps li:nth-child(2) .cost').textContent");
    assert!(cost.as_str().unwrap().starts_with(&format!("{prompt} tokens read, {cached} of them reused")), "{cost}");
    let parts = page.value(
        "[...document.querySelector('.steps li:nth-child(2) .bar').children].map(at => parseFloat(at.style.width))",
    );
    let share = 100.0 * cached as f64 / prompt as f64;
    assert!((parts[0].as_f64().unwrap() - share).abs() < 0.01, "{parts} for {share}");
    let about = page.value(&text(".about"));
    assert!(about.as_str().unwrap().starts_with("Thorough · scripted · "), "{about}");
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn the_graph_is_walked_by_keyboard_and_leads_to_its_source() {
    let host = built();
    let Some(mut page) = page(&host, "a", "graph") else { return };
    page.until("it is drawn", "document.getElementById('graph-picture').dataset.labels === '3'");
    assert_eq!(page.value(&text("#graph-size")), "3 nodes, 2 relations");
    tab_to(&mut page, "at.className === 'node'");
    assert!(focused(&mut page).as_str().unwrap().starts_with("ada"));
    page.press("Enter");
    assert_eq!(page.value(&text("#graph-node")), "ada (entity)");
    press(&mut page, "#graph-facts", "pell");
    assert_eq!(
        (page.value(&text("#graph-node")), page.value(&text("#graph-content"))),
        (json!("pell (entity)"), json!("A place."))
    );
    let facts = page.value(&text("#graph-facts"));
    assert!(facts.as_str().unwrap().contains("a.txt, source not found"), "a quote that is nowhere: {facts}");
    press(&mut page, "#graph-facts", "ada");
    page.value("document.querySelector('#graph-facts .place').focus()");
    page.press("Enter");
    page.until("the place is marked", "document.querySelector('#source-text mark') !== null");
    assert_eq!(page.value("document.activeElement.textContent"), "Ada keeps the light");
    assert_eq!(page.value("document.getElementById('source-text').textContent"), graph::TEXT);
    page.press("Escape");
    assert_eq!(page.value("document.activeElement.className"), "place", "and back");
    click(&mut page, "#graph-all");
    assert_eq!(page.value("document.getElementById('graph-about').hidden"), true);
    page.value(
        "(at => { at.value = 'tom'; at.dispatchEvent(new Event('input')); })(document.getElementById('graph-find'))",
    );
    assert_eq!(page.value("document.querySelectorAll('#graph-nodes .node').length"), 1);
    assert_eq!(page.complaints, Vec::<String>::new());
}

/// Replaces the server's graph by one of 2,000 nodes: building it would take as many scripted edits.
pub const MANY_NODES: &str = "(() => {
    const whole = window.fetch;
    const id = (number) => `node ${number}`;
    const nodes = Array.from({ length: 2000 }, (_, at) => ({ id: id(at), type: 'entity', content: '', degree: at < 20 ? 100 : 1, sources: [] }));
    const edges = nodes.slice(20).map(({ id: source }, at) => ({ source, target: id(at % 20), relation: 'in', sources: [] }));
    window.fetch = (path, more) => (path.includes('/graph?') ? Promise.resolve(Response.json({ nodes, edges, read: 1, of: 1 })) : whole(path, more));
})()";

#[test]
fn a_graph_of_two_thousand_nodes_is_drawn_with_names_of_the_largest() {
    let host = told();
    let Some(mut page) = page(&host, "a", "ask") else { return };
    page.value(MANY_NODES);
    click(&mut page, "#graph-tab");
    page.until("it is drawn", "Number(document.getElementById('graph-picture').dataset.labels) >= 20");
    assert_eq!(page.value(&text("#graph-size")), "2,000 nodes, 1,980 relations");
    assert_eq!(page.value("[...document.querySelectorAll('#graph-nodes .node')].slice(0, 20).every(at => at.textContent.endsWith('100 relations'))"), true);
    assert!(page.value(&text("#graph-nodes")).as_str().unwrap().ends_with("1900 more: find them by name."));
    // Each of the twenty communities has a colour or a form of its own.
    let marks = "[...document.querySelectorAll('#graph-nodes .dot')].slice(0, 20).map(at => at.className)";
    assert_eq!(page.value(&format!("new Set({marks}).size")), 20);
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn a_model_is_fetched_with_progress() {
    let (host, shelf) = shelf::host();
    let gate = shelf.gate.lock().expect("it is sound");
    let Some(mut page) = browse(&host, "#/operations") else { return };
    page.until("a model does not fit", &format!("{}.includes('does not fit')", text("#shelf")));
    press(&mut page, "#shelf", "Fetch");
    page.until("its progress is shown", &format!("{}.includes('1.1 GB of 2.1 GB')", text("#shelf")));
    drop(gate);
    let buttons = "[...document.querySelectorAll('#shelf button')].map(at => at.ariaLabel).join()";
    page.until("it is there", &format!("{buttons} === 'Load small:q4,Fetch large:q8'"));
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn a_model_is_loaded_and_unloaded() {
    let host = told();
    host.post("/v1/shelf/pull", &json!({ "model": "small:q4" }));
    let Some(mut page) = browse(&host, "#/operations") else { return };
    press(&mut page, "#shelf", "Load");
    page.until("it is loaded", &format!("{}.includes('small:q4')", text("#models")));
    page.until("its time is shown", &format!("{}.includes('loaded, until')", text("#shelf")));
    assert_eq!(host.get("/api/ps").json()["models"][2]["name"], "small:q4");
    press(&mut page, "#shelf", "Unload");
    page.until("it has left", &format!("!{}.includes('small:q4')", text("#models")));
    page.value("document.getElementById('fetch-name').value = 'hf:none/none'");
    press(&mut page, "#fetch", "Fetch");
    page.until("there is none", &format!("{}.includes('There is no model hf:none/none')", text("#problem")));
    assert_eq!(page.complaints.len(), 1, "the browser reports the status of the last request: {:?}", page.complaints);
}

#[test]
fn operations_show_the_engine_over_time_keys_and_settings() {
    let folder = tempfile::tempdir().expect("the system has a folder for temporary files");
    let file = folder.path().join("keys");
    let [ann, bob] = ["ann", "bob"].map(|name| Keys::add(&file, name).expect("a new key"));
    let counting = Double::new(Scripted::new(CONTEXT_TOKENS).named("counting")).with_status(Counting::default());
    let host = Host::with(Arc::new(counting), |config| {
        config.keys = Some(KeysFile::open(&file).expect("it reads back"));
        config.operator = Some("ann".to_owned());
        config.settings = vec![("max-body".to_owned(), "8388608".to_owned())];
    });
    let history =
        |key: &str| host.send("GET", "/v1/engine/history", &[("authorization", &*format!("Bearer {key}"))], "");
    eventually("there are samples", || history(&ann).json()["samples"].as_array().is_some_and(|all| all.len() > 1));
    history(&bob).refused(403, "operator_only");
    let Some(mut page) = browse(&host, "#/operations") else { return };
    let enter = |page: &mut Browser, key: &str| {
        page.until("a key is asked for", "document.getElementById('key-dialog').open");
        page.value(&format!("document.getElementById('key').value = {}", json!(key)));
        click(page, "#key-form button");
    };
    enter(&mut page, &ann);
    let caption = text("#engine-models figure:nth-child(2) figcaption");
    let drawn = format!(
        "(found => found && found[2] > 0 && found[1] == 3 * found[2])(/cached (\\d+)\\s+computed (\\d+)/.exec({caption}))"
    );
    page.until("hits are drawn", &drawn);
    assert_eq!(
        page.value(
            "document.querySelector('#engine-models figure:nth-child(2) svg .first').getAttribute('points') !== null"
        ),
        true
    );
    page.until("their part is named", &format!("{}.includes('75 % of')", text("#engine-models")));
    page.until("keys are listed", &format!("{}.includes('bob')", text("#keys")));
    let keys = page.value(&text("#keys"));
    let keys = keys.as_str().expect("a text");
    assert!(
        keys.contains("ann\toperator: models, and counts of all\t20") && keys.contains("bob\town corpora\t20"),
        "{keys}"
    );
    assert!(!keys.contains(&ann[3..]), "a key is nowhere");
    page.until("settings are shown", &format!("/^max-body\\s8388608$/.test({})", text("#settings")));

    page.value("sessionStorage.removeItem('key')");
    page.open("about:blank");
    page.open(&format!("http://{}/#/operations", host.address));
    enter(&mut page, &bob);
    page.until(
        "a tenant sees its own key",
        &format!("{}.includes('bob') && !{}.includes('ann')", text("#keys"), text("#keys")),
    );
    assert_eq!(page.value("document.getElementById('settings-section').hidden"), true);
}

/// An engine whose counts grow with each look.
#[derive(Default)]
struct Counting(AtomicU64);

impl Status for Counting {
    fn state(&self) -> Vec<ModelState> {
        let looks = self.0.fetch_add(1, Ordering::Relaxed);
        let state = ModelState { model: "counting".into(), total_pages: 512, ..ModelState::default() };
        vec![ModelState { cached_tokens: 30 * looks, read_tokens: 10 * looks, ..state }]
    }

    fn is_alive(&self) -> bool {
        true
    }
}

#[test]
fn a_follow_up_shows_how_it_was_understood() {
    let host = told();
    let Some(mut page) = page(&host, "a", "ask") else { return };
    ask(&mut page, QUESTION);
    answered(&mut page);
    ask(&mut page, "And the cat?");
    let understood = "Understood as: What colour was their cat?";
    page.until("it was understood", &format!("{} === '{understood}'", text(".turn:last-child .understood")));
    assert_eq!(page.value("document.querySelectorAll('.understood').length"), 1, "the first question is as it was");
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn a_wrong_key_is_named_and_the_right_one_opens_the_page() {
    let folder = tempfile::tempdir().expect("the system has a folder for temporary files");
    let file = folder.path().join("keys");
    let key = Keys::add(&file, "ann").expect("a key can be added");
    let host =
        Host::with(Arc::new(says("")), |config| config.keys = Some(KeysFile::open(&file).expect("it reads back")));
    let Some(mut page) = browse(&host, "") else { return };
    let enter = |page: &mut Browser, key: &str| {
        page.value(&format!(
            "(document.getElementById('key').value = '{key}', document.querySelector('#key-form button').click())"
        ));
    };
    page.until("a key is asked for", "document.getElementById('key-dialog').open");
    // Browsers close a dialog at the second Escape in any case.
    page.press("Escape");
    page.press("Escape");
    page.until("it is asked for again", "document.getElementById('key-dialog').open");
    assert_eq!(page.value("document.getElementById('key-wrong').hidden"), true);
    page.value("document.getElementById('key').value = 'ключ'");
    let is_valid = page.value("document.getElementById('key-form').checkValidity()");
    assert_eq!(is_valid, false, "a header cannot hold it");
    enter(&mut page, "wrong");
    page.until(
        "the wrong one is named",
        "document.getElementById('key-dialog').open && !document.getElementById('key-wrong').hidden",
    );
    enter(&mut page, &key);
    page.until("the page is there", "!document.getElementById('new-view').hidden");
}

#[test]
fn many_jobs_leave_connections_for_other_requests() {
    let thinker = Thinker::default();
    let host = Host::with(Arc::new(thinker.clone()), |_| {});
    assert_eq!(host.post("/v1/corpora", &json!({ "name": "a" })).status, 201);
    // A browser has six connections to a server.
    for number in 0..8 {
        let body = json!({ "name": format!("{number}.txt"), "text": "One.", "method": "gam" });
        assert_eq!(host.post("/v1/corpora/a/documents", &body).status, 202);
    }
    eventually("the memorizer is asked", || thinker.begun() == 1);
    let Some(mut page) = page(&host, "a", "sources") else { return };
    press(&mut page, ".job:last-child", "Cancel");
    page.until("it is stopped", &format!("{}.startsWith('Stopped: 1 file')", text(".job:last-child")));
    assert_eq!(page.complaints, Vec::<String>::new());
}

/// Replaces the response to requests whose path ends so, the first time only.
fn replace_once(page: &mut Browser, end: &str, response: &str) {
    page.value(&format!(
        "(() => {{
        const whole = window.fetch;
        let isReplaced = false;
        window.fetch = (path, more) => {{
            if (isReplaced || !path.endsWith('{end}')) return whole(path, more);
            isReplaced = true;
            return {response};
        }};
    }})()"
    ));
}

#[test]
fn a_job_is_followed_again_after_a_lost_connection() {
    let host = told();
    let Some(mut page) = page(&host, "a", "sources") else { return };
    replace_once(&mut page, "/events", "Promise.reject(new TypeError('lost'))");
    drop_files(&mut page, &[("answer.txt", "Dear Ada, it was too short.")]);
    page.until("its document is listed", &format!("{} === '3'", text("#count")));
    page.until("the job has ended", "document.querySelector('.job') === null");
    assert_eq!(page.value("document.getElementById('spoken').textContent"), "Read: 1 file", "for screen readers");
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn the_list_of_corpora_counts_documents_while_they_are_read() {
    let host = told();
    let Some(mut page) = page(&host, "a", "sources") else { return };
    replace_once(&mut page, "/v1/corpora", "new Promise(() => {})");
    drop_files(&mut page, &[("answer.txt", "Dear Ada, it was too short.")]);
    page.until("it is counted", &format!("{}.endsWith('3 documents')", text("#corpora a")));
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn a_file_that_cannot_be_read_leads_to_the_reason_if_there_is_no_other() {
    let host = Host::new(asked());
    let Some(mut page) = browse(&host, "#/new") else { return };
    page.until("the first screen is there", "!document.getElementById('new-view').hidden");
    drop_files(&mut page, &[("портрет.png", "\0")]);
    page.until("the reason is shown", &format!("{}.includes('unsupported file type')", text("#jobs")));
    page.until("the keyboard is there", "document.activeElement.id === 'main'");
    let of_upload = |one: &String| one.contains("400 (Bad Request)") && one.contains("/documents");
    assert!(page.complaints.iter().all(of_upload), "{:?}", page.complaints);
}

#[test]
fn a_corpus_that_is_being_loaded_shows_nothing_of_the_one_before() {
    let host = told();
    host.corpus("b", &[("lamp.txt", "The lamp is red.")]);
    let note = json!({ "title": "To ask", "text": "Who sold the lamp?" });
    assert_eq!(host.post("/v1/corpora/a/notes", &note).status, 201);
    let Some(mut page) = page(&host, "a", "ask") else { return };
    ask(&mut page, QUESTION);
    answered(&mut page);
    click(&mut page, "#notes-tab");
    page.until("its note is shown", "document.querySelector('.note-card') !== null");
    page.value("(() => { window.fetch = () => new Promise(() => {}); })()");
    page.value("location.hash = '#/c/b/notes'");
    page.until("the other is chosen", &format!("{} === 'b'", text("#corpus-title")));
    let left = "document.querySelectorAll('.note-card, #threads a, #suggestions button, .document').length";
    assert_eq!(page.value(left), 0, "its buttons would act on the other");
    assert_eq!(page.value(&text("#notes-none")), "", "whether there are some is not known yet");
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn a_question_in_a_conversation_that_another_tab_has_deleted_begins_another() {
    let host = told();
    let Some(mut page) = page(&host, "a", "ask") else { return };
    ask(&mut page, QUESTION);
    answered(&mut page);
    let threads = || host.get("/v1/corpora/a/threads").json()["threads"].take();
    let path = |thread: &Value| format!("/v1/corpora/a/threads/{}", thread.as_str().expect("an id"));
    assert_eq!(host.delete(&path(&threads()[0]["id"])).status, 204);
    ask(&mut page, SUGGESTED);
    let gone =
        format!("{}.startsWith('This conversation is no longer on the server.')", text(".turn:last-child .answer"));
    page.until("it is gone", &gone);
    press(&mut page, ".turn:last-child", "Ask again");
    page.until("it is answered", "document.querySelector('.turn:last-child .meta') !== null");
    let kept = threads();
    assert_eq!(host.get(&path(&kept[0]["id"])).json()["turns"][0]["question"], SUGGESTED);
}

#[test]
fn files_that_the_server_refused_are_sent_again() {
    let host = told();
    let Some(mut page) = page(&host, "a", "sources") else { return };
    let busy = "Promise.resolve(Response.json({ error: { message: 'too many requests' } }, { status: 429 }))";
    replace_once(&mut page, "/documents", busy);
    drop_files(&mut page, &[("answer.txt", "Dear Ada, it was too short.")]);
    page.until("the reason is shown", &format!("{}.includes('Too many requests')", text(".job")));
    press(&mut page, ".job", "Try again");
    page.until("its document is listed", &format!("{} === '3'", text("#count")));
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn an_answer_whose_stream_ends_early_is_an_error_and_can_be_asked_again() {
    let host = told();
    let Some(mut page) = page(&host, "a", "ask") else { return };
    let waiting = json!("event: step\ndata: {\"event\":\"prepare\",\"status\":\"waiting\"}\n\n");
    let written = json!("event: text\ndata: {\"text\":\"Ada\"}\n\n");
    replace_once(&mut page, "/ask", &format!("Promise.resolve(new Response({waiting} + {written}))"));
    ask(&mut page, QUESTION);
    page.until(
        "it is an error",
        &format!("{}.includes('The connection to the server ended too early.')", text(".turn")),
    );
    assert_eq!(page.value(&text(".turn .prose")), "Ada", "what was written remains");
    let did = page.value("document.querySelector('.did').textContent");
    assert_eq!(did, "Waiting for other documents to be prepared");
    assert_eq!(page.value("document.querySelectorAll('[aria-busy]').length"), 0, "and is complete");
    let spoken = "document.getElementById('spoken').textContent";
    assert_eq!(page.value(spoken), "The connection to the server ended too early.");
    press(&mut page, ".turn", "Ask again");
    answered(&mut page);
    page.until("there is an answer", &format!("{}.startsWith('Ada Brook married')", text(".turn .prose")));
    let verdicts = "2 statements checked: 1 supported, 1 not supported";
    assert!(page.value(spoken).as_str().unwrap().ends_with(verdicts), "screen readers get the verdicts too");
    click(&mut page, "#thread-new");
    page.until("another conversation begins", "document.querySelector('.turn') === null");
    assert_eq!(page.value(spoken), "");
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn an_answer_in_many_pieces_is_drawn_a_few_times() {
    let host = told();
    let Some(mut page) = page(&host, "a", "ask") else { return };
    page.value(
        "(() => {
        window.drawn = 0;
        const count = (changes) => { window.drawn += changes.filter(({ target }) => target.matches('.prose')).length; };
        new MutationObserver(count).observe(document.getElementById('turns'), { childList: true, subtree: true });
    })()",
    );
    let pieces = "Promise.resolve(new Response('event: text\\ndata: {\"text\":\"bee \"}\\n\\n'.repeat(1000)))";
    replace_once(&mut page, "/ask", pieces);
    ask(&mut page, QUESTION);
    page.until("all are there", &format!("{}.split('bee').length === 1001", text(".turn .prose")));
    let drawn = page.value("window.drawn").as_u64().expect("a number");
    assert!((1..100).contains(&drawn), "{drawn}");
}

#[test]
fn an_answer_that_is_not_kept_is_asked_again_as_a_new_turn() {
    let host = told();
    let Some(mut page) = page(&host, "a", "ask") else { return };
    let answer = json!(format!("event: answer\ndata: {}\n\n", kept("Unknown.", &json!({}))));
    replace_once(&mut page, "/ask", &format!("Promise.resolve(new Response({answer}))"));
    ask(&mut page, QUESTION);
    page.until("it is shown", &format!("{}.startsWith('Unknown.')", text(".turn .prose")));
    press(&mut page, ".turn .tools", "Ask again");
    page.until("it is answered", &format!("{}.includes('2 of 2')", text(".turn .tools")));
    assert!(page.value(&text(".turn .prose")).as_str().unwrap().starts_with("Ada Brook married"));
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn the_answer_that_is_shown_is_saved_if_another_tab_has_asked_too() {
    let host = told();
    let Some(mut page) = page(&host, "a", "ask") else { return };
    ask(&mut page, QUESTION);
    answered(&mut page);
    let thread = host.get("/v1/corpora/a/threads").json()["threads"][0]["id"].as_str().expect("an id").to_owned();
    let file = host.folder.path().join(format!("corpora/a/threads/{thread}.json"));
    let mut changed: Value = serde_json::from_str(&fs::read_to_string(&file).expect("it is kept")).expect("JSON");
    let shown = changed["turns"][0]["answers"][0]["answer"].clone();
    let answers = changed["turns"][0]["answers"].as_array_mut().expect("answers");
    answers.insert(0, kept("Of another tab.", &json!({})));
    fs::write(file, changed.to_string()).expect("it can be written");
    page.value(
        "(() => {
        const save = [...document.querySelectorAll('.turn .tools button')].find((at) => at.textContent === 'Save as note');
        save.click();
        save.click();
    })()",
    );
    page.until("it is saved", &format!("{} === 'The answer is among the notes.'", text("#done")));
    let notes = host.get("/v1/corpora/a/notes").json()["notes"].take();
    assert_eq!(notes[0]["saved"]["answer"]["answer"], shown);
    assert_eq!(notes.as_array().map(Vec::len), Some(1), "the second click is that of an impatient user");
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn a_turn_of_another_tab_is_shown_when_the_user_comes_back() {
    let host = told();
    let Some(mut page) = page(&host, "a", "ask") else { return };
    ask(&mut page, QUESTION);
    answered(&mut page);
    let thread = host.get("/v1/corpora/a/threads").json()["threads"][0]["id"].take();
    let question = json!({ "question": SUGGESTED, "method": "rag", "thread": thread });
    assert_eq!(host.post("/v1/corpora/a/ask", &question).status, 200);
    page.value("document.dispatchEvent(new Event('visibilitychange'))");
    page.until("both turns are shown", "document.querySelectorAll('.turn .tools').length === 2");
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn a_problem_is_in_front_of_a_reader_that_covers_the_page() {
    let host = told();
    let cites = |path: &str| json!({ "path": path, "page": 1, "start": 2, "end": 7, "quote": "The light" });
    let answer = kept("Unknown.", &json!({ "citations": [cites("story.md"), cites("gone.txt")] }));
    let Some(mut page) = page(&host, "a", "ask") else { return };
    page.width(768);
    let response = json!(format!("event: answer\ndata: {answer}\n\n"));
    replace_once(&mut page, "/ask", &format!("Promise.resolve(new Response({response}))"));
    ask(&mut page, QUESTION);
    click(&mut page, ".source-card");
    page.until("the place is marked", "document.activeElement.tagName === 'MARK'");
    click(&mut page, "#source-next");
    let gone = format!("{} === 'gone.txt is no longer among the documents'", text("#problem-text"));
    page.until("the other is gone", &gone);
    let in_front = "(at => {
        const { left, top, width, height } = at.getBoundingClientRect();
        return at.contains(document.elementFromPoint(left + width / 2, top + height / 2));
    })(document.getElementById('problem'))";
    assert_eq!(page.value(in_front), true);
    page.value("document.getElementById('problem-close').focus()");
    assert_eq!(page.value("document.activeElement.id"), "problem-close");
}

#[test]
fn steps_that_could_not_be_fetched_are_fetched_again() {
    let host = told();
    let Some(mut page) = page(&host, "a", "ask") else { return };
    ask(&mut page, QUESTION);
    answered(&mut page);
    let threads = host.get("/v1/corpora/a/threads").json();
    let thread = threads["threads"][0]["id"].as_str().expect("an id");
    let answer = host.get(&format!("/v1/corpora/a/threads/{thread}")).json()["turns"][0]["answers"][0].take();
    page.open("about:blank");
    page.open(&format!("http://{}/#/c/a/ask/{thread}", host.address));
    page.until("the answer is back", "document.querySelector('.turn .tools') !== null");
    replace_once(&mut page, answer["trace"].as_str().expect("an id"), "Promise.reject(new TypeError('lost'))");
    page.value("document.querySelector('details.found').open = true");
    page.until("the reason is shown", &format!("{}.includes('The server does not answer.')", text("#problem")));
    assert_eq!(page.value("document.querySelectorAll('.steps li').length"), 0);
    page.value("document.querySelector('details.found').open = false");
    page.value("document.querySelector('details.found').open = true");
    page.until("the steps are there", "document.querySelectorAll('.steps li').length > 1");
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn a_conversation_that_is_gone_leaves_nothing_of_the_one_before() {
    let host = told();
    let Some(mut page) = page(&host, "a", "ask") else { return };
    ask(&mut page, QUESTION);
    answered(&mut page);
    page.value(&format!("location.hash = '#/c/a/ask/thread-{:032x}'", 1));
    page.until("the error is displayed", &format!("{} !== ''", text("#problem")));
    assert_eq!(page.value(&text("#talk-tools")), "", "its menu would act on no conversation");
    assert_ne!(page.value(&text("#welcome")), "");
}

#[test]
fn a_citation_is_opened_without_the_list_of_documents() {
    let host = told();
    let Some(mut page) = page(&host, "a", "ask") else { return };
    let story = || {
        let documents = host.get("/v1/corpora/a/documents").json()["documents"].take();
        let story = documents.as_array().unwrap().iter().find(|document| document["name"] == "story.md");
        format!("/v1/corpora/a/documents/{}", story.expect("it is listed")["id"])
    };
    ask(&mut page, QUESTION);
    answered(&mut page);
    page.value(
        "(() => {
        const whole = window.fetch;
        window.sent = [];
        window.fetch = (path, more) => {
            if (path.includes('/documents')) window.sent.push(path);
            return whole(path, more);
        };
    })()",
    );
    click(&mut page, ".mark");
    page.until("the place is marked", "document.activeElement.tagName === 'MARK'");
    assert_eq!(page.value("window.sent"), json!([story()]));
    page.press("Escape");

    // Another program replaces the document, and deletes it.
    let old = story();
    eventually("it is deleted", || host.delete(&old).status == 204);
    let body = json!({ "name": "story.md", "text": STORY, "method": "rag" });
    assert_eq!(host.ended(&host.post("/v1/corpora/a/documents", &body).json())["status"], "done");
    click(&mut page, ".mark");
    page.until("the new one is open", "document.activeElement.tagName === 'MARK'");
    page.press("Escape");
    let new = story();
    eventually("it is deleted too", || host.delete(&new).status == 204);
    click(&mut page, ".mark");
    let gone = format!("{} === 'story.md is no longer among the documents'", text("#problem-text"));
    page.until("it is gone", &gone);
    assert_eq!(page.value(&text("#count")), "1");
}

#[test]
fn a_document_that_comes_late_does_not_replace_the_one_that_was_opened_after_it() {
    let host = told();
    let Some(mut page) = page(&host, "a", "sources") else { return };
    page.value(
        "(() => {
        const whole = window.fetch;
        const json = async () => {
            window.isRead = true;
            return { name: 'letter.txt', title: '', kind: 'text', pages: 1, text: 'Late.', parts: [] };
        };
        window.fetch = (path, more) => {
            if (window.release || !/documents\\/\\d+$/.test(path)) return whole(path, more);
            return new Promise((done) => { window.release = () => done({ ok: true, status: 200, json }); });
        };
    })()",
    );
    click(&mut page, "#documents li:first-child .document");
    page.until("it is asked for", "window.release !== undefined");
    click(&mut page, "#documents li:last-child .document");
    page.until("the other is open", &format!("{}.includes('married Tom Reed')", text("#source-text")));
    page.value("window.release()");
    page.until("the first is there too", "window.isRead === true");
    assert!(page.value(&text("#source-text")).as_str().unwrap().contains("married Tom Reed"));
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn a_link_that_leaves_the_reader_keeps_the_keyboard() {
    let host = told();
    let Some(mut page) = page(&host, "a", "ask") else { return };
    ask(&mut page, QUESTION);
    answered(&mut page);
    click(&mut page, ".mark");
    page.until("the place is marked", "document.activeElement.tagName === 'MARK'");
    page.value("document.getElementById('operations-link').focus()");
    page.press("Enter");
    page.until("the view is there", "!document.getElementById('operations-view').hidden");
    assert_eq!(page.value("document.getElementById('source').hidden"), true);
    assert_eq!(page.value("document.activeElement.id"), "operations-link");
}

#[test]
fn the_slash_goes_to_the_question_unless_it_is_switched_off() {
    let host = told();
    let Some(mut page) = page(&host, "a", "ask") else { return };
    let slash = "(() => {
        const main = document.getElementById('main');
        main.focus();
        main.dispatchEvent(new KeyboardEvent('keydown', { key: '/', bubbles: true, cancelable: true }));
        return document.activeElement.id;
    })()";
    assert_eq!(page.value(slash), "question");
    click(&mut page, "#slash");
    assert_eq!(page.value(slash), "main");
    page.open("about:blank");
    page.open(&format!("http://{}/#/c/a/ask", host.address));
    page.until("a view is shown", "document.body.dataset.view !== undefined");
    assert_eq!(page.value(slash), "main", "the setting is kept");
}

#[test]
fn a_dialog_gives_the_keyboard_back_and_its_field_confirms_by_enter() {
    let host = told();
    let Some(mut page) = page(&host, "a", "ask") else { return };
    let open = |page: &mut Browser| {
        page.value("document.getElementById('corpus-rename').closest('details').open = true");
        page.value("document.getElementById('corpus-rename').focus()");
        page.press("Enter");
        page.until("it is asked", "document.activeElement.id === 'rename-text'");
    };
    open(&mut page);
    page.press("Escape");
    page.until("it is closed", "!document.getElementById('rename').open");
    assert_eq!(focused(&mut page), "Corpus", "the menu that has the action");
    open(&mut page);
    page.value("document.getElementById('rename-text').value = 'Pell'");
    page.press("Enter");
    page.until("it is renamed", &format!("{} === 'Pell'", text("#corpus-title")));
    open(&mut page);
    press(&mut page, "#rename", "Cancel");
    page.until("it is closed", "!document.getElementById('rename').open");
    assert_eq!(host.get("/v1/corpora").json()["corpora"][0]["title"], "Pell");
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn a_question_of_a_dialog_ends_with_its_view() {
    let host = told();
    host.corpus("b", &[("lamp.txt", "The lamp is red.")]);
    let Some(mut page) = page(&host, "a", "ask") else { return };
    click(&mut page, "#corpus-delete");
    page.until("it is asked", "document.getElementById('confirm').open");
    page.value("location.hash = '#/c/b/ask'");
    page.until("the other corpus is shown", &format!("{} === 'b'", text("#corpus-title")));
    assert_eq!(page.value("document.getElementById('confirm').open"), false, "it would delete the other corpus");
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn a_note_that_the_server_does_not_take_stays_in_its_dialog() {
    let host = told();
    let Some(mut page) = page(&host, "a", "notes") else { return };
    click(&mut page, "#note-new");
    page.value("document.getElementById('note-text').value = 'The lamp is red.'");
    let full = "Promise.resolve(Response.json({ error: { message: 'the disk is full' } }, { status: 507 }))";
    replace_once(&mut page, "/notes", full);
    press(&mut page, "#note", "Save");
    page.until("the reason is shown", &format!("{} === 'The disk is full'", text("#note-problem")));
    assert_eq!(page.value("document.getElementById('note-text').value"), "The lamp is red.");
    press(&mut page, "#note", "Save");
    page.until("it is kept", &format!("{} === 'The lamp is red.'", text(".note-card .prose")));
    assert_eq!(page.value("document.getElementById('note').open"), false);
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn files_that_are_dropped_on_the_operations_become_no_documents() {
    let host = told();
    let Some(mut page) = page(&host, "a", "sources") else { return };
    click(&mut page, "#operations-link");
    page.until("the view is there", "!document.getElementById('operations-view').hidden");
    drop_files(&mut page, &[("report.txt", "F1 63.")]);
    click(&mut page, "#sources-tab");
    page.until("the sources are back", "!document.getElementById('sources-view').hidden");
    drop_files(&mut page, &[("note.txt", "Rope.")]);
    page.until("one is added", &format!("{} === '3'", text("#count")));
    assert!(!page.value(&text("#documents")).as_str().unwrap().contains("report.txt"));
}

#[test]
fn a_menu_closes_when_the_keyboard_leaves_it() {
    let host = told();
    let Some(mut page) = page(&host, "a", "ask") else { return };
    page.width(320);
    click(&mut page, "#menu");
    assert_eq!(page.value("document.activeElement.id"), "new-link");
    page.value("document.getElementById('question').focus()");
    assert_eq!(page.value("document.body.classList.contains('menu')"), false, "it would cover what has the keyboard");
    assert_eq!(page.value("document.activeElement.id"), "question");
    assert_eq!(page.value("document.getElementById('menu').ariaExpanded"), "false");
}

#[test]
fn the_engine_is_not_looked_at_while_it_is_paused() {
    let host = told();
    let Some(mut page) = browse(&host, "#/new") else { return };
    page.until("a view is shown", "document.body.dataset.view !== undefined");
    page.value(
        "(() => {
        const whole = window.fetch;
        window.looks = 0;
        window.fetch = (path, more) => {
            if (path === '/v1/engine') window.looks++;
            return whole(path, more);
        };
        // The test looks in place of the clock.
        window.setTimeout = (work) => { window.look = work; };
    })()",
    );
    click(&mut page, "#operations-link");
    page.until("it is looked at", "window.look !== undefined");
    page.value("window.look()");
    assert_eq!(page.value("window.looks"), 2);
    press(&mut page, "#operations-view", "Pause");
    page.value("window.look()");
    assert_eq!(page.value("window.looks"), 2);
    press(&mut page, "#operations-view", "Continue");
    page.until("it is looked at again", "window.looks === 3");
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn the_keyboard_keeps_its_place_when_something_is_drawn_again() {
    let host = told();
    let Some(mut page) = page(&host, "a", "ask") else { return };
    page.value(&format!("document.getElementById('question').value = {}", json!(QUESTION)));
    page.value("document.getElementById('ask-button').focus()");
    page.press("Enter");
    answered(&mut page);
    assert_eq!(focused(&mut page), QUESTION, "the button that asked is hidden meanwhile");
    click(&mut page, "#sources-tab");
    page.until("they are listed", "document.querySelectorAll('#documents li').length === 2");
    page.value("document.querySelector('#documents [aria-label=\"Delete letter.txt\"]').focus()");
    page.press("Enter");
    suggested(&mut page);
    press(&mut page, "#confirm", "Delete");
    page.until("one is deleted", "document.querySelectorAll('#documents li').length === 1");
    assert_eq!(focused(&mut page), "Delete story.md", "the one that takes its place");
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn turns_that_could_know_a_deleted_document_leave_the_page_too() {
    let host = told();
    let Some(mut page) = page(&host, "a", "ask") else { return };
    ask(&mut page, QUESTION);
    answered(&mut page);
    click(&mut page, "#sources-tab");
    press(&mut page, "#documents", "Delete");
    suggested(&mut page);
    press(&mut page, "#confirm", "Delete");
    page.until("the turn is gone", "document.querySelector('.turn') === null");
    click(&mut page, "#ask-tab");
    page.until("the conversation is empty", &format!("{} !== ''", text("#welcome")));
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn words_from_right_to_left_begin_at_the_right() {
    let host = told();
    host.corpus("b", &[("lamp.txt", "המנורה נקנתה בפריז.")]);
    let Some(mut page) = page(&host, "b", "sources") else { return };
    click(&mut page, ".document");
    page.until("it is open", "document.querySelector('#source-text p') !== null");
    let apart = "(at => {
        const words = document.createRange();
        words.selectNodeContents(at);
        return Math.round(at.getBoundingClientRect().right - words.getBoundingClientRect().right);
    })(document.querySelector('#source-text p'))";
    assert_eq!(page.value(apart), 0);
}

#[test]
fn a_reader_that_covers_the_page_keeps_the_keyboard() {
    let host = told();
    let Some(mut page) = page(&host, "a", "sources") else { return };
    page.width(768);
    page.value("document.querySelector('.document').focus()");
    page.press("Enter");
    page.until("it is open", "document.activeElement.id === 'source-title'");
    page.value("document.getElementById('sources-tab').focus()");
    assert_eq!(page.value("document.activeElement.id"), "source-close", "what is covered takes no focus");
    page.press("Escape");
    assert_eq!(page.value("document.activeElement.className"), "document", "and back");
}

#[test]
fn the_browser_goes_back_from_a_reader_that_covers_the_page_to_the_view_behind_it() {
    let host = told();
    let Some(mut page) = page(&host, "a", "sources") else { return };
    page.width(768);
    let address = page.value("location.href");
    let open = |page: &mut Browser| {
        click(page, ".document");
        page.until("it is open", "document.activeElement.id === 'source-title'");
    };
    open(&mut page);
    page.value("history.back()");
    page.until("it is closed", "document.getElementById('source').hidden");
    assert_eq!(page.value("location.href"), address);
    open(&mut page);
    page.press("Escape");
    page.until("there is nothing to go back over", "history.state === null");
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn a_search_in_a_document_finds_words_across_lines_and_counts_all_places() {
    let host = told();
    host.corpus("b", &[("rope.txt", &format!("One\nrope (new). {}", "Rope. ".repeat(600)))]);
    let Some(mut page) = page(&host, "b", "sources") else { return };
    click(&mut page, ".document");
    page.until("it is open", "document.querySelector('#source-text p') !== null");
    let mut find = |words: &str| {
        let at = "document.getElementById('source-find')";
        page.value(&format!("({at}.value = {}, {at}.dispatchEvent(new Event('input')))", json!(words)));
        (page.value(&text("#source-where")), page.value("document.getElementById('source-found').textContent"))
    };
    assert_eq!(find("one rope (NEW)."), (json!("Hit 1 of 1"), json!("1 place")));
    assert_eq!(find("rope"), (json!("Hit 1 of 500"), json!("the first 500 of 601 places")));
    assert_eq!(find("lamp"), (json!(""), json!("not found")));
}

#[test]
fn an_address_that_is_not_encoded_names_no_corpus() {
    let host = told();
    let Some(mut page) = browse(&host, "#/c/100%/ask") else { return };
    page.until("that is an error", &format!("{}.startsWith('There is no corpus 100%.')", text("#problem")));
    assert_eq!(page.value("document.getElementById('new-view').hidden"), false);
    page.value("document.getElementById('problem-close').focus()");
    page.press("Enter");
    assert_eq!(page.value("document.activeElement.id"), "main", "the button that had the keyboard is hidden");
}

#[test]
fn an_address_of_a_place_that_is_not_in_the_document_opens_it_at_the_start() {
    let host = told();
    let documents = host.get("/v1/corpora/a/documents").json()["documents"].take();
    let letter = documents.as_array().unwrap().iter().find(|document| document["name"] == "letter.txt").unwrap();
    let Some(mut page) = page(&host, "a", &format!("sources/{}/5-999", letter["id"])) else { return };
    let shown = "document.querySelector('#source-text > p')?.textContent === 'Dear Tom, the rope has come.'";
    page.until("it is open", shown);
    assert_eq!(page.value("document.querySelectorAll('#source-text mark').length"), 0);
    click(&mut page, "#source-close");
    assert_eq!(page.value("document.activeElement.id"), "main", "no control has opened it");
}

#[test]
fn a_corpus_that_cannot_be_read_is_shown_so_that_it_can_be_deleted() {
    let host = told();
    let Some(mut page) = browse(&host, "#/new") else { return };
    page.until("a view is shown", "document.body.dataset.view !== undefined");
    let damaged = "Promise.resolve(Response.json({ error: { message: 'a page is damaged' } }, { status: 500 }))";
    replace_once(&mut page, "/documents", damaged);
    page.value("location.hash = '#/c/a/ask'");
    page.until("the error is displayed", &format!("{}.startsWith('A page is damaged')", text("#problem")));
    assert_eq!(page.value(&text("#corpus-title")), "a");
}

#[test]
fn a_missing_graph_says_how_it_is_built() {
    let host = told();
    let Some(mut page) = page(&host, "a", "graph") else { return };
    page.until("by a question", &format!("{}.includes('the method mindgraph (Advanced)')", text("#graph-size")));
    page.value("document.getElementById('graph-kind').value = 'lightrag'");
    press(&mut page, "#graph-form", "Show");
    page.until("by an option", &format!("{}.includes('--memcot-store lightrag')", text("#graph-size")));
}

#[test]
fn a_page_without_its_server_displays_an_error() {
    let host = told();
    let folder = Arc::clone(&host.folder);
    let Some(mut page) = page(&host, "a", "ask") else { return };
    drop(host);
    ask(&mut page, "Who?");
    page.until("the error is displayed", &format!("{}.includes('The server does not answer.')", text(".turn")));
    assert_eq!(page.value("document.getElementById('ask-button').hidden"), false, "it can be asked again");
    click(&mut page, "#operations-link");
    page.until("so do numbers", &format!("{}.startsWith('The server')", text("#engine-models")));
    drop((page, folder));
}

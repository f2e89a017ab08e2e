//! The page in a real browser, in front of scripted models, by keyboard and by pointer.

use std::ops::Range;
use std::sync::Arc;

use calls::{BoxFuture, Call, CallError, Caller, Reply, Role, Scripted};
use serde_json::{Value, json};

use crate::graph::{self, built};
use crate::host::{CONTEXT_TOKENS, Host, Thinker, eventually};
use test_support::browser::Browser;

const STORY: &str = "The mill stood by the river.\n\nIn 1911 Ada Brook, who kept the light, married Tom Reed.";
const QUESTION: &str = "When did Ada Brook marry?";

/// A page on a corpus in a browser; `None` if there is no browser.
fn page(host: &Host, corpus: &str) -> Option<Browser> {
    let mut page = Browser::start(host.folder.path())?;
    page.width(1400);
    page.open(&format!("http://{}/#{corpus}", host.address));
    page.until(
        "the corpus is chosen",
        &format!("document.querySelector('#ask-title .name').textContent === '{corpus}'"),
    );
    page.until("its documents are listed", "document.getElementById('documents').children.length > 0");
    Some(page)
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

#[test]
fn the_graph_is_navigated_and_leads_to_its_source() {
    let host = built();
    let Some(mut page) = page(&host, "a") else { return };
    tab_to(&mut page, "at.form?.id === 'graph-form' && at.tagName === 'BUTTON'");
    page.press("Enter");
    page.until("it is drawn", "document.querySelectorAll('#graph-picture .node').length === 3");
    assert_eq!(page.value("document.getElementById('graph-size').textContent"), "3 of 3 nodes, 2 of 2 relations");
    assert_eq!(page.value("document.querySelectorAll('#graph-picture line').length"), 2);

    page.press("Tab");
    assert_eq!(focused(&mut page), "ada, entity, 2 relations");
    for (key, name) in [("ArrowRight", "tom"), ("ArrowRight", "pell"), ("ArrowRight", "ada"), ("ArrowLeft", "pell")] {
        page.press(key);
        assert_eq!(page.value("document.activeElement.getAttribute('aria-label').split(',')[0]"), name, "{key}");
    }
    page.press("Enter");
    page.until("its neighbourhood is drawn", "document.querySelectorAll('#graph-picture .node').length === 2");
    assert_eq!(page.value("document.getElementById('graph-node').textContent"), "pell (entity)");
    assert_eq!(page.value("document.getElementById('graph-content').textContent"), "A place.");
    let facts = page.value("document.getElementById('graph-facts').textContent");
    assert!(facts.as_str().unwrap().contains("a.txt, source not found"), "a quote that is nowhere: {facts}");
    assert_eq!(focused(&mut page), "pell, entity, 1 relation", "the keyboard stays in the picture");

    // A fact leads to the next node, and to its source.
    tab_to(&mut page, "at.className === 'link' && at.textContent === 'ada'");
    page.press("Enter");
    page.until("it is chosen", "document.getElementById('graph-node').textContent === 'ada (entity)'");
    tab_to(&mut page, "at.className === 'place'");
    let place = focused(&mut page);
    page.press("Enter");
    page.until("the place is marked", "document.querySelector('#source-text mark') !== null");
    assert_eq!(page.value("document.activeElement.outerHTML"), "<mark tabindex=\"-1\">Ada keeps the light</mark>");
    assert_eq!(page.value("document.getElementById('source-text').textContent"), graph::TEXT);
    page.press("Escape");
    assert_eq!(page.value("document.getElementById('source').hidden"), true);
    assert_eq!(focused(&mut page), place, "and back");

    page.value("document.getElementById('graph-all').focus()");
    page.press("Enter");
    page.until("none is chosen", "document.getElementById('graph-node').textContent === ''");
    assert_eq!(page.value("document.querySelectorAll('#graph-picture .node').length"), 3);
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn an_ingest_is_stopped_and_resumed() {
    let thinker = Thinker::default();
    let host = Host::with(Arc::new(thinker.clone()), |_| {});
    assert_eq!(host.post("/v1/corpora", &json!({ "name": "a" })).status, 201);
    let Some(mut page) = page(&host, "a") else { return };
    assert_eq!(page.value("document.getElementById('documents').textContent"), "This corpus has no documents yet.");
    let jobs = "document.getElementById('jobs')";
    let click = |label: &str| {
        format!("[...{jobs}.querySelectorAll('button')].find(at => at.textContent === '{label}').click()")
    };
    let shown = |label: &str| {
        format!(
            "[...{jobs}.querySelectorAll('button')].filter(at => at.checkVisibility()).map(at => at.textContent).join() === '{label}'"
        )
    };
    page.value("document.getElementById('ingest-method').value = 'gam'");
    page.value(
        "(() => {
        const files = new DataTransfer();
        files.items.add(new File(['One.'], 'one.txt'));
        document.getElementById('files').files = files.files;
        document.getElementById('files').dispatchEvent(new Event('change'));
    })()",
    );
    page.until("it runs", &format!("{jobs}.textContent.includes('gam: running one.txt')"));
    page.until("it can be stopped", &shown("Stop"));
    eventually("the memorizer is asked", || thinker.begun() == 1);
    page.until(
        "its document is listed meanwhile",
        "document.getElementById('documents').textContent.includes('one.txt')",
    );
    page.value(&click("Stop"));
    page.until("it is stopped", &format!("{jobs}.textContent.includes('gam: cancelled')"));
    page.until("it can be resumed", &shown("Resume"));
    assert_eq!(thinker.given_up(), 1);
    page.until(
        "what was done is listed",
        "document.getElementById('documents').textContent.includes('one.txt 1 page')",
    );

    page.open(&format!("http://{}/?again#a", host.address));
    page.until("it can be resumed after a reload", &shown("Resume"));
    page.value(&click("Resume"));
    page.until("it runs again", &format!("{jobs}.textContent.includes('gam: running')"));
    eventually("the memorizer is asked again", || thinker.begun() == 2);
    page.value(&click("Stop"));
    page.until("it is stopped again", &shown("Resume"));
    assert_eq!((thinker.given_up(), page.value(&format!("{jobs}.children.length"))), (2, json!(1)));
    assert_eq!(page.complaints, Vec::<String>::new());
}

/// A script whose prompts are half cached.
struct HalfCached(Scripted);

impl Caller for HalfCached {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Reply, CallError>> {
        let reply = self.0.call(call);
        Box::pin(async move {
            let mut reply = reply.await?;
            reply.usage.cached_tokens = reply.usage.prompt_tokens / 2;
            Ok(reply)
        })
    }

    fn context_tokens(&self, role: Role) -> usize {
        self.0.context_tokens(role)
    }

    fn token_spans(&self, role: Role, text: &str) -> Vec<Range<usize>> {
        self.0.token_spans(role, text)
    }

    fn prompt_tokens(&self, call: &Call) -> usize {
        self.0.prompt_tokens(call)
    }

    fn model(&self, role: Role) -> &str {
        self.0.model(role)
    }
}

/// A corpus that is prepared for `gam`, and a script that researches it in two rounds.
fn researched() -> Host {
    let plan = json!({ "info_needs": ["the year"], "tools": ["keyword", "page_index"], "keyword_collection": ["married"],
        "vector_queries": [], "page_index": [1] });
    let script = Scripted::new(CONTEXT_TOKENS)
        .answer("gam.memorize", "Ada Brook married Tom Reed in 1911.")
        .answer("gam.plan", plan.to_string())
        .answer("gam.integrate", json!({ "content": "Ada Brook married in 1911.", "sources": [1] }).to_string())
        .answer("gam.info_check", json!({ "enough": false }).to_string())
        .answer("gam.info_check", json!({ "enough": true }).to_string())
        .answer("gam.follow_up", json!({ "new_requests": ["Which year?"] }).to_string())
        .answer("answer", "Ada Brook married Tom Reed in 1911.");
    let host = Host::new(HalfCached(script));
    host.corpus("a", &[("story.txt", STORY)]);
    let job = host.post("/v1/corpora/a/prepare", &json!({ "method": "gam" }));
    assert_eq!(host.ended(&job.json())["status"], "done");
    host
}

/// Asks by keyboard only.
fn ask(page: &mut Browser) {
    page.value("document.getElementById('method').value = 'gam'");
    page.value(&format!("document.getElementById('question').value = '{QUESTION}'"));
    page.value("document.getElementById('question').focus()");
    tab_to(page, "at.id === 'ask-button'");
    page.press("Enter");
    page.until("there is an answer", "document.querySelectorAll('#citations button').length > 0");
}

#[test]
fn the_method_is_displayed_step_by_step() {
    let host = researched();
    let Some(mut page) = page(&host, "a") else { return };
    ask(&mut page);
    let titles = page.value("[...document.querySelectorAll('#steps strong')].map(at => at.textContent)");
    let round = ["plan", "search", "search", "evidence", "integrate", "info check"];
    let want = [&round[..], &["follow up"], &round, &["answer", "statements"]].concat();
    assert_eq!(titles, json!(want));
    let step =
        |number: usize| format!("document.querySelectorAll('#steps li')[{number}].innerText.replaceAll('\\n', ' ')");
    let has = |page: &mut Browser, number: usize, words: &[&str]| {
        let text = page.value(&step(number));
        for word in words {
            assert!(text.as_str().unwrap().contains(word), "{word} in {text}");
        }
    };
    has(&mut page, 0, &["plan researcher", "tools keyword · page_index", "keyword collection married"]);
    has(&mut page, 1, &["search keyword", "queries married", "pages 1 ("]);
    has(&mut page, 2, &["search page index", "queries 1", "pages 1"]);
    has(&mut page, 4, &["integrate researcher", "content Ada Brook married in 1911.", "sources 1"]);
    has(&mut page, 5, &["info check judge", "enough no"]);
    has(&mut page, 6, &["follow up researcher", "new requests Which year?"]);
    has(&mut page, 12, &["info check judge", "enough yes"]);
    has(&mut page, 13, &["answer responder", "Ada Brook married Tom Reed in 1911."]);

    // The page shows what the server reports of a call, in words and to scale.
    let trace = host.post("/v1/corpora/a/ask", &json!({ "question": QUESTION, "method": "gam" })).json();
    let trace = host.get(&format!("/v1/traces/{}", trace["trace"].as_str().expect("an id"))).json();
    let plan = &trace["events"][0];
    let (prompt, cached) = (plan["prompt_tokens"].as_u64().unwrap(), plan["cached_tokens"].as_u64().unwrap());
    assert!(cached > 0 && plan["step"] == "gam.plan", "{plan}");
    let words = format!("{prompt} tokens read, {cached} of them cached and {} computed", prompt - cached);
    has(&mut page, 0, &[&words]);
    let parts = page.value("[...document.querySelector('#steps .bar').children].map(at => parseFloat(at.style.width))");
    let share = 100.0 * cached as f64 / prompt as f64;
    assert!((parts[1].as_f64().unwrap() - share).abs() < 0.01, "{parts} for {share}");
    let cost = page.value("document.getElementById('cost').textContent");
    assert!(cost.as_str().unwrap().contains("gam by scripted: 8 calls"), "{cost}");
    assert_eq!(page.value("document.querySelector('#citations button').firstChild.textContent.includes('1911')"), true);
    assert_eq!(page.complaints, Vec::<String>::new());
}

/// Opens every collapsible element of the page.
fn unfold(page: &mut Browser) {
    ask(page);
    page.value("document.getElementById('graph-form').requestSubmit()");
    page.value("document.getElementById('engine').open = document.getElementById('bench').open = true");
    page.value(
        "(() => {
        const files = new DataTransfer();
        const report = { suite: 'mine', rows: [{ model: 'a', scores: { f1: 0.5 } }, { model: 'b', scores: { f1: 0.25 } }] };
        files.items.add(new File([JSON.stringify(report)], 'report.json'));
        document.getElementById('bench-file').files = files.files;
        document.getElementById('bench-file').dispatchEvent(new Event('change'));
    })()",
    );
    page.until("a report is shown", "document.querySelectorAll('#bench-report td').length === 4");
    page.value("document.querySelector('#citations button').click()");
    page.until("a source is shown", "document.querySelector('#source-text mark') !== null");
}

#[test]
fn the_keyboard_reaches_every_control_in_order_with_visible_focus() {
    let host = researched();
    let Some(mut page) = page(&host, "a") else { return };
    unfold(&mut page);
    let controls =
        "[...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex=\"0\"]')]
        .filter(at => at.checkVisibility() && at.tabIndex >= 0)";
    let count = page.value(&format!("(window.controls = {controls}).length")).as_u64().unwrap();
    assert!(count > 20, "{count} controls");
    page.value("(document.querySelector('h1').tabIndex = -1, document.querySelector('h1').focus())");
    for number in 0..count {
        page.press("Tab");
        let at = page.value("controls.indexOf(document.activeElement)");
        assert_eq!(at, number, "{}", page.value("document.activeElement.outerHTML"));
        let seen = page.value(
            "(at => { const style = getComputedStyle(at); return style.outlineStyle === 'solid' && parseFloat(style.outlineWidth) >= 2; })(document.activeElement)",
        );
        assert_eq!(seen, true, "{}", page.value("document.activeElement.outerHTML"));
        let into_view = page
            .value("(box => box.bottom > 0 && box.top < innerHeight)(document.activeElement.getBoundingClientRect())");
        assert_eq!(into_view, true, "{}", page.value("document.activeElement.outerHTML"));
    }

    // The same for screen readers: every control has a name.
    let heard = page.heard();
    let controls = ["button", "textbox", "combobox", "link", "DisclosureTriangle", "progressbar", "image"];
    let controls: Vec<_> = heard.into_iter().filter(|(role, _)| controls.contains(&role.as_str())).collect();
    assert!(controls.len() as u64 > 20, "{controls:?}");
    assert!(controls.iter().all(|(_, name)| !name.trim().is_empty()), "{controls:?}");
    for (role, name) in [("textbox", "Question"), ("combobox", "Method"), ("textbox", "New corpus"), ("button", "Ask")]
    {
        assert!(controls.iter().any(|(r, n)| (r.as_str(), n.as_str()) == (role, name)), "{role} {name}: {controls:?}");
    }
}

#[test]
fn nothing_is_clipped_or_of_low_contrast() {
    let look = include_str!("page.js");
    let check = |page: &mut Browser, what: &str| {
        for width in [360, 768, 1400] {
            page.width(width);
            for scheme in ["light", "dark"] {
                page.prefers(scheme);
                assert_eq!(page.value(look), json!([]), "{what}, {width} wide, {scheme}");
                let wide = page.value("document.documentElement.scrollWidth").as_u64();
                assert!(wide.is_some_and(|wide| wide <= u64::from(width)), "{what}: {wide:?} in a window of {width}");
            }
        }
        page.width(1400);
    };
    let host = researched();
    let Some(mut page) = page(&host, "a") else { return };
    unfold(&mut page);
    check(&mut page, "an answer");
    page.value("document.getElementById('new-name').value = 'tales-of-a-lighthouse-and-of-those-who-kept-it-through-the-years'");
    page.value("document.getElementById('new-corpus').requestSubmit()");
    page.until("a new corpus is empty", "document.getElementById('documents').textContent.startsWith('This corpus')");
    page.value("(document.getElementById('question').value = 'Who?', document.getElementById('ask').requestSubmit())");
    page.until(
        "the error is displayed",
        "document.getElementById('problem').textContent.includes('holds no documents')",
    );
    assert_eq!(page.value("document.getElementById('result').hidden"), true, "nothing was found");
    check(&mut page, "an error");

    let host = built();
    let folder = host.folder.path().join("second");
    std::fs::create_dir(&folder).expect("it can be made");
    let Some(mut page) = Browser::start(&folder) else { return };
    page.width(1400);
    page.open(&format!("http://{}/", host.address));
    page.until("the corpus is chosen", "!document.getElementById('corpus').hidden");
    page.value("document.getElementById('graph-form').requestSubmit()");
    page.until("it is drawn", "document.querySelectorAll('#graph-picture .node').length === 3");
    page.value("document.querySelector('#graph-picture .node').dispatchEvent(new MouseEvent('click'))");
    page.until("a node is chosen", "document.getElementById('graph-facts').children.length === 3");
    check(&mut page, "a graph");
    page.open(&format!("http://{}/docs", host.address));
    page.until("routes are listed", "document.querySelectorAll('details').length > 20");
    page.value("document.querySelectorAll('details').forEach((route) => { route.open = true; })");
    check(&mut page, "the API");
}

#[test]
fn a_page_without_its_server_displays_an_error() {
    let host = researched();
    let folder = Arc::clone(&host.folder);
    let Some(mut page) = page(&host, "a") else { return };
    drop(host);
    page.value("(document.getElementById('question').value = 'Who?', document.getElementById('ask').requestSubmit())");
    page.until(
        "the error is displayed",
        "document.getElementById('problem').textContent.startsWith('The server does not answer.')",
    );
    page.value("document.getElementById('engine').open = true");
    page.until(
        "old numbers do not stay",
        "document.getElementById('engine-models').textContent.startsWith('The server')",
    );
    drop((page, folder));
}

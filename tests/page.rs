//! The web page in a real browser, operated as a user would.

use serde_json::json;

use test_support::browser::Browser;
use test_support::home::{Home, repository};
use test_support::serving::Serving;

const TEXT: &str = "The old mill stood by the river.\n\nIn the spring of 1911 the lighthouse keeper Ada Brook married Tom Reed, \
                    a builder of boats.\n\nTheir cat was grey.";

/// Drops a file on the page as a user does.
const DROP: &str = "(() => {
    const files = new DataTransfer();
    files.items.add(new File([TEXT], 'story.txt', { type: 'text/plain' }));
    document.getElementById('drop').dispatchEvent(new DragEvent('drop', { dataTransfer: files, bubbles: true, cancelable: true }));
})()";

#[test]
fn a_document_is_dropped_asked_about_and_cited() {
    let Some(home) = Home::new("page") else { return };
    let Some(mut page) = Browser::start(&home.path("")) else { return };
    let runs = repository("benches/runs").display().to_string();
    let serving = Serving::start(&home, &["--bench-runs", &runs]);
    page.open(&format!("http://{}/", serving.address));
    page.until("the models are named", "document.getElementById('state').textContent.includes('smollm2')");

    page.value(
        "document.getElementById('new-name').value = 'tales'; document.getElementById('new-corpus').requestSubmit()",
    );
    page.until("the corpus is chosen", "!document.getElementById('corpus').hidden");
    page.value("document.getElementById('ingest-method').value = 'rag'");
    page.value(&DROP.replace("TEXT", &json!(TEXT).to_string()));
    page.until("the document is remembered", "document.getElementById('jobs').textContent.startsWith('rag: done')");
    page.until("it is listed", "document.getElementById('documents').textContent.includes('story.txt 1 page')");

    page.value("document.getElementById('method').value = 'rag'");
    page.value("document.getElementById('question').value = 'Whom did the keeper of the lighthouse marry?'");
    // Uses the keyboard only.
    page.value("document.getElementById('ask-button').focus()");
    page.press("Enter");
    page.until("there is an answer with citations", "document.querySelectorAll('#citations button').length > 0");
    assert!(page.value("document.querySelectorAll('#steps li').length").as_u64() > Some(0), "steps are shown");
    let quote = page.value("document.querySelector('#citations button').firstChild.textContent");

    page.value("document.querySelector('#citations button').click()");
    page.until("the place is marked", "document.querySelector('#source-text mark') !== null");
    assert_eq!(page.value("document.querySelector('#source-text mark').textContent"), quote);
    assert_eq!(page.value("document.activeElement.tagName"), "MARK", "the keyboard is there too");
    assert_eq!(page.value("document.getElementById('source-text').textContent"), TEXT);

    research(&mut page);
    engine_and_benchmarks(&mut page);
    page.value("document.getElementById('graph-form').requestSubmit()");
    page.until(
        "the graph says that it is not built",
        "document.getElementById('graph-size').textContent.includes('This graph does not exist yet')",
    );

    for width in [360, 768, 1400] {
        page.width(width);
        for scheme in ["light", "dark"] {
            page.prefers(scheme);
            let wide = page.value("document.documentElement.scrollWidth").as_u64();
            assert!(wide.is_some_and(|wide| wide <= u64::from(width)), "{wide:?} in a window of {width}");
        }
    }
    assert_eq!(page.complaints, Vec::<String>::new());
}

/// The same question with GAM, whose steps are shown with their costs.
fn research(page: &mut Browser) {
    page.value("document.getElementById('ingest-method').value = 'gam'");
    page.value("document.getElementById('prepare').click()");
    page.until("abstracts are written", "document.getElementById('jobs').textContent.includes('gam: done')");
    page.value("document.getElementById('method').value = 'gam'");
    page.value("document.getElementById('ask').requestSubmit()");
    page.until("there is an answer", "document.getElementById('cost').textContent.startsWith('gam by smollm2')");
    let cost = page.value("document.getElementById('cost').textContent");
    let split = "/\\([1-9][0-9]* cached, [1-9][0-9]* computed\\)/.test(document.getElementById('cost').textContent)";
    assert_eq!(page.value(split), true, "{cost}");
    let steps = page.value("[...document.querySelectorAll('#steps strong')].map((step) => step.textContent)");
    let steps: Vec<&str> = steps.as_array().unwrap().iter().filter_map(|step| step.as_str()).collect();
    assert_eq!((steps.first(), steps.last()), (Some(&"plan"), Some(&"statements")), "{steps:?}");
    for step in ["search", "evidence", "read", "short"] {
        assert!(steps.contains(&step), "{step} in {steps:?}");
    }
}

fn engine_and_benchmarks(page: &mut Browser) {
    page.value("document.getElementById('engine').open = true");
    page.until(
        "the engine is shown",
        "/cached, 0 pinned, of [1-9][0-9]{2,}/.test(document.getElementById('engine-models').textContent)",
    );
    assert_eq!(page.value("document.querySelector('#engine-models h3').textContent"), "smollm2-135m-instruct:q4_1");

    page.value("document.getElementById('bench').open = true");
    let choose = "(() => {
        const runs = document.getElementById('bench-runs');
        runs.value = [...runs.options].map((run) => run.value).find((run) => run.endsWith('retrieval-scifact'));
        runs.dispatchEvent(new Event('change'));
    })()";
    page.value(choose);
    page.until("a report is shown", "document.querySelectorAll('#bench-report td').length > 10");
    let cells = page.value("[...document.querySelectorAll('#bench-report td')].map((cell) => cell.textContent)");
    assert!(cells.as_array().unwrap().contains(&json!("0.6821")), "BM25 on SciFact: {cells}");
    page.value(
        "(() => {
        const files = new DataTransfer();
        files.items.add(new File(['{\"suite\":\"mine\",\"rows\":[{\"model\":\"a\",\"scores\":{\"f1\":0.5}}]}'], 'report.json'));
        const drop = new DragEvent('drop', { dataTransfer: files, bubbles: true, cancelable: true });
        document.getElementById('bench-drop').dispatchEvent(drop);
    })()",
    );
    page.until(
        "a dropped report is shown",
        "document.getElementById('bench-report').textContent.includes('scores f1')",
    );
}

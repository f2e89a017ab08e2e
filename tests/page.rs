//! The web page in a real browser with real models, operated as a user would.

use std::fs;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
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

const ANSWERED: &str = "document.querySelector('.turn:last-child .tools') !== null";

#[test]
fn a_document_is_dropped_asked_about_and_cited() {
    let Some(home) = Home::new("page") else { return };
    let Some(mut page) = Browser::start(&home.path("")) else { return };
    let runs = repository("benches/runs").display().to_string();
    let serving = Serving::start(&home, &["--bench-runs", &runs]);
    page.open(&format!("http://{}/", serving.address));
    page.until("the first screen is there", "!document.getElementById('new-view').hidden");

    page.value("document.getElementById('question').value = 'Whom did the keeper of the lighthouse marry?'");
    page.value(&DROP.replace("TEXT", &json!(TEXT).to_string()));
    page.until("the corpus is named after it", "document.getElementById('corpus-title').textContent === 'story'");
    page.until("there is an answer with sources", "document.querySelectorAll('.source-card').length > 0");
    let steps = "document.querySelectorAll('.steps li').length";
    assert!(page.value(steps).as_u64() > Some(0), "steps are shown");
    let verdicts = page.value("document.querySelector('.verdicts').textContent");
    assert!(verdicts.as_str().unwrap().ends_with("% likely to be right"), "{verdicts}");
    let quote = page.value("document.querySelector('.source-card .quote').textContent");

    page.value("document.querySelector('.source-card').click()");
    page.until("the place is marked", "document.querySelector('#source-text mark') !== null");
    assert_eq!(page.value("document.querySelector('#source-text mark').textContent"), quote);
    assert_eq!(page.value("document.activeElement.tagName"), "MARK", "the keyboard is there too");
    page.value("document.getElementById('source-close').click()");

    research(&mut page);
    page.value("document.getElementById('graph-tab').click()");
    page.until(
        "the graph says that it is not built",
        "document.getElementById('graph-size').textContent.includes('This graph does not exist yet')",
    );
    page.value("document.getElementById('operations-link').click()");
    engine_and_benchmarks(&mut page);

    for width in [320, 768, 1400, 2560] {
        page.width(width);
        for scheme in ["light", "dark"] {
            page.prefers(scheme);
            let wide = page.value("document.documentElement.scrollWidth").as_u64();
            assert!(wide.is_some_and(|wide| wide <= u64::from(width)), "{wide:?} in a window of {width}");
        }
    }
    assert_eq!(page.complaints, Vec::<String>::new());
}

/// `MEMLOCAL_PICTURES=docs cargo test --release -p memlocal --test tests picture_of_samples -- --ignored` makes docs/page.png.
#[test]
#[ignore = "writes page.png into the folder of MEMLOCAL_PICTURES"]
fn picture_of_samples() {
    let folder = std::env::var("MEMLOCAL_PICTURES").expect("MEMLOCAL_PICTURES=FOLDER");
    let folder = repository(&folder);
    let home = Home::new("picture").expect("the default models");
    let mut page = Browser::start(&home.path("")).expect("Chromium");
    let serving = Serving::start(&home, &[]);
    page.width(1400);
    page.prefers("light");
    page.open(&format!("http://{}/", serving.address));
    page.until("the first screen is there", "!document.getElementById('new-view').hidden");
    let name = "the-gift-of-the-magi.txt";
    let text = fs::read_to_string(repository("samples").join(name)).expect("it is there");
    page.value("document.getElementById('question').value = 'What time was the coffee made?'");
    page.value(&DROP.replace("TEXT", &json!(text).to_string()).replace("story.txt", name));
    page.until("there is an answer", ANSWERED);
    assert_eq!(page.value("document.querySelector('.short').textContent"), "7 o'clock");
    let verdicts = page.value("document.querySelector('.verdicts').textContent");
    assert!(verdicts.as_str().unwrap().starts_with("1 statement checked: 1 supported"), "{verdicts}");
    page.value("document.querySelector('.mark').click()");
    page.until("the place is marked", "document.querySelector('#source-text mark') !== null");
    // The pointer of text in the box blinks.
    page.value("document.activeElement.blur()");
    page.until("all is read", "document.getElementById('strip').hidden");
    let png = STANDARD.decode(page.picture()).expect("it is base64");
    fs::write(Path::new(&folder).join("page.png"), png).expect("it can be written");
}

/// The same question with GAM, whose steps are told with what they reused.
fn research(page: &mut Browser) {
    page.value("document.querySelector('[value=thorough]').click()");
    page.value("document.getElementById('question').value = 'Whom did the keeper of the lighthouse marry?'");
    page.value("document.getElementById('ask').requestSubmit()");
    page.until("there is a second question", "document.querySelectorAll('.turn').length === 2");
    page.until("there is an answer", ANSWERED);
    let about = page.value("document.querySelector('.turn:last-child .about').textContent");
    assert!(about.as_str().is_some_and(|about| about.starts_with("Thorough · smollm2")), "{about}");
    let foot = page.value("document.querySelector('.turn:last-child .foot').textContent");
    assert!(foot.as_str().is_some_and(|foot| foot.contains(" % of what the model read was reused")), "{foot}");
    let did = page.value("[...document.querySelectorAll('.turn:last-child .did')].map((step) => step.textContent)");
    let did: Vec<&str> = did.as_array().unwrap().iter().filter_map(|step| step.as_str()).collect();
    for step in ["Planned what to look for", "Searched ", "Read 1 page", "Looked for the answer", "Checked "] {
        assert!(did.iter().any(|one| one.starts_with(step)), "{step} in {did:?}");
    }
}

fn engine_and_benchmarks(page: &mut Browser) {
    page.until(
        "the engine is shown",
        "/cached, of [1-9][0-9]{2,}/.test(document.getElementById('engine-models').textContent)",
    );
    assert_eq!(page.value("document.querySelector('#engine-models h3').textContent"), "smollm2-135m-instruct:q4_1");
    assert_eq!(page.value("document.querySelectorAll('#engine-models svg').length >= 3"), true, "charts over time");

    page.until("the runs are listed", "document.getElementById('bench-runs').options.length > 1");
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

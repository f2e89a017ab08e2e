//! How the page looks in every state: at four widths, in both themes, by keyboard and to screen readers; and its pictures.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::graph::built;
use crate::host::Host;
use crate::page::{MANY_NODES, QUESTION, answered, ask, browse, click, page, told};
use test_support::browser::Browser;

const WIDTHS: [u32; 4] = [320, 768, 1400, 2560];

/// A state of the page: its name, its address on corpus `a`, and what is done there.
type State = (&'static str, &'static str, fn(&mut Browser));

/// The states that are looked at.
const STATES: [State; 9] = [
    ("first", "#/new", |_| {}),
    ("welcome", "#/c/a/ask", |page| {
        page.until("a question is suggested", "document.querySelectorAll('#suggestions button').length === 1");
    }),
    ("answer", "#/c/a/ask", |page| {
        ask(page, QUESTION);
        answered(page);
        page.value("document.querySelectorAll('details:not(.more)').forEach((at) => { at.open = true; })");
    }),
    ("menu", "#/c/a/ask", |page| {
        ask(page, QUESTION);
        answered(page);
        click(page, "#talk-tools summary");
    }),
    ("notes", "#/c/a/notes", |page| {
        page.until("they are listed", "document.querySelectorAll('.note-card').length === 2");
    }),
    ("source", "#/c/a/ask", |page| {
        ask(page, QUESTION);
        answered(page);
        click(page, ".mark");
        page.until("the place is marked", "document.querySelector('#source-text mark') !== null");
    }),
    ("sources", "#/c/a/sources", |page| {
        page.until("they are listed", "document.querySelectorAll('.document').length > 1");
    }),
    ("operations", "#/operations", |page| {
        // The last of what is fetched for this view.
        page.until("runs are listed", "document.getElementById('bench-runs').options.length > 0");
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
    }),
    ("problem", "#/c/none/ask", |page| {
        page.until("the error is displayed", "!document.getElementById('problem').hidden");
    }),
];

/// A note and a saved answer of corpus `a`.
fn noted(host: &Host) {
    let note = json!({ "title": "To ask", "text": "* Who sold the **lamp**?\n* Was it paid in crowns?" });
    assert_eq!(host.post("/v1/corpora/a/notes", &note).status, 201);
    let thread = host.post("/v1/corpora/a/threads", &json!({})).json()["id"].take();
    let question = json!({ "question": QUESTION, "method": "rag", "thread": thread });
    assert_eq!(host.post("/v1/corpora/a/ask", &question).status, 200);
    let saved = json!({ "from": { "thread": thread, "turn": 0, "answer": 0 } });
    assert_eq!(host.post("/v1/corpora/a/notes", &saved).status, 201);
}

/// Opens a state of a page that has been opened before.
fn enter(page: &mut Browser, host: &Host, (_, hash, act): State) {
    page.open("about:blank");
    page.open(&format!("http://{}/{hash}", host.address));
    page.until("the corpora are listed", "document.querySelectorAll('#corpora a').length > 0");
    page.until("a view is shown", "document.body.dataset.view !== undefined");
    act(page);
}

#[test]
fn nothing_is_clipped_pale_or_without_a_name_at_any_width_in_any_theme() {
    let host = told();
    noted(&host);
    let Some(mut page) = browse(&host, "") else { return };
    for state in STATES {
        enter(&mut page, &host, state);
        check(&mut page, state.0);
    }
    page.width(320);
    click(&mut page, "#menu");
    check(&mut page, "the menu");
    page.open(&format!("http://{}/docs", host.address));
    page.until("routes are listed", "document.querySelectorAll('details').length > 20");
    page.value("document.querySelectorAll('details').forEach((route) => { route.open = true; })");
    check(&mut page, "the API");

    let host = built();
    let Some(mut page) = crate::page::page(&host, "a", "graph") else { return };
    click(&mut page, ".node");
    page.until("a node is chosen", "document.getElementById('graph-facts').children.length === 3");
    check(&mut page, "a graph");
}

#[test]
fn what_can_be_done_with_a_model_is_in_sight_at_every_width() {
    let host = told();
    let Some(mut page) = browse(&host, "#/operations") else { return };
    page.until("models are listed", "document.querySelectorAll('#shelf button').length > 0");
    for width in WIDTHS {
        page.width(width);
        let hidden = "(() => {
            const end = document.querySelector('#shelf .scroll').getBoundingClientRect().right;
            return [...document.querySelectorAll('#shelf button')].filter((at) => at.getBoundingClientRect().right > end).length;
        })()";
        assert_eq!(page.value(hidden), 0, "{width} wide");
    }
}

/// A window of 1,280 by 1,024 pixels at 400 %.
#[test]
fn a_low_window_has_room_for_the_answer() {
    let host = told();
    let Some(mut page) = page(&host, "a", "ask") else { return };
    ask(&mut page, QUESTION);
    answered(&mut page);
    page.size(320, 256);
    let in_sight = "(prose => {
        prose.scrollIntoView();
        const { left, top, height } = prose.getBoundingClientRect();
        return prose.contains(document.elementFromPoint(left + 9, top + height / 2));
    })(document.querySelector('.turn .prose'))";
    assert_eq!(page.value(in_sight), true);
}

/// Looks at the page at every width in both themes.
fn check(page: &mut Browser, what: &str) {
    let axe = axe();
    // Once for each page, since it is half a megabyte.
    if let Some(axe) = &axe {
        page.value(axe);
    }
    for width in WIDTHS {
        page.width(width);
        for scheme in ["light", "dark"] {
            page.prefers(scheme);
            assert_eq!(page.value(include_str!("page.js")), json!([]), "{what}, {width} wide, {scheme}");
            let wide = page.value("document.documentElement.scrollWidth").as_u64();
            assert!(wide.is_some_and(|wide| wide <= u64::from(width)), "{what}: {wide:?} in a window of {width}");
            // What axe-core finds depends on the width, or on the colours of what a narrow or a wide window shows.
            if axe.is_some() && (scheme == "light" || [320, 1400].contains(&width)) {
                let found = "axe.run({ resultTypes: ['violations'] }).then(({ violations }) => violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`))";
                assert_eq!(page.value(found), json!([]), "{what}, {width} wide, {scheme}");
            }
        }
    }
    page.width(1400);
    page.prefers("light");
}

const AXE: &str = "axe-core@4.14.1";

/// axe-core's script, fetched by npm once; `None` with the reason where that is impossible.
fn axe() -> Option<String> {
    static SCRIPT: OnceLock<Option<String>> = OnceLock::new();
    let fetch = || {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("axe");
        let script = folder.join("node_modules/axe-core/axe.min.js");
        if !script.exists() {
            let prefix = folder.display().to_string();
            let install = ["install", "--silent", "--no-audit", "--no-fund", "--prefix", &prefix, AXE];
            let _ = Command::new("npm").args(install).output();
        }
        let read = fs::read_to_string(script);
        if read.is_err() {
            println!("not tested: accessibility by axe-core; `npm install {AXE}` does not work here");
        }
        read.ok()
    };
    SCRIPT.get_or_init(fetch).clone()
}

#[test]
fn the_keyboard_reaches_every_control_in_order_with_visible_focus() {
    let host = told();
    noted(&host);
    let Some(mut page) = browse(&host, "") else { return };
    for state in STATES {
        enter(&mut page, &host, state);
        walk(&mut page, state.0);
        // The same for screen readers: every control has a name.
        let controls = [
            "button",
            "textbox",
            "searchbox",
            "combobox",
            "link",
            "radio",
            "DisclosureTriangle",
            "progressbar",
            "image",
        ];
        let heard = page.heard().into_iter().filter(|(agent, _)| controls.contains(&agent.as_str()));
        let nameless: Vec<_> = heard.filter(|(_, name)| name.trim().is_empty()).collect();
        assert_eq!(nameless, Vec::<(String, String)>::new(), "{}", state.0);
    }
}

/// Walks through all controls by Tab.
fn walk(page: &mut Browser, what: &str) {
    let controls =
        "[...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex=\"0\"]')]
        .filter(at => at.checkVisibility({ visibilityProperty: true }) && at.tabIndex >= 0 && !at.disabled && (at.type !== 'radio' || at.checked))";
    let count = page.value(&format!("(window.controls = {controls}).length")).as_u64().unwrap();
    assert!(count > 8, "{what}: {count} controls");
    page.value("(document.body.tabIndex = -1, document.body.focus())");
    for number in 0..count {
        page.press("Tab");
        let at = page.value("controls.indexOf(document.activeElement)");
        assert_eq!(at, number, "{what}: {}", page.value("document.activeElement.outerHTML"));
        let seen = page.value(
            "(at => { const style = getComputedStyle(at.type === 'radio' ? at.nextElementSibling : at.id === 'question' ? at.parentElement : at); return style.outlineStyle === 'solid' && parseFloat(style.outlineWidth) >= 2; })(document.activeElement)",
        );
        assert_eq!(seen, true, "{what}: {}", page.value("document.activeElement.outerHTML"));
        let into_view = page
            .value("(box => box.bottom > 0 && box.top < innerHeight)(document.activeElement.getBoundingClientRect())");
        assert_eq!(into_view, true, "{what}: {}", page.value("document.activeElement.outerHTML"));
    }
}

#[test]
fn the_page_is_small_and_asks_only_its_server() {
    let host = told();
    let Some(mut page) = page(&host, "a", "ask") else { return };
    let loaded = page.value("performance.getEntriesByType('resource').filter(({ name }) => !name.startsWith('data:')).map(({ name }) => new URL(name).origin)");
    let origin = json!(format!("http://{}", host.address));
    let loaded = loaded.as_array().unwrap();
    assert!(loaded.len() > 5 && loaded.iter().all(|from| *from == origin), "{loaded:?}");
    let files = page.value("[location.pathname, ...performance.getEntriesByType('resource').map(({ name }) => new URL(name).pathname).filter(name => name.startsWith('/page/'))]");
    let bytes: usize = files.as_array().unwrap().iter().map(|file| host.get(file.as_str().unwrap()).text.len()).sum();
    assert!(bytes <= 200 << 10, "the page has {bytes} bytes in {files}");
    let theme = |page: &mut Browser, name: &str| {
        page.value(&format!("(at => {{ at.value = '{name}'; at.dispatchEvent(new Event('change')); }})(document.getElementById('theme'))"));
        page.value("getComputedStyle(document.body).backgroundColor")
    };
    page.prefers("light");
    let (dark, light) = (theme(&mut page, "dark"), theme(&mut page, "light"));
    page.prefers("dark");
    assert_eq!((theme(&mut page, "light"), theme(&mut page, "system")), (light.clone(), dark.clone()));
    assert_ne!(dark, light);
}

/// `cargo test --release -p server first_paint -- --ignored --nocapture` prints the times of the first paint.
#[test]
#[ignore = "measures a time"]
fn first_paint() {
    let host = told();
    let Some(mut page) = browse(&host, "") else { return };
    let mut times = Vec::new();
    for number in 0..21 {
        page.open("about:blank");
        page.open(&format!("http://{}/?{number}", host.address));
        page.until("it is painted", "performance.getEntriesByName('first-contentful-paint').length === 1");
        let time = page.value("performance.getEntriesByName('first-contentful-paint')[0].startTime");
        times.push(time.as_f64().expect("a time"));
    }
    let first = times[0];
    times.sort_by(f64::total_cmp);
    println!(
        "first paint: {first:.0} ms at first, {:.0} ms median of {}, {:.0} ms at most",
        times[10],
        times.len(),
        times[20]
    );
}

/// `MEMLOCAL_PICTURES=FOLDER cargo test --release -p server pictures -- --ignored` makes pictures of all states.
#[test]
#[ignore = "writes pictures of the page into the folder of MEMLOCAL_PICTURES"]
fn pictures() {
    let folder = std::env::var("MEMLOCAL_PICTURES").expect("MEMLOCAL_PICTURES=FOLDER");
    let folder = Path::new(&folder);
    fs::create_dir_all(folder).expect("it can be made");
    let take = |page: &mut Browser, name: &str| {
        let png = STANDARD.decode(page.picture()).expect("it is base64");
        fs::write(folder.join(name), png).expect("it can be written");
    };
    let take_all = |page: &mut Browser, name: &str| {
        for width in WIDTHS {
            page.width(width);
            for scheme in ["light", "dark"] {
                page.prefers(scheme);
                take(page, &format!("{name}-{width}-{scheme}.png"));
            }
        }
        page.width(1400);
        page.prefers("light");
    };
    let host = told();
    let title = json!({ "title": "The light at Pell" }).to_string();
    host.send("PATCH", "/v1/corpora/a", &[("content-type", "application/json")], &title);
    let Some(mut page) = browse(&host, "") else { return };
    noted(&host);
    for state in STATES {
        enter(&mut page, &host, state);
        take_all(&mut page, state.0);
    }
    for (name, many) in [("graph", false), ("graph-of-2000", true)] {
        let host = if many { told() } else { built() };
        let Some(mut page) = crate::page::page(&host, "a", "sources") else { return };
        if many {
            page.value(MANY_NODES);
        }
        click(&mut page, "#graph-tab");
        page.until("it is drawn", "Number(document.getElementById('graph-picture').dataset.labels) > 2");
        click(&mut page, ".node");
        take_all(&mut page, name);
    }
}

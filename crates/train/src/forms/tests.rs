//! Data sets made of small sources: what is shown, held out, left out.

use super::wording::Text;
use super::*;
use flate2::{Compression, write::GzEncoder};

fn folder(items: &[serde_json::Value]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    add(&folder, "a.jsonl.gz", items);
    folder
}

/// Appends a member to a file, which is created if it does not exist.
fn add(folder: &tempfile::TempDir, name: &str, items: &[serde_json::Value]) {
    let path = folder.path().join(name);
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    let mut file = GzEncoder::new(file, Compression::fast());
    for item in items {
        writeln!(file, "{item}").unwrap();
    }
    file.finish().unwrap();
}

fn making(folder: &Path, seed: u64) -> Making {
    Making {
        from: folder.to_owned(),
        seed,
        without: Vec::new(),
        most: Vec::new(),
        held_out_percent: 10,
        unanswerable_percent: 100,
    }
}

fn items() -> Vec<serde_json::Value> {
    let item = |n: usize| {
        let text = format!("The tower number {n} is in town{n}x. It was built long ago by some people of that place.");
        serde_json::json!({ "id": format!("{n}"), "source": "test", "kind": "single",
            "context": [{ "title": format!("Tower {}", n % 5), "text": text }],
            "question": format!("Where is tower {n}?"), "answers": [format!("town{n}x")], "supporting": [] })
    };
    let mut items: Vec<_> = (0..200).map(item).collect();
    items.push(serde_json::json!({ "id": "b", "source": "test", "kind": "boolean", "context": "Fish swim.",
        "question": "Do fish swim?", "answers": ["yes"], "supporting": [] }));
    items.push(serde_json::json!({ "id": "u", "source": "test", "kind": "unanswerable", "context": "Fish swim.",
        "question": "Who swims fastest?", "answers": [], "supporting": [] }));
    items
}

#[test]
fn examples_show_the_answer_unless_they_say_that_it_is_not_there() {
    let folder = folder(&items());
    let made = make(&making(folder.path(), 1)).unwrap();
    let mut missing = 0;
    for line in made.lines.iter().chain(&made.held_out) {
        let Line::Chat { messages } = line else { panic!("no conversation") };
        let [system, user, assistant] = &messages[..] else { panic!("three turns") };
        assert_eq!(system.content, reading::SYSTEM);
        assert!(user.content.starts_with("CONTEXT\n[1]"));
        let (context, question) = user.content.split_once("QUESTION\n").unwrap();
        let asked = question.trim_start_matches("Where is tower ").trim_end_matches('?');
        if assistant.content == reading::NOT_FOUND {
            missing += 1;
            assert!(!context.contains(&format!("town{asked}x")), "{user:?}");
        } else if assistant.content != "yes" {
            assert_eq!(assistant.content, format!("town{asked}x"));
            assert!(context.contains(&assistant.content));
        }
    }
    // 200 towers, each with a question about another one of its title, and the two others.
    assert_eq!(made.lines.len() + made.held_out.len(), 402);
    assert!(missing > 200 && missing == made.unanswerable, "{missing}");
}

#[test]
fn the_same_seed_makes_the_same_and_contexts_are_on_one_side() {
    let folder = folder(&items());
    let made = make(&making(folder.path(), 1)).unwrap();
    assert_eq!(made, make(&making(folder.path(), 1)).unwrap());
    assert_ne!(made.lines, make(&making(folder.path(), 2)).unwrap().lines);
    assert!(!made.held_out.is_empty());
}

#[test]
fn stories_are_asked_about_other_sections_too() {
    let part = |n: usize| serde_json::json!({ "title": format!("Snow, part {n}"), "text": format!("The fox number{n} ran home.") });
    let item = |n: usize| {
        serde_json::json!({ "id": format!("{n}"), "source": "test", "kind": "story", "context": [part(n), part(n + 1)],
            "question": format!("Who ran in {n}?"), "answers": [format!("fox number{n}")], "supporting": [format!("Snow, part {n}")] })
    };
    let folder = folder(&(0..40).map(|n| item(n * 2)).collect::<Vec<_>>());
    let made = make(&making(folder.path(), 1)).unwrap();
    let lines: Vec<String> =
        made.lines.iter().chain(&made.held_out).map(|line| serde_json::to_string(line).unwrap()).collect();
    let (missing, found): (Vec<&String>, Vec<&String>) =
        lines.iter().partition(|line| line.ends_with("documents.\"}]}"));
    assert_eq!((missing.len(), found.len()), (40, 40));
    assert!(found.iter().any(|line| !line.contains("[2]")), "sections are also shown alone");
    for line in missing {
        let asked = line.split("Who ran in ").nth(1).and_then(|rest| rest.split('?').next()).unwrap();
        assert!(!line.contains(&format!("number{asked} ")), "{line}");
    }
}

/// The user's and the assistant's turn of each line.
fn turns(lines: &[Line]) -> Vec<(&str, &str)> {
    let mut turns = Vec::new();
    for line in lines {
        let Line::Chat { messages } = line else { panic!("no conversation") };
        turns.push((messages[1].content.as_str(), messages[2].content.as_str()));
    }
    turns
}

fn item(id: &str, kind: &str, context: &[(&str, &str)], question: &str, answers: &[&str]) -> serde_json::Value {
    let passage = |(title, text): &(&str, &str)| serde_json::json!({ "title": title, "text": text });
    serde_json::json!({ "id": id, "source": "test", "kind": kind, "question": question, "answers": answers,
        "context": context.iter().map(passage).collect::<Vec<_>>(), "supporting": [] })
}

#[test]
fn no_passage_of_a_held_out_context_is_trained_on() {
    // Each context has a passage of the next one, and a second file has the passages in another layout.
    let text = |n: usize| format!("The bridge of place{n}x was built by people of that place.");
    let (mut pairs, mut copies) = (Vec::new(), Vec::new());
    for n in 0..200 {
        let (title, own, next) = (format!("Bridge {}", n % 5), text(n), text(n + 1));
        let context = [(title.as_str(), own.as_str()), (title.as_str(), next.as_str())];
        let answer = format!("place{n}x");
        pairs.push(item(&format!("{n}"), "multihop", &context, "Where is it?", &[answer.as_str()]));
        let copy = text(n).to_uppercase().replace(' ', "\n  ");
        let (context, answer) = ([(title.as_str(), copy.as_str())], format!("PLACE{n}X"));
        let (id, question) = (format!("copy {n}"), format!("Where is {n}?"));
        copies.push(item(&id, "single", &context, &question, &[answer.as_str()]));
    }
    let folder = folder(&pairs);
    add(&folder, "b.jsonl.gz", &copies);
    for seed in 1..4 {
        let made = make(&making(folder.path(), seed)).unwrap();
        let own = (0..200).filter(|n| {
            let digest = key(&text(*n));
            let [first, second, ..] = *digest.as_bytes();
            u16::from_be_bytes([first, second]) % 100 < 10
        });
        let held_out: Vec<String> = own.flat_map(|n| [format!("place{n}x"), format!("place{}x", n + 1)]).collect();
        assert!(!held_out.is_empty() && !made.held_out.is_empty() && made.lines.len() > 200);
        for (user, _) in turns(&made.lines) {
            assert!(!Text::of(user).may_give(&held_out), "seed {seed}: {user}");
        }
        // At least the second passages of the held-out pairs have contexts of their own.
        assert!(made.shared > 0, "seed {seed}");
        let unaware = make(&Making { held_out_percent: 0, ..making(folder.path(), seed) }).unwrap();
        assert_eq!((unaware.shared, unaware.held_out.len()), (0, 0));
    }
}

#[test]
fn unanswerable_examples_have_a_bound() {
    let only = item("1", "unanswerable", &[("Fish", "Fish swim.")], "Who swims?", &[]);
    let (mixed, only) = (folder(&items()), folder(&[only]));
    let bounded =
        |percent, seed| make(&Making { unanswerable_percent: percent, ..making(mixed.path(), seed) }).unwrap();
    let all = bounded(100, 1);
    let made = bounded(20, 1);
    for (lines, whole) in [(&made.lines, &all.lines), (&made.held_out, &all.held_out)] {
        let share = |lines: &[Line]| (lines.iter().filter(|line| is_unanswerable(line)).count(), lines.len());
        let ((before, of), (missing, kept)) = (share(whole), share(lines));
        assert!(100 * before > 20 * of && 100 * missing <= 20 * kept, "{missing} of {kept}");
        assert!(100 * (missing + 1) > 20 * (kept + 1), "one more would be too many: {missing} of {kept}");
        // The others are the same in the same order.
        let mut rest = whole.iter();
        assert!(lines.iter().all(|line| rest.any(|other| other == line)));
        assert_eq!(kept - missing, of - before);
    }
    assert_eq!(made.surplus, all.lines.len() + all.held_out.len() - made.lines.len() - made.held_out.len());
    assert_eq!((made.unanswerable + made.surplus, all.surplus), (all.unanswerable, 0));
    assert_eq!(made, bounded(20, 1));
    assert_eq!(bounded(0, 1).unanswerable, 0);
    // Without any other example none is left.
    let making = Making { held_out_percent: 0, unanswerable_percent: 50, ..making(only.path(), 1) };
    assert!(make(&making).unwrap_err().to_string().contains("usable items"));
}

#[test]
fn a_question_is_not_borrowed_if_the_passage_may_answer_it() {
    let digits = "The tower has 25 steps. Ann keeps it.";
    let names = "The gate has twenty-five steps. Bob shut it.";
    let asked = |id: &str, text: &str, question: &str, answer: &str| {
        item(id, "single", &[("Castle", text)], question, &[answer])
    };
    let folder = folder(&[
        asked("1", digits, "How many steps has the tower?", "25"),
        asked("2", names, "How many steps has the gate?", "twenty-five"),
        asked("3", digits, "Who is there?", "Ann"),
        asked("4", digits, "Is the tower kept?", "yes"),
    ]);
    // In another file the same passage has another layout and answers the question "Who is there?".
    add(&folder, "b.jsonl.gz", &[asked("5", &names.replace(' ', "\n"), "Who is there?", "Bob")]);
    // A text that is never without its answer, so that there is an example for each seed.
    let fish = item("6", "boolean", &[("Fish", "Fish swim.")], "Do fish swim?", &["yes"]);
    add(&folder, "c.jsonl.gz", &[fish]);
    for seed in 0..20 {
        let made = make(&Making { held_out_percent: 0, ..making(folder.path(), seed) }).unwrap();
        for (user, answer) in turns(&made.lines) {
            assert_ne!(answer, reading::NOT_FOUND, "seed {seed}: {user}");
        }
    }
}

#[test]
fn what_a_source_marks_as_unanswerable_gets_no_other_passage_of_its_document() {
    let mut items: Vec<serde_json::Value> = Vec::new();
    for n in 0..60 {
        let (title, text) = (format!("Town {}", n % 3), format!("Fact number{n} of the town is true."));
        let (id, question) = (format!("{n}"), format!("Who wrote fact {n}?"));
        items.push(item(&id, "unanswerable", &[(title.as_str(), text.as_str())], &question, &[]));
    }
    let folder = folder(&items);
    let made = make(&Making { held_out_percent: 0, ..making(folder.path(), 1) }).unwrap();
    let titles = |user: &str| -> Vec<char> {
        user.lines().filter_map(|line| line.split_once("] Town ")?.1.chars().next()).collect()
    };
    let shown: Vec<Vec<char>> = turns(&made.lines).iter().map(|(user, _)| titles(user)).collect();
    assert!(shown.len() == 60 && shown.iter().any(|titles| titles.len() > 1), "{shown:?}");
    for (titles, (user, _)) in shown.iter().zip(turns(&made.lines)) {
        let asked: usize = user.trim_end_matches('?').rsplit(' ').next().unwrap().parse().unwrap();
        let own = char::from_digit((asked % 3) as u32, 10).unwrap();
        assert_eq!(titles.iter().filter(|title| **title == own).count(), 1, "{user}");
    }
}

#[test]
fn all_members_of_a_file_are_read_and_items_without_passages_are_left_out() {
    let folder = folder(&items());
    let whole = make(&making(folder.path(), 1)).unwrap().files[0].clone();
    let kinds = ["single", "story", "multihop", "unanswerable"];
    let empty: Vec<serde_json::Value> = kinds.iter().map(|kind| item(kind, kind, &[], "Who?", &["Ann"])).collect();
    add(&folder, "a.jsonl.gz", &empty);
    let made = make(&making(folder.path(), 1)).unwrap();
    assert_eq!(made.files[0], (whole.0, whole.1 + 4, whole.2));
}

#[test]
fn files_can_be_left_out() {
    let folder = folder(&items());
    let making = Making { without: vec!["a".into()], ..making(folder.path(), 1) };
    assert!(make(&making).unwrap_err().to_string().contains("no *.jsonl.gz"));
}

#[test]
fn a_limit_for_a_source_that_is_not_there_is_refused() {
    let folder = folder(&items());
    let limited = |name: &str| make(&Making { most: vec![(name.into(), 20)], ..making(folder.path(), 1) });
    let (_, items, examples) = limited("a").unwrap().files[0].clone();
    // A context is taken whole: at most six questions, and one that its passages do not answer.
    assert!(items == 202 && (20..27).contains(&examples), "{examples}");
    let error = limited("fairytale").unwrap_err().to_string();
    assert!(error.starts_with("--most fairytale: no file that is read from "), "{error}");
}

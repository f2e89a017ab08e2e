//! `memlocal corpus`: shows and removes stored documents.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use test_support::home::{Home, can, memlocal};
use test_support::serving::Serving;
use test_support::story::memorised;

#[test]
fn a_corpus_is_listed_and_shown() {
    let Some(home) = memorised() else { return };
    let listed = home.get(&["corpus", "list"]);
    let lines: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines.len(), 2, "{listed}");
    assert!(listed.starts_with("corpus  documents  passages  pages to memorise  size\n"), "{listed}");
    let pages = home.get(&["corpus", "show", "story", "--pages"]);
    let (heads, abstracts): (Vec<&str>, Vec<&str>) = pages.lines().partition(|line| line.starts_with("page "));
    assert_eq!(lines[1][..4], ["story", "1", &heads.len().to_string(), "0"]);

    let shown = home.get(&["corpus", "show", "story"]);
    let lines: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        lines,
        [vec!["document", "kind", "title", "pages"], vec!["story.txt", "text", &heads.len().to_string()]]
    );

    assert!(heads[0].starts_with("page 1 of story.txt, characters 0 to "), "{pages}");
    let by = "  abstract by smollm2-135m-instruct:q4_1: ";
    assert!(abstracts.len() == heads.len() && abstracts.iter().all(|line| line.starts_with(by)), "{pages}");
}

#[test]
fn json_of_corpora_documents_and_models_is_what_a_server_answers() {
    let Some(home) = Home::new("listed-as-json") else { return };
    home.write("a.txt", "The lamp was out.\n");
    home.get(&["ingest", "a.txt", "--corpus", "lamp", "--method", "rag"]);
    let serving = Serving::start(&home, &[]);
    let served = |path: &str| -> Value {
        let answer = serving.get(path, "");
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        // As the output of commands: `~` for this home.
        let body = body.replace(&*home.path("").to_string_lossy(), "~/work/");
        serde_json::from_str(&body).unwrap_or_else(|_| panic!("{answer}"))
    };
    let printed = |words: &[&str]| -> Value { serde_json::from_str(&home.get(words)).unwrap() };

    // The files of the corpus may grow while the server reads them.
    let counts = |mut list: Value| {
        assert!(list["corpora"][0]["bytes"].take().is_u64(), "{list}");
        list
    };
    assert_eq!(counts(printed(&["corpus", "list", "--json"])), counts(served("/v1/corpora")));
    let documents = printed(&["corpus", "show", "lamp", "--json"]);
    assert_eq!(documents["documents"], served("/v1/corpora/lamp/documents")["documents"]);
    let document = printed(&["corpus", "show", "lamp", "--text", "a.txt", "--json"]);
    assert_eq!(document, served("/v1/corpora/lamp/documents/1"));
    assert_eq!(document["text"], "The lamp was out.\n");
    let pages = printed(&["corpus", "show", "lamp", "--pages", "--json"]);
    assert_eq!(pages["documents"][0]["parts"], document["parts"]);

    let (models, shelf) = (printed(&["models", "list", "--json"]), served("/v1/shelf"));
    let [models, shelf] = [&models, &shelf].map(|list| list["models"].as_array().unwrap());
    assert_eq!(models.len(), shelf.len());
    for (model, of_server) in models.iter().zip(shelf) {
        assert!(model["name"].is_string() && model["memory_bytes"].is_u64(), "{model}");
        let fields = model.as_object().unwrap();
        assert!(fields.iter().all(|(name, value)| *value == of_server[name]), "{model} {of_server}");
    }
}

#[test]
fn a_removed_corpus_is_gone() {
    let Some(home) = Home::new("removed") else { return };
    home.write("a.txt", "The lamp was out.\n");
    home.get(&["ingest", "a.txt", "--corpus", "lamp", "--method", "rag"]);
    home.run(&["corpus", "rm", "lamp"]).is_error(&[
        "error: there is no terminal to ask at whether lamp may be removed",
        "hint: to remove it without a question: memlocal corpus rm lamp --yes",
    ]);
    assert!(home.get(&["corpus", "list"]).contains("lamp"), "nothing was removed");
    assert_eq!(home.get(&["corpus", "rm", "lamp", "--yes"]), "removed lamp\n");
    home.run(&["corpus", "rm", "lamp"])
        .is_error(&["error: there is no corpus `lamp`", "hint: memlocal corpus list shows all of them"]);
    assert_eq!(home.get(&["corpus", "list"]).lines().count(), 1, "only the header is left");
    assert_eq!(fs::read_dir(home.data().join("corpora")).unwrap().count(), 0, "so is the disk");
}

#[test]
fn a_backup_is_named_so_that_it_is_found_from_any_folder() {
    let Some(home) = memorised() else { return };
    let said = home.get(&["corpus", "backup", "story", "named.sqlite"]);
    // The path of the home is printed as `~` here.
    assert_eq!(said, "copied story to ~/work/named.sqlite\n");
    fs::remove_file(home.path("named.sqlite")).unwrap();
}

#[test]
fn a_backup_is_restored_from_a_file() {
    let home = Home::bare("no-backup");
    fs::create_dir(home.path("folder")).unwrap();
    home.write("a.txt", "The lamp was out.\n");
    for (name, problem) in [("folder", "a file"), ("missing.sqlite", "a file"), ("a.txt", "a memlocal corpus")] {
        let error = format!("error: {name} is not {problem}");
        home.run(&["corpus", "restore", name, "again"])
            .is_error(&[&error, "hint: give the file that `memlocal corpus backup` wrote"]);
    }
}

#[test]
fn on_a_terminal_only_yes_removes_a_corpus() {
    let Some(home) = Home::new("confirmed") else { return };
    if !can("script", &["-qec", "true", "/dev/null"], "questions on a terminal") {
        return;
    }
    home.write("a.txt", "The lamp was out.\n");
    home.get(&["ingest", "a.txt", "--corpus", "lamp", "--method", "rag"]);
    let answer = |words: &str| {
        let mut terminal = home.program("script");
        terminal.args(["-qec", &[&memlocal()[..], &["corpus", "rm", "lamp"]].concat().join(" "), "/dev/null"]);
        let mut child = terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(words.as_bytes()).unwrap();
        home.said(child.wait_with_output().unwrap())
    };
    for no in ["\n", "n\n", "lamp\n"] {
        let said = answer(no);
        assert!(said.code == 1 && said.out.contains("remove lamp (1 document)? [y/N] "), "{said:?}");
        assert!(said.out.contains("error: lamp was not removed"), "{said:?}");
    }
    assert!(home.get(&["corpus", "list"]).contains("lamp"));
    let said = answer("y\n");
    assert!(said.code == 0 && said.out.contains("removed lamp"), "{said:?}");
    assert!(!home.get(&["corpus", "list"]).contains("lamp"));
}

/// The files below a folder that contain a sentence. Links are not followed.
fn holding(folder: &Path, sentence: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            found.append(&mut holding(&path, sentence));
        } else if kind.is_file()
            && fs::read(&path).unwrap().windows(sentence.len()).any(|window| window == sentence.as_bytes())
        {
            found.push(path);
        }
    }
    found
}

#[test]
fn no_sentence_of_a_removed_corpus_is_left_in_the_data_folder() {
    const PLANTED: &str = "Zadkine hid the brass compass under the third stair";
    let Some(home) = Home::new("planted") else { return };
    home.write("a.txt", format!("{PLANTED}.\n"));
    home.get(&["ingest", "a.txt", "--corpus", "lamp", "--method", "rag"]);
    home.get(&["ask", "Where is the compass?", "--corpus", "lamp", "--method", "rag"]);
    // A server that is killed during a job leaves the upload for the next one.
    let serving = Serving::start(&home, &[]);
    let upload = json!({ "name": "b.txt", "text": format!("{PLANTED}. ").repeat(400), "method": "gam" });
    let job = serving.post("/v1/corpora/lamp/documents", &upload);
    assert!(job["id"].is_string(), "{job}");
    drop(serving);
    let before = holding(&home.data(), PLANTED);
    let is_in = |part: &str| before.iter().any(|path| path.starts_with(home.data().join(part)));
    assert!(is_in("corpora") && is_in("uploads"), "{before:?}");
    home.get(&["corpus", "rm", "lamp", "--yes"]);
    assert_eq!(holding(&home.data(), PLANTED), Vec::<PathBuf>::new());
}

#[test]
fn unknown_corpora_and_documents_are_reported_with_hints() {
    let Some(home) = memorised() else { return };
    let check = |words: &[&str], lines: &[&str]| home.run(words).is_error(lines);
    let nearest = ["error: there is no corpus `stroy`; is it `story`?", "hint: memlocal corpus list shows all of them"];
    check(&["corpus", "show", "stroy"], &nearest);
    check(&["corpus", "rm", "stroy"], &nearest);
    check(&["ask", "Who?", "--corpus", "stroy"], &nearest);
    check(&["ingest", "--corpus", "stroy"], &nearest);
    let none = ["error: there is no corpus `diary`", "hint: make it with: memlocal ingest PATH --corpus NAME"];
    check(&["ask", "Who?", "--corpus", "diary"], &none);
    for (name, valid) in [("../story", "story"), ("Magi", "magi"), ("My Story", "my-story")] {
        let error = format!(
            "error: `{name}` cannot name a corpus: use 1 to 64 of a-z, 0-9, `.`, `_` and `-`, beginning with a letter or digit"
        );
        check(&["corpus", "show", name], &[&error, &format!("hint: `{valid}` is a valid name")]);
    }
    check(
        &["corpus", "show", "story", "--text", "b.txt"],
        &["error: b.txt is not a document of this corpus", "hint: memlocal corpus show story lists them"],
    );
}

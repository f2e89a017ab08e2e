//! Passwords in addresses appear in no output and no file.

use std::fs;
use std::path::{Path, PathBuf};

use test_support::home::{Home, program};

const PASSWORD: &str = "Zq7-opensesame";

/// Files below a folder that contain the password, except for those that the test has written itself.
fn holding(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.append(&mut holding(&path));
        } else if !path.ends_with("config.toml")
            && fs::read(&path).unwrap().windows(PASSWORD.len()).any(|window| window == PASSWORD.as_bytes())
        {
            found.push(path);
        }
    }
    found
}

#[test]
fn passwords_in_addresses_are_shown_and_kept_nowhere() {
    let home = Home::bare("secrets");
    home.write("a.txt", "The lamp was out.\n");
    home.write("scifact/corpus.jsonl", "{\"_id\": \"1\", \"title\": \"Lamp\", \"text\": \"The lamp was out.\"}\n");
    home.write("scifact/queries.jsonl", "{\"_id\": \"7\", \"text\": \"Was the lamp out?\"}\n");
    home.write("scifact/qrels/test.tsv", "query-id\tcorpus-id\tscore\n7\t1\t1\n");
    let database = format!("postgres://ann:{PASSWORD}@127.0.0.1:1/memory");
    let keywords = format!("host=127.0.0.1 port=1 user=ann password={PASSWORD}");
    let spoilt = format!("postgres://ann:{PASSWORD}@127.0.0.1:port/memory");
    let endpoint = format!("http://ann:{PASSWORD}@127.0.0.1:1/v1");
    let misspelt = format!("--vectorz={database}");
    home.write("bad/config.toml", format!("vectors = \"{database}\"\nthreads = \"{database}\"\n"));
    let (good, bad) = (home.path("good/config.toml"), home.path("bad/config.toml"));
    home.write("good/config.toml", format!("vectors = \"{database}\"\n"));
    let (good, bad) = (good.to_str().unwrap(), bad.to_str().unwrap());
    let bench = ["bench", "retrieval", "--suite", "scifact", "--data", "scifact", "--tools", "bm25", "--out", "run"];
    let commands: Vec<Vec<&str>> = vec![
        vec!["corpus", "list", "--vectors", &database],
        vec!["corpus", "list", "--vectors", &keywords],
        vec!["corpus", "list", "--vectors", &spoilt],
        vec!["corpus", "list", "--config", good],
        vec!["corpus", "list", "--config", bad],
        vec!["corpus", "list", &misspelt],
        vec!["corpus", &database],
        vec!["ingest", "a.txt", "--corpus", "c", "--method", "rag", "--vectors", &database],
        vec!["ask", "What?", "--docs", "a.txt", "--engine", &endpoint],
        vec!["ask", "What?", "--docs", "a.txt", "--engine", &endpoint[5..]],
        vec!["serve", "--engine", &endpoint, "--port", "0"],
        vec!["bench", "engine", "--against", &endpoint],
        [&bench[..], &["--vectors", &database]].concat(),
    ];
    for words in &commands {
        let said = home.run(words);
        assert_eq!(said.code == 0, words[..2] == ["bench", "retrieval"], "{words:?}: {said:?}");
        assert!(!said.out.contains(PASSWORD) && !said.err.contains(PASSWORD), "{words:?}: {said:?}");
        assert!(said.code == 0 || said.err.contains("error: "), "{words:?}: {said:?}");
    }
    let in_environment = home.command(&["corpus", "list"]).env("MEMLOCAL_VECTORS", &database).output().unwrap();
    let said = home.said(in_environment);
    assert!(said.code == 1 && !said.err.contains(PASSWORD), "{said:?}");
    let manifest = fs::read_to_string(home.path("run/retrieval-scifact/manifest.json")).unwrap();
    assert!(manifest.contains("postgres://127.0.0.1:1/memory"), "{manifest}");
    assert_eq!(holding(&home.path("")), Vec::<PathBuf>::new());
    assert_eq!(holding(&home.data()), Vec::<PathBuf>::new());
}

#[test]
fn passwords_of_the_config_file_are_not_in_the_help() {
    let home = Home::bare("secrets-help");
    let database = format!("postgres://ann:{PASSWORD}@127.0.0.1:1/memory");
    let endpoint = format!("http://ann:{PASSWORD}@127.0.0.1:1/v1");
    let config = format!("vectors = \"{database}\"\nthreads = 3\n[ask]\nengine = \"{endpoint}\"\n");
    fs::write(home.data().join("config.toml"), config).unwrap();
    for words in [&["--help"][..], &["ask", "--help"], &["ask", "-h"], &["corpus"]] {
        let said = home.said(home.program(program("memlocal")).args(words).output().unwrap());
        let help = [said.out, said.err].concat();
        assert!(!help.contains(PASSWORD), "{words:?}: {help}");
        assert!(help.contains("postgres://USER:PASSWORD@HOST/DATABASE"), "the example is whole: {words:?}: {help}");
        assert!(help.contains("[default: 3]") || words == ["corpus"], "other defaults are shown: {words:?}: {help}");
    }
}

//! `memlocal train`: an adapter for one corpus, from the questions that the model writes about it to its removal.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use test_support::home::{Home, Said, calls};

/// Paragraphs of one document.
const TEXTS: [&str; 15] = [
    "The lighthouse of Pell was built in 1871 by the engineer Martha Quill. It is 34 metres high and is on Gannet Rock.",
    "The keeper Ada Brook bought a new lamp in Paris in May 1911. She paid 900 crowns for it at the shop of Louis Ferrand.",
    "The ferry Saint Brannoc sailed from Pell to Harwick every Tuesday. Its captain was Tobias Venn, who came from Norway.",
    "In 1923 a storm destroyed the harbour of Harwick. The mayor Edith Lorne asked the king for 12,000 crowns to rebuild it.",
    "The painter Jonas Reed lived in a cottage near Gannet Rock. His picture The Grey Bell hangs in the museum of Harwick.",
    "The museum of Harwick was opened in 1931 by Princess Amalia. It has 240 paintings and a collection of ship models.",
    "The school of Pell had 41 children in 1902. Their teacher was Clara Winslow, who had studied botany in Edinburgh.",
    "The baker Samuel Oates sold seed cakes at the market of Pell. He learned his trade in Vienna from his uncle Franz.",
    "The whale that came ashore in October 1938 was 17 metres long. Doctor Helen March measured it for the Royal Society.",
    "The railway from Harwick to Doncaster was finished in 1889. Its bridge over the river Tarn has seven arches of granite.",
    "The bell of the church of Pell was cast in Antwerp in 1644. It weighs 800 kilograms and is called Old Marten.",
    "The botanist Clara Winslow found the sea orchid on Gannet Rock in 1907. She named it after her sister Beatrice.",
    "The smith Hugo Dahl forged the gates of the harbour in 1925. They weigh 1,400 kilograms and show two herons.",
    "In August 1899 the swimmer Nora Finch crossed the bay of Harwick in 75 minutes. The prize was a silver cup.",
    "The library of Doncaster keeps the diary of Tobias Venn. He wrote it between 1880 and 1904 in Norwegian.",
];

/// One small step, which takes ten seconds, changes few answers, so the adapter is kept whether they are better or not.
const TRAIN: [&str; 9] = ["train", "--corpus", "pell", "--questions", "72", "--steps", "1", "--yes", "--keep"];

fn ingested(name: &str, texts: &[&str]) -> Option<Home> {
    let home = Home::new(name)?;
    home.write("docs/pell.txt", texts.join("\n\n"));
    // Training reads the pages alone: they need no vectors.
    home.get(&["ingest", "docs", "--corpus", "pell", "--method", "direct"]);
    Some(home)
}

/// Starts a command and kills it when a file is there.
fn killed_at(home: &Home, words: &[&str], file: &Path) -> Said {
    let mut child = home.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !file.exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was killed");
        sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    home.said(child.wait_with_output().unwrap())
}

#[test]
fn an_adapter_is_trained_used_refused_for_others_and_deleted() {
    let Some(home) = ingested("train", &TEXTS) else { return };
    let trained = home.data().join("corpora/pell/trained");
    let ask = ["ask", "When was the bell cast?", "--corpus", "pell", "--adapter", "corpus", "--method", "rag"];
    home.run(&ask).is_error(&[
        "error: there is no adapter beside the corpus pell",
        "hint: memlocal train --corpus pell makes one",
    ]);

    let killed = killed_at(&home, &TRAIN, &trained.join("work/plan.json"));
    assert!(killed.err.starts_with("about ") && killed.err.contains(" questions, "), "{}", killed.err);
    assert!(killed.err.contains(" to train; ") && killed.err.contains(" GiB of memory\n"), "{}", killed.err);
    assert!(killed.err.contains(" questions; dropped: "), "{}", killed.err);

    let done = home.run(&TRAIN);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.err.starts_with("continuing with the questions that were written before\n"), "{}", done.err);
    assert!(done.err.contains("step 1 of 1: ") && !done.err.contains("to write"), "{}", done.err);
    let lines: Vec<&str> = done.out.lines().collect();
    assert!(lines[0].ends_with(" held out") && lines[1].starts_with("before: exact "), "{lines:?}");
    assert_eq!(lines[3], "memlocal ask \"...\" --corpus pell --adapter corpus answers with the new adapter");
    let left: Vec<_> = fs::read_dir(&trained).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["reader"], "questions and checkpoints are deleted");

    let said = home.run(&[&ask[..], &["--trace", "trace"]].concat());
    assert_eq!(said.code, 0, "{said:?}");
    assert!(!calls(&home.trace("trace"), "answer.read").is_empty(), "the reader was asked: {said:?}");

    let config = trained.join("reader/adapter_config.json");
    let of_ours = fs::read_to_string(&config).unwrap();
    assert!(of_ours.contains("\"smollm2-135m-instruct\""), "{of_ours}");
    fs::write(&config, of_ours.replace("\"smollm2-135m-instruct\"", "\"another-model\"")).unwrap();
    let another = "error: the adapter of the corpus pell is for another-model, not for smollm2-135m-instruct";
    for words in [&ask[..], &TRAIN] {
        home.run(words).is_error(&[
            another,
            "hint: --model another-model, or make one for this model: memlocal train --corpus pell --anew --model \
             smollm2-135m-instruct",
        ]);
    }
    fs::write(&config, of_ours).unwrap();

    let weights = trained.join("reader/adapter_model.safetensors");
    let bytes = fs::read(&weights).unwrap();
    fs::write(&weights, &bytes[..100]).unwrap();
    let damaged = home.run(&ask);
    let place = "cannot use the adapter reader (~/data/corpora/pell/trained/reader)";
    assert!(damaged.code == 1 && damaged.err.contains(place), "it is what is loaded: {damaged:?}");
    fs::write(&weights, bytes).unwrap();

    home.get(&["keys", "add", "ann"]);
    for adapter in ["corpus:pell", "reader=../data/corpora/pell/trained/reader"] {
        let refused = home.run(&["serve", "--port", "0", "--adapter", adapter]);
        let why = "was trained on a private corpus, and every holder of a key would ask with it";
        assert!(refused.code == 1 && refused.err.contains(why), "{adapter}: {refused:?}");
    }

    home.get(&["corpus", "backup", "pell", "pell.sqlite"]);
    home.get(&["corpus", "restore", "pell.sqlite", "again"]);
    home.run(&["ask", "When?", "--corpus", "again", "--adapter", "corpus"]).is_error(&[
        "error: there is no adapter beside the corpus again",
        "hint: memlocal train --corpus again makes one",
    ]);

    home.write("docs/pell.txt", TEXTS[..6].join("\n\n"));
    let ingest = home.run(&["ingest", "docs", "--corpus", "pell", "--method", "rag"]);
    let deleted = "the adapter of pell was deleted, since it had learned from replaced or removed documents\n";
    assert!(ingest.code == 0 && ingest.err.contains(deleted), "{ingest:?}");
    assert!(!trained.exists());
}

#[test]
fn the_adapter_and_the_texts_of_a_killed_training_are_removed_with_the_corpus() {
    let Some(home) = ingested("train-removed", &TEXTS) else { return };
    let corpus = home.data().join("corpora/pell");
    killed_at(&home, &TRAIN, &corpus.join("trained/work/start"));
    home.get(&["corpus", "rm", "pell", "--yes"]);
    assert!(!corpus.exists());
}

#[test]
fn the_model_of_the_config_file_is_trained() {
    let Some(home) = ingested("train-config", &TEXTS) else { return };
    let models = "[models]\nmodel = \"none.gguf+legal\"\njudge = \"judge.gguf\"\nadapter = \"legal=none\"\n";
    fs::write(home.data().join("config.toml"), models).unwrap();
    let said = home.run(&TRAIN);
    assert!(said.code == 1 && said.err.starts_with("error: ") && said.err.contains("none.gguf"), "{said:?}");
    assert!(!said.err.contains("legal") && !said.err.contains("judge.gguf"), "{said:?}");
    let typed = home.run(&[&TRAIN[..], &["--model", "typed.gguf"]].concat());
    assert!(typed.code == 1 && typed.err.contains("typed.gguf"), "{typed:?}");
}

#[test]
fn a_corpus_with_too_few_questions_is_not_trained_on() {
    let Some(home) = ingested("train-few", &TEXTS[..1]) else { return };
    let few = home.run(&["train", "--corpus", "pell", "--yes"]);
    assert_eq!((few.code, few.out.as_str()), (1, ""), "{few:?}");
    assert!(few.err.contains(" spans of the documents can be answers; training needs 20\n"), "{few:?}");
    let hint = "hint: add documents to the corpus, or write more questions: --questions N; nothing was trained\n";
    assert!(few.err.ends_with(hint), "{few:?}");
}

#[test]
fn too_little_memory_is_refused_before_questions_are_written() {
    let Some(home) = ingested("train-memory", &TEXTS) else { return };
    let little = home.run(&[&TRAIN[..], &["--memory", "100MiB"]].concat());
    assert_eq!((little.code, little.out.as_str()), (1, ""), "{little:?}");
    assert!(little.err.starts_with("error: training this model needs "), "{little:?}");
    assert!(little.err.contains(" of memory; 100.00 MiB are allowed\nhint: "), "{little:?}");
}

#[test]
fn without_a_terminal_training_needs_yes() {
    let home = Home::bare("train-yes");
    home.run(&["train", "--corpus", "pell"]).is_error(&[
        "error: there is no terminal to ask at whether training may begin",
        "hint: to train without a question: memlocal train --corpus pell --yes",
    ]);
}

#[test]
fn flags_that_training_does_not_use_are_refused() {
    let home = Home::bare("train-flags");
    for flag in ["--memorizer", "--researcher", "--judge", "--builder", "--embedder", "--quantise-embedder"] {
        let said = home.run(&["train", "--corpus", "pell", "--yes", flag, "q8_0"]);
        assert!(said.code == 2 && said.err.contains(&format!("unexpected argument '{flag}'")), "{said:?}");
    }
    let twice = home.run(&["train", "--corpus", "pell", "--adapter", "reader=a", "--adapter", "reader=b"]);
    assert!(twice.code == 2 && twice.err.contains("'--adapter <"), "{twice:?}");
    fs::write(home.data().join("config.toml"), "[train]\njudge = \"judge.gguf\"\n").unwrap();
    let said = home.run(&["train", "--corpus", "pell", "--yes"]);
    assert!(said.code == 1 && said.err.contains("line 2: there is no setting `judge` of [train]"), "{said:?}");
}

#[test]
fn an_adapter_in_the_name_of_the_model_is_refused() {
    let home = Home::bare("train-named");
    home.run(&["train", "--corpus", "pell", "--yes", "--model", "smollm2-135m-instruct+legal"]).is_error(&[
        "error: --model smollm2-135m-instruct+legal names an adapter, and training begins with that of --adapter",
        "hint: the adapter to begin with is --adapter: memlocal train --model smollm2-135m-instruct --adapter reader=PATH",
    ]);
}

#[test]
fn an_adapter_of_a_corpus_is_named_by_the_corpus() {
    let home = Home::bare("train-adapter");
    home.run(&["serve", "--adapter", "corpus"]).is_error(&[
        "error: `--adapter corpus` is for a command with --corpus, and none is given",
        "hint: name the corpus: --adapter corpus:NAME",
    ]);
}

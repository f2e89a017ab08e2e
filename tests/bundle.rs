//! `memlocal bundle`: one file that answers on a machine with nothing else.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use bundle::{Bundle, Entry};
use test_support::home::{EMBEDDER, Home, LANGUAGE_MODEL, Said, repository};

const QUESTION: [&str; 6] = ["ask", "What burnt down?", "--corpus", "c", "--method", "rag"];

/// A home with a corpus and a bundle of it with the default models, which takes seconds to make; tests do not change it.
fn made() -> Option<&'static Home> {
    static MADE: OnceLock<Option<Home>> = OnceLock::new();
    let make = || {
        let home = Home::new("bundle")?;
        home.write("a.txt", "The wick burnt down in May 1921.\n");
        home.get(&["ingest", "a.txt", "--corpus", "c", "--method", "rag"]);
        let said = home.get(&["bundle", "--corpus", "c", "-o", "office"]);
        assert!(said.starts_with("made office: 9 files, "), "{said}");
        Some(home)
    };
    MADE.get_or_init(make).as_ref()
}

/// Runs a program where no folder can be written for models and corpora.
fn alone(home: &Home, program: &Path, words: &[&str]) -> Said {
    let mut command = Command::new(program);
    command.args(["--threads", "1"]).args(words).current_dir(home.path("")).env_clear();
    home.said(command.env("MEMLOCAL_HOME", "/proc/nowhere").output().unwrap())
}

/// Changes one byte in the middle of a file of a bundle; a second time changes it back.
fn alter(bundle: &Path, entry: &Entry) {
    let file = File::options().read(true).write(true).open(bundle).unwrap();
    let (place, mut byte) = (entry.offset + entry.bytes / 2, [0]);
    file.read_exact_at(&mut byte, place).unwrap();
    file.write_all_at(&[byte[0] ^ 1], place).unwrap();
}

#[test]
fn a_bundle_answers_without_anything_else() {
    let Some(home) = made() else { return };
    let want = home.get(&QUESTION);
    let office = home.path("office");
    let said = alone(home, &office, &QUESTION);
    assert_eq!((said.code, said.out), (0, want), "{}", said.err);
    assert!(!said.err.contains("fetch") && !said.err.contains("embedding"), "{}", said.err);
    let listed = alone(home, &office, &["corpus", "list"]).out;
    assert!(listed.lines().any(|line| line.starts_with("c ")), "{listed}");
    let models = alone(home, &office, &["models", "list"]).out;
    assert_eq!(models.matches("in the bundle").count(), 2, "{models}");
    let said = alone(home, &office, &["ingest", "a.txt", "--corpus", "c", "--method", "rag"]);
    let error = "no permission to open or change ~/work/office/corpora/c.sqlite\n  because: a bundle is not changed";
    assert!(said.code == 1 && said.err.contains(error), "{said:?}");
}

#[test]
fn a_bundle_makes_a_bundle_of_its_own_models() {
    let Some(home) = Home::new("bundle-of-bundle") else { return };
    for name in ["config.json", "model.safetensors", "tokenizer.json"] {
        home.copy(&repository("tests/golden/decoder/llama").join(name), &format!("tiny/{name}"));
    }
    home.write("tiny/chat_template.jinja", "{{ messages[0].content }}");
    home.get(&["bundle", "--model", "./tiny", "-o", "office"]);
    fs::remove_dir_all(home.path("tiny")).unwrap();
    let made = alone(&home, &home.path("office"), &["bundle", "-o", "again"]);
    assert_eq!(made.code, 0, "{made:?}");
    let [of_office, of_again] = ["office", "again"].map(|name| home.get(&["bundle", "show", name]));
    assert!(of_again.contains(&format!("--model ./models/tiny\n--embedder {EMBEDDER}:f32\n")), "{of_again}");
    assert_eq!(of_again, of_office);
}

#[test]
fn a_bundle_is_made_where_another_run_was_interrupted() {
    let Some(home) = Home::new("bundle-again") else { return };
    home.write("a.txt", "The wick burnt down in May 1921.\n");
    home.get(&["ingest", "a.txt", "--corpus", "c", "--method", "direct"]);
    for suffix in ["", ".packed", ".corpus", ".corpus.unfinished", ".corpus.unfinished-journal"] {
        home.write(&format!("office.partial{suffix}"), "The wick");
    }
    home.write("office.partial.txt", "of the user");
    let said = home.get(&["bundle", "--corpus", "c", "-o", "office"]);
    assert!(said.starts_with("made office: "), "{said}");
    let left = fs::read_dir(home.path("")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut left: Vec<String> = left.filter(|name| name.starts_with("office")).collect();
    left.sort();
    assert_eq!(left, ["office", "office.partial.txt"]);
}

#[test]
fn an_installed_memlocal_uses_the_contents_of_a_bundle() {
    let Some(home) = made() else { return };
    let bare = Home::bare("bundle-user");
    let office = home.path("office");
    let words = [&QUESTION[..], &["--bundle", office.to_str().unwrap()]].concat();
    let folder = format!("{}/", home.path("").display().to_string().trim_end_matches('/'));
    assert_eq!(bare.get(&words).replace(&folder, ""), home.get(&QUESTION), "paths are shown from where it runs");
    let shown = home.get(&["bundle", "show", "office"]);
    let line = |name: &str| shown.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{shown}"));
    let weights = line("models/smollm2-135m-instruct/q4_1/SmolLM2-135M-Instruct.Q4_1.gguf ");
    assert!(weights.contains(" Apache-2.0 ") && weights.ends_with(" sound"), "{weights}");
    line("models/smollm2-135m-instruct/q4_1/SmolLM2-135M-Instruct.Q4_1.gguf.packed ");
    line("memlocal ");
    line("corpora/c.sqlite ");
    assert!(shown.contains(&format!("--model {LANGUAGE_MODEL}:q4_1\n--embedder {EMBEDDER}:f32\n")), "{shown}");

    let again = home.run(&["bundle", "-o", "office"]);
    again.is_error(&["error: office exists already", "hint: choose another name, or remove it"]);
}

#[test]
fn an_adapter_has_the_licence_of_its_card_and_the_program_that_of_the_adapter_in_it() {
    let Some(home) = Home::new("bundle-licences") else { return };
    let adapter = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/adapters/smollm2-135m-instruct");
    home.get(&["bundle", "--adapter", &format!("reader={}", adapter.display()), "-o", "office"]);
    let shown = home.get(&["bundle", "show", "office"]);
    let line = |name: &str| shown.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{shown}"));
    assert!(line("adapters/reader/adapter_model.safetensors ").contains(" cc-by-sa-4.0 "), "{shown}");
    assert!(line("memlocal ").contains(" (Apache-2.0 OR MIT) AND CC-BY-SA-4.0 "), "{shown}");
}

#[test]
fn what_was_altered_or_cut_off_is_refused() {
    let Some(whole) = made() else { return };
    let home = Home::bare("bundle-altered");
    let office = home.path("office");
    fs::copy(whole.path("office"), &office).unwrap();
    let bundle = Bundle::open(&office).unwrap();
    let weights = "models/smollm2-135m-instruct/q4_1/SmolLM2-135M-Instruct.Q4_1.gguf";
    for file in
        [weights, &format!("{weights}.packed"), "corpora/c.sqlite", "models/all-minilm-l6-v2/f32/tokenizer.json"]
    {
        let entry = bundle.find(file).unwrap();
        alter(&office, entry);
        let said = alone(&home, &office, &QUESTION);
        let error = format!("the bundle ~/work/office was altered: {file}\n");
        assert!(said.code == 1 && said.out.is_empty() && said.err.contains(&error), "{said:?}");
        let shown = home.run(&["bundle", "show", "office"]);
        assert!(shown.code == 1 && shown.err.starts_with(&format!("error: office was altered: {file}\n")), "{shown:?}");
        alter(&office, entry);
    }
    let file = File::options().write(true).open(&office).unwrap();
    file.set_len(file.metadata().unwrap().len() - 1).unwrap();
    drop(file);
    let error = [
        "error: ~/work/office is no bundle, or is cut off",
        "hint: memlocal bundle makes one; a damaged copy is to be copied again",
    ];
    alone(&home, &office, &QUESTION).is_error(&error);
    home.run(&[&QUESTION[..], &["--bundle", "office"]].concat()).is_error(&error);
}

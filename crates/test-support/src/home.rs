//! A data folder with the models that all tests share, and a working directory in which commands run, for one test.

use std::env::{self, consts::EXE_SUFFIX};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;

use crate::weights;

pub const LANGUAGE_MODEL: &str = "smollm2-135m-instruct";
pub const EMBEDDER: &str = "all-minilm-l6-v2";

/// `memlocal` and its first arguments: one thread, since tests run side by side and threads that wait for one another on
/// busy cores are many times slower.
pub fn memlocal() -> [&'static str; 3] {
    [program("memlocal"), "--threads", "1"]
}

/// The path of a program of this workspace. `cargo test` builds the programs of the packages that it tests.
///
/// # Panics
/// If it is not built.
pub fn program(name: &str) -> &'static str {
    let test = env::current_exe().unwrap();
    // Tests are in `deps`, programs in the folder above.
    let path = test.ancestors().nth(2).unwrap().join(format!("{name}{EXE_SUFFIX}"));
    assert!(path.exists(), "{} is missing: `cargo build --release` in the repository builds it", path.display());
    path.display().to_string().leak()
}

/// `target/test-home/NAME`, emptied when a test begins and left for inspection when it ends.
pub struct Home {
    folder: PathBuf,
    program: &'static str,
}

impl Home {
    /// A home without models.
    pub fn bare(name: &str) -> Home {
        let folder = homes().join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("work")).unwrap();
        fs::create_dir_all(folder.join("data")).unwrap();
        Home { folder, program: "memlocal" }
    }

    /// A home with both models; `None` (with the reason printed) if they are unavailable.
    pub fn new(name: &str) -> Option<Home> {
        let models = shared_models()?;
        let home = Home::bare(name);
        std::os::unix::fs::symlink(models, home.data().join("models")).unwrap();
        Some(home)
    }

    /// The same home, where `command`, `run` and `get` run another program of the workspace.
    #[must_use]
    pub fn running(self, program: &'static str) -> Home {
        Home { program, ..self }
    }

    /// The data folder.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// A path below the folder in which commands are run.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join("work").join(name)
    }

    /// Writes a file below the folder in which commands are run.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Copies a file, or the files of a folder, to below the folder in which commands are run.
    pub fn copy(&self, from: &Path, name: &str) {
        if from.is_dir() {
            for entry in fs::read_dir(from).unwrap().flatten() {
                self.copy(&entry.path(), &format!("{name}/{}", entry.file_name().display()));
            }
            return;
        }
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::copy(from, self.path(name)).unwrap();
    }

    /// The program with these arguments, ready to run, without the network.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = self.program(program(self.program));
        command.args(["--threads", "1"]).args(words);
        command
    }

    /// Any program, with the same working directory and environment.
    pub fn program(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.join("work"));
        command.env("MEMLOCAL_HOME", self.data()).env("HF_HOME", self.folder.join("hugging-face"));
        command.env("HF_HUB_OFFLINE", "1").env_remove("HF_HUB_CACHE").env_remove("HF_TOKEN");
        command
    }

    /// Runs the program to its end.
    pub fn run(&self, words: &[&str]) -> Said {
        self.said(self.command(words).output().unwrap())
    }

    /// Runs the program, which must succeed, and returns its standard output.
    pub fn get(&self, words: &[&str]) -> String {
        let said = self.run(words);
        assert_eq!(said.code, 0, "{words:?}: {}", said.err);
        said.out
    }

    /// The exit code and output of a program, with `~` for this home.
    pub fn said(&self, output: Output) -> Said {
        let place = self.folder.display().to_string();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace(&place, "~");
        Said { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }

    /// The events of a trace, or those so far while it is being written.
    pub fn trace(&self, name: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.path(name)).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Exit code and output of a command.
#[derive(Debug, PartialEq)]
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    /// Checks that a command failed with an error of these lines, and nothing on standard output.
    #[track_caller]
    pub fn is_error(&self, lines: &[&str]) {
        let want = Said { code: 1, out: String::new(), err: format!("{}\n", lines.join("\n")) };
        assert_eq!(*self, want);
    }
}

/// The calls of one step in a trace, scored texts included; of any step if `step` is empty.
pub fn calls<'a>(trace: &'a [Value], step: &str) -> Vec<&'a Value> {
    let is_call = |event: &Value| event["event"] == "call" || event["event"] == "score";
    trace.iter().filter(|event| is_call(event) && (step.is_empty() || event["step"] == step)).collect()
}

/// True if a program runs here and succeeds; otherwise prints what is not tested.
pub fn can(program: &str, words: &[&str], what: &str) -> bool {
    let succeeds = Command::new(program).args(words).output().is_ok_and(|output| output.status.success());
    if !succeeds {
        println!("not tested: {what}; `{program} {}` does not work here", words.join(" "));
    }
    succeeds
}

/// A file of this repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).canonicalize().unwrap().join(path)
}

/// The models folder that all tests of the workspace share, with both models in it.
fn shared_models() -> Option<PathBuf> {
    static MODELS: OnceLock<Option<PathBuf>> = OnceLock::new();
    let both = || {
        weights(LANGUAGE_MODEL)?;
        weights(EMBEDDER)?;
        Some(repository("target/test-models"))
    };
    MODELS.get_or_init(both).clone()
}

/// The folder of all homes. A lock makes another run of these tests wait until this one has ended.
fn homes() -> &'static Path {
    static HOMES: OnceLock<(PathBuf, File)> = OnceLock::new();
    let lock = || {
        let folder = repository("target/test-home");
        fs::create_dir_all(&folder).unwrap();
        let lock = File::create(folder.join("lock")).unwrap();
        lock.lock().unwrap();
        (folder, lock)
    };
    &HOMES.get_or_init(lock).0
}

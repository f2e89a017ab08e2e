//! A model of a few bytes, a wheel that holds it, a Python that only knows how to hand that wheel out, and an empty
//! world to fetch it into.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use models::fetch::{FetchError, FetchOptions, Fetched, Progress, fetch};
use models::manifest::{Choice, Manifest};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use zip::write::SimpleFileOptions;

pub const WEIGHTS: (&str, &[u8]) = ("toy.gguf", b"weights of a toy");
pub const CONFIG: (&str, &[u8]) = ("config.json", b"{}");
pub const REPO_FOLDER: &str = "models--toys--toy";
pub const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// A manifest with one variant, `q8_0`, whose weights have a stated digest and whose configuration has none.
pub fn toy(sources: &str) -> Manifest {
    let (weights, config) = (WEIGHTS.0, CONFIG.0);
    let (bytes, sha256) = (WEIGHTS.1.len(), sha256_of(WEIGHTS.1));
    let text = format!(
        r#"
        name = "toy"
        network = "llama"
        licence = "none"
        context_tokens = 16
        default_variant = "q8_0"

        [kind.decoder]
        eos = ["<end>"]
        shape = {{ layers = 1, hidden = 4, heads = 1, key_heads = 1, head_dim = 4, ffn = 8, vocab = 16, tied = true }}

        [[variants]]
        name = "q8_0"
        format = "gguf"
        chat_template = "gguf"
        memory_mib = 1
        files = [
            {{ role = "weights", name = "{weights}", bytes = {bytes}, sha256 = "{sha256}" }},
            {{ role = "config", name = "{config}" }},
        ]
        sources = [{sources}]
        "#
    );
    toml::from_str(&text).unwrap()
}

pub const HUB: &str = r#"{ hub = { repo = "toys/toy", revision = "main" } }"#;
pub const WHEEL: &str = r#"{ wheel = { requirement = "toy==1.0", folder = "toy/model" } }"#;

pub fn sha256_of(content: &[u8]) -> String {
    format!("{:x}", Sha256::digest(content))
}

/// Empty folders for the models and the Hugging Face cache, no Python and a hub that refuses.
pub struct World {
    folder: TempDir,
    pub options: FetchOptions,
}

impl World {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = FetchOptions::new(folder.path().join("models"));
        options.hub_cache = folder.path().join("hub");
        // Nothing listens on port 1, and no system chooses it.
        options.hub_endpoint = Some("http://127.0.0.1:1".to_owned());
        options.hub_patience = Duration::from_mins(1);
        options.pythons = vec![folder.path().join("no-python")];
        Self { folder, options }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Where the toy is installed.
    pub fn toy_folder(&self) -> PathBuf {
        self.options.models_dir.join("toy/q8_0")
    }

    pub fn fetch(&self, manifest: &Manifest) -> Result<Fetched, FetchError> {
        fetch(manifest.choose_default().unwrap(), &self.options, &mut |_| {})
    }

    /// Fetches and fails, and gives back what each source said.
    pub fn fetch_in_vain(&self, manifest: &Manifest) -> Vec<String> {
        match self.fetch(manifest) {
            Err(FetchError::Unavailable { attempts, .. }) => {
                let tell = |text: String| text.replace(&*self.folder.path().to_string_lossy(), "~");
                attempts.iter().map(|attempt| tell(attempt.to_string())).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    /// Installs a Python whose pip hands out the wheel, and writes down every call.
    pub fn install_pip(&mut self, wheel: &Path) {
        let script = format!(
            "#!/bin/sh\n\
             echo \"$@\" >> '{}'\n\
             while [ $# -gt 1 ]; do [ \"$1\" = --dest ] && dest=$2; shift; done\n\
             sleep 0.2\n\
             echo chatter of pip\n\
             cp '{}' \"$dest\"\n",
            self.path("pip-calls").display(),
            wheel.display(),
        );
        self.install_python(&script);
    }

    pub fn install_python(&mut self, script: &str) {
        let python = self.path("python3");
        // Another process writes the script: while a file is open for writing here, it cannot be run, and a test that
        // starts a process at that moment keeps it open.
        let writer = ["-c", "cat > \"$0\" && chmod +x \"$0\""];
        let mut writer = Command::new("sh").args(writer).arg(&python).stdin(Stdio::piped()).spawn().unwrap();
        writer.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        assert!(writer.wait().unwrap().success());
        self.options.pythons = vec![self.path("no-python"), python];
    }

    pub fn pip_calls(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.path("pip-calls")).unwrap_or_default();
        calls.lines().map(str::to_owned).collect()
    }

    /// Puts files into a snapshot of the Hugging Face cache as its tools do, and names them by their digests.
    pub fn cache(&self, commit: &str, files: &[(&str, &[u8])]) {
        let repo = self.options.hub_cache.join(REPO_FOLDER);
        let snapshot = repo.join("snapshots").join(commit);
        fs::create_dir_all(repo.join("blobs")).unwrap();
        fs::create_dir_all(&snapshot).unwrap();
        for (name, content) in files {
            let etag = sha256_of(content);
            fs::write(repo.join("blobs").join(&etag), content).unwrap();
            std::os::unix::fs::symlink(format!("../../blobs/{etag}"), snapshot.join(name)).unwrap();
        }
    }

    /// Makes `main` mean a commit in the Hugging Face cache.
    pub fn cache_main(&self, commit: &str) {
        let refs = self.options.hub_cache.join(REPO_FOLDER).join("refs");
        fs::create_dir_all(&refs).unwrap();
        fs::write(refs.join("main"), commit).unwrap();
    }

    pub fn write_wheel(&self, files: &[(&str, &[u8])]) -> PathBuf {
        let path = self.path("toy-1.0-py3-none-any.whl");
        let mut wheel = zip::ZipWriter::new(File::create(&path).unwrap());
        for (name, content) in files {
            wheel.start_file(format!("toy/model/{name}"), SimpleFileOptions::default()).unwrap();
            wheel.write_all(content).unwrap();
        }
        wheel.finish().unwrap();
        path
    }
}

pub fn choice(manifest: &Manifest) -> Choice<'_> {
    manifest.choose_default().unwrap()
}

/// Collects what is reported of one file: the bytes done at the end, and the total.
pub fn last_report(reports: &[(String, u64, Option<u64>)], file: &str) -> Option<(u64, Option<u64>)> {
    let of_file = reports.iter().rfind(|(name, ..)| name == file);
    of_file.map(|(_, done, total)| (*done, *total))
}

pub fn record(progress: Progress<'_>) -> (String, u64, Option<u64>) {
    (progress.file.to_owned(), progress.done_bytes, progress.total_bytes)
}

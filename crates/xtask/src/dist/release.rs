//! Everything that packages are made of.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::archive::Entry;
use super::binary::Binary;
use super::dependencies::{self, Dependency};
use super::files::{cannot, read};

/// What licences and attributions require to be with the program.
pub(crate) const NOTICES: [&str; 4] = ["LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY.md", "ADAPTER.md"];

/// The card of the adapter in the program: its licence, and the sources that it names.
const CARD: &str = "models/adapters/smollm2-135m-instruct/README.md";

/// Everything that packages are made of.
pub(crate) struct Release {
    pub binary: Binary,
    /// Licences, dependencies, the adapter's card, manual pages, completions and the systemd unit, by their path in the tarball.
    pub files: Vec<Entry>,
    pub dependencies: Vec<Dependency>,
}

impl Release {
    pub fn of(root: &Path, binary: &Path, dependencies: Vec<Dependency>) -> Result<Release, String> {
        let binary = Binary::read(binary)?;
        let mut files = Vec::new();
        for name in ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "contrib/memlocal.service"] {
            files.push(Entry::file(name, read(&root.join(name))?));
        }
        files.push(Entry::file("THIRD-PARTY.md", dependencies::as_table(&dependencies)));
        files.push(Entry::file("ADAPTER.md", read(&root.join(CARD))?));
        files.extend(completions(&binary.path)?);
        files.extend(manual_pages(&binary.path)?);
        Ok(Release { binary, files, dependencies })
    }

    pub fn file(&self, name: &str) -> Result<&Entry, String> {
        self.files.iter().find(|file| file.path == name).ok_or_else(|| format!("{name} is missing"))
    }

    /// The files of a folder of the tarball.
    pub fn below<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = &'a Entry> {
        self.files.iter().filter(move |file| file.path.starts_with(folder))
    }
}

fn completions(binary: &Path) -> Result<Vec<Entry>, String> {
    let script = |shell: &str| {
        let output = Command::new(binary).args(["completions", shell]).output();
        let output = output.map_err(|error| cannot("run", binary, &error))?;
        if !output.status.success() || output.stdout.is_empty() {
            return Err(format!("{} completions {shell} fails", binary.display()));
        }
        Ok(Entry::file(&format!("completions/memlocal.{shell}"), output.stdout))
    };
    ["bash", "zsh", "fish"].into_iter().map(script).collect()
}

fn manual_pages(binary: &Path) -> Result<Vec<Entry>, String> {
    let folder = tempfile::tempdir().map_err(|error| format!("cannot create a folder: {error}"))?;
    let folder = folder.path();
    let done = Command::new(binary).arg("man").arg(folder).status().map_err(|error| cannot("run", binary, &error))?;
    let listed = fs::read_dir(folder).map_err(|error| cannot("read", folder, &error))?;
    let mut paths: Vec<PathBuf> = listed.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let page = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Ok(Entry::file(&format!("man/{name}"), read(path)?))
    };
    let pages = paths.iter().map(page).collect::<Result<Vec<_>, String>>();
    match (done.success(), pages?) {
        (true, pages) if !pages.is_empty() => Ok(pages),
        _ => Err(format!("{} man writes no pages", binary.display())),
    }
}

//! `cargo xtask dist`: packages one release build for machines without a toolchain. Every package holds the same binary, and
//! the same inputs give the same bytes: times are those of `SOURCE_DATE_EPOCH` (0), owners are root, orders are fixed.

mod archive;
mod binary;
mod debian;
mod dependencies;
mod image;
mod wheel;

#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use sha2::{Digest, Sha256};

use archive::{Entry, tar_gz};
use binary::Binary;
use dependencies::Dependency;

const INSTALLER: &str = include_str!("install.sh");
const SUMMARY: &str = "A long memory over private documents and conversations, on your own machine";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Everything that packages are made of.
pub(crate) struct Release {
    binary: Binary,
    /// Licences, dependencies, manual pages, completions and the systemd unit, by their path in the tarball.
    files: Vec<Entry>,
    dependencies: Vec<Dependency>,
}

/// Packages the binary and writes the folder.
pub fn run(arguments: &[&str]) -> Result<ExitCode, String> {
    let (binary, folder) = match arguments {
        [binary] => (binary, "target/dist"),
        [binary, folder] => (binary, *folder),
        _ => return Err("usage: cargo xtask dist BINARY [FOLDER]".to_owned()),
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let release = Release::of(&root, Path::new(binary), dependencies::list(&root)?)?;
    for path in release.write(Path::new(folder))? {
        eprintln!("xtask: wrote {}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

impl Release {
    fn of(root: &Path, binary: &Path, dependencies: Vec<Dependency>) -> Result<Release, String> {
        let binary = Binary::read(binary)?;
        let mut files = Vec::new();
        for name in ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "contrib/memlocal.service"] {
            files.push(Entry::file(name, read(&root.join(name))?));
        }
        files.push(Entry::file("THIRD-PARTY.md", dependencies::as_table(&dependencies)));
        files.extend(completions(&binary.path)?);
        files.extend(manual_pages(&binary.path)?);
        Ok(Release { binary, files, dependencies })
    }

    /// Writes all packages and their checksums, and gives the paths.
    fn write(&self, folder: &Path) -> Result<Vec<PathBuf>, String> {
        let name = format!("memlocal-{VERSION}-{}-linux", self.binary.architecture);
        let program = Entry::program("memlocal", self.binary.bytes.clone());
        let tarball: Vec<Entry> = self.files.iter().chain([&program]).map(|entry| entry.below(&name)).collect();
        let packages = [
            (format!("{name}.tar.gz"), tar_gz(&tarball)?),
            (wheel::file_name(&self.binary), wheel::build(self)?),
            (debian::file_name(&self.binary), debian::build(self)?),
            (format!("{name}-oci.tar"), image::build(self)?),
            (format!("{name}.cdx.json"), dependencies::as_sbom(&self.dependencies)),
            ("install.sh".to_owned(), INSTALLER.as_bytes().to_vec()),
        ];
        fs::create_dir_all(folder).map_err(|error| cannot("create", folder, &error))?;
        let mut sums = Vec::new();
        let mut paths = Vec::new();
        for (name, bytes) in &packages {
            sums.push(format!("{}  {name}\n", sha256(bytes)));
            paths.push(write(&folder.join(name), bytes)?);
        }
        paths.push(write(&folder.join("SHA256SUMS"), sums.concat().as_bytes())?);
        Ok(paths)
    }

    fn file(&self, name: &str) -> Result<&Entry, String> {
        self.files.iter().find(|file| file.path == name).ok_or_else(|| format!("{name} is missing"))
    }

    /// The files of a folder of the tarball.
    fn below<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = &'a Entry> {
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

fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| cannot("read", path, &error))
}

fn write(path: &Path, bytes: &[u8]) -> Result<PathBuf, String> {
    fs::write(path, bytes).map_err(|error| cannot("write", path, &error))?;
    Ok(path.to_owned())
}

fn cannot(act: &str, path: &Path, error: &std::io::Error) -> String {
    format!("cannot {act} {}: {error}", path.display())
}

//! `cargo xtask dist`: packages one release build for machines without a toolchain. Every package holds the same binary, and
//! the same inputs give the same bytes: times are those of `SOURCE_DATE_EPOCH` (0), owners are root, orders are fixed.

mod about;
mod archive;
mod binary;
mod debian;
mod dependencies;
mod files;
mod image;
mod release;
mod wheel;

#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use about::VERSION;
use archive::{Entry, tar_gz};
use files::{cannot, sha256, write};
use release::Release;

const INSTALLER: &str = include_str!("install.sh");
/// Packages the binary and writes the folder.
pub fn run(arguments: &[&str]) -> Result<ExitCode, String> {
    let (binary, folder) = match arguments {
        [binary] => (binary, "target/dist"),
        [binary, folder] => (binary, *folder),
        _ => return Err("usage: cargo xtask dist BINARY [FOLDER]".to_owned()),
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let release = Release::of(&root, Path::new(binary), dependencies::list(&root)?)?;
    for path in write_packages(&release, Path::new(folder))? {
        eprintln!("xtask: wrote {}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes all packages of a release and their checksums, and gives the paths.
fn write_packages(release: &Release, folder: &Path) -> Result<Vec<PathBuf>, String> {
    let name = format!("memlocal-{VERSION}-{}-linux", release.binary.architecture);
    let program = Entry::program("memlocal", release.binary.bytes.clone());
    let tarball: Vec<Entry> = release.files.iter().chain([&program]).map(|entry| entry.below(&name)).collect();
    let packages = [
        (format!("{name}.tar.gz"), tar_gz(&tarball)?),
        (wheel::file_name(&release.binary), wheel::build(release)?),
        (debian::file_name(&release.binary), debian::build(release)?),
        (format!("{name}-oci.tar"), image::build(release)?),
        (format!("{name}.cdx.json"), dependencies::as_sbom(&release.dependencies)),
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

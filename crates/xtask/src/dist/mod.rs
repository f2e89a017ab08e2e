//! `cargo xtask dist`: compiles memlocal with the profile `dist` and packages it for machines without a toolchain. Every package
//! holds the same binary, and the same inputs give the same bytes: times are those of `SOURCE_DATE_EPOCH` (0), owners are root,
//! orders are fixed.

mod about;
mod archive;
mod binary;
mod compile;
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
use archive::{Entry, check_time, tar_gz};
use compile::compile;
use files::{cannot, sha256, write};
use release::Release;

const INSTALLER: &str = include_str!("install.sh");

/// What the command line asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options<'a> {
    /// The binary; compiled if absent.
    binary: Option<&'a str>,
    /// Features of the binary, as cargo's flag takes them.
    features: Option<&'a str>,
    folder: Option<&'a str>,
}

impl<'a> Options<'a> {
    fn parse(arguments: &[&'a str]) -> Result<Options<'a>, String> {
        let mut options = Options::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let value = match *argument {
                "--binary" => &mut options.binary,
                "--features" => &mut options.features,
                _ if argument.starts_with('-') => return Err(USAGE.to_owned()),
                folder => {
                    if options.folder.replace(folder).is_some() {
                        return Err(USAGE.to_owned());
                    }
                    continue;
                }
            };
            *value = Some(*rest.next().ok_or(USAGE)?);
        }
        if options.binary.is_some() && options.features.is_some() {
            return Err(format!("--features is for a binary that is compiled, and --binary names one\n{USAGE}"));
        }
        Ok(options)
    }
}

const USAGE: &str = "usage: cargo xtask dist [--features FEATURES | --binary BINARY] [FOLDER]";

/// Compiles the binary unless it is given, packages it and writes the folder.
pub fn run(arguments: &[&str]) -> Result<ExitCode, String> {
    let options = Options::parse(arguments)?;
    check_time(std::env::var("SOURCE_DATE_EPOCH").ok().as_deref())?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let binary = match options.binary {
        Some(binary) => PathBuf::from(binary),
        None => compile(&root, options.features)?,
    };
    let release = Release::of(&root, &binary, dependencies::list(&root, options.features)?)?;
    for path in write_packages(&release, Path::new(options.folder.unwrap_or("target/packages")))? {
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

//! The Hugging Face Hub. A repository is listed where its files are not known from a manifest; each file is downloaded at
//! the commit that the hub named, resumed after an interruption, given up when nothing comes, and checked against the
//! digest that the hub promised. `HF_ENDPOINT` names a mirror.

mod client;
mod download;
mod git_blob;

use std::fs;
use std::path::Path;

use super::digest::digest_file;
use super::installation::Installation;
use super::{FetchError, FetchOptions, Receipt, ReceiptFile, Report, SourceUsed, hub_name, published};
use crate::manifest::{FileSpec, Sha256Hex};
use client::{Hub, Listing};
use download::Download;

/// Downloads every file, then checks and installs them.
pub(super) fn bring(
    repo: &str,
    revision: &str,
    installation: &Installation<'_>,
    options: &FetchOptions,
    report: &mut Report<'_>,
) -> Result<Receipt, FetchError> {
    let hub = Hub::connect(repo, options)?;
    let choice = installation.choice;
    let (mut commit, mut licence) = (None, choice.manifest.licence.clone());
    let mut listed = Vec::new();
    if choice.variant.files.is_empty() {
        let listing = hub.list(revision)?;
        listed = published::choose(repo, hub_name::wanted(choice), &listing.entries)?;
        Listing { commit, licence, .. } = listing;
    }
    let specs = if listed.is_empty() { &choice.variant.files } else { &listed };
    let folder = installation.incoming().join("hub");
    fs::create_dir_all(&folder).map_err(|error| FetchError::from_disk(&folder, error))?;
    let mut downloads = Vec::with_capacity(specs.len());
    for spec in specs {
        let at = commit.as_deref().unwrap_or(revision);
        let download = hub.download(at, &spec.name, &folder, report)?;
        commit = commit.or_else(|| download.commit.clone());
        downloads.push(download);
    }
    let mut files = Vec::with_capacity(specs.len());
    for (spec, download) in specs.iter().zip(&downloads) {
        files.push(install(spec, download, installation, report)?);
    }
    let revision = commit.unwrap_or_else(|| revision.to_owned());
    Ok(Receipt::new(choice, SourceUsed::Hub { repo: repo.to_owned(), revision, licence }, files))
}

/// Asks the hub or its mirror for anything, and gives its address.
pub(super) fn reach(options: &FetchOptions) -> Result<String, FetchError> {
    Hub::connect("", options)?.reach()
}

/// Checks a download against the manifest or the listing, and where those are silent against what the hub promised.
fn install(
    spec: &FileSpec,
    download: &Download,
    installation: &Installation<'_>,
    report: &mut Report<'_>,
) -> Result<ReceiptFile, FetchError> {
    let path: &Path = &download.path;
    let etag = download.etag.as_deref().unwrap_or_default();
    let promised = FileSpec {
        bytes: spec.bytes.or(download.bytes),
        sha256: spec.sha256.clone().or_else(|| Sha256Hex::try_from(etag.to_owned()).ok()),
        ..spec.clone()
    };
    let found = digest_file(path, &spec.name, report)?;
    if promised.sha256.is_none()
        && let Err(wrong) = git_blob::check(path, found.bytes, etag)
    {
        fs::remove_file(path).map_err(|error| FetchError::from_disk(path, error))?;
        return Err(wrong);
    }
    installation.place(&promised, path, found)
}

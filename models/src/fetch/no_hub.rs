//! Replaces the hub client in builds without the feature `hub`.

use std::path::Path;

use super::installation::Installation;
use super::repository::Repository;
use super::{FetchError, FetchOptions, Receipt, Report};
use crate::manifest::FileSpec;

pub(super) fn bring(
    _repo: &str,
    _revision: &str,
    _specs: &[FileSpec],
    _installation: &Installation,
    _options: &FetchOptions,
    _report: &mut Report<'_>,
) -> Result<Receipt, FetchError> {
    Err(FetchError::NoHubClient)
}

pub(super) fn look_up(
    _repo: &str,
    _revision: &str,
    _cache: &Path,
    _options: &FetchOptions,
) -> Result<Repository, FetchError> {
    Err(FetchError::NoHubClient)
}

//! Replaces the hub client in builds without the feature `hub`.

use super::installation::Installation;
use super::{FetchError, FetchOptions, Receipt, Report};

pub(super) fn reach(_options: &FetchOptions) -> Result<String, FetchError> {
    Err(FetchError::NoHubClient)
}

pub(super) fn bring(
    _repo: &str,
    _revision: &str,
    _installation: &Installation<'_>,
    _options: &FetchOptions,
    _report: &mut Report<'_>,
) -> Result<Receipt, FetchError> {
    Err(FetchError::NoHubClient)
}

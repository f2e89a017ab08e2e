//! What a model was loaded from, for lists of models.

use std::sync::OnceLock;
use std::time::UNIX_EPOCH;

use calls::ModelDetails;
use models::Source;

/// The files of a loaded model, and their digest once it was asked for.
#[derive(Debug)]
pub(crate) struct Origin {
    details: ModelDetails,
    source: Source,
    digest: OnceLock<Option<String>>,
}

impl Origin {
    /// `details` are what the files do not say.
    pub fn new(source: Source, details: ModelDetails) -> Origin {
        let modified = source.modified().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
        let details = ModelDetails {
            bytes: source.bytes(),
            modified_seconds: modified.as_secs(),
            format: source.labels.format.to_owned(),
            quantisation: source.labels.quantisation.clone(),
            template: source.labels.template.clone(),
            ..details
        };
        Origin { details, source, digest: OnceLock::new() }
    }

    pub fn details(&self) -> ModelDetails {
        self.details.clone()
    }

    /// `None` if the files have changed since they were loaded.
    pub fn digest(&self) -> Option<String> {
        let hex = |digest: [u8; 32]| blake3::Hash::from_bytes(digest).to_hex().to_string();
        self.digest.get_or_init(|| self.source.digest().ok().map(hex)).clone()
    }
}

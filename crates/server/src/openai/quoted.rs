//! The corpora that a reply may quote, for what keeps it.

use std::sync::Arc;

use crate::blocking::run_blocking;
use crate::error::Result;
use crate::lost::CorpusState;
use crate::tenant::Tenant;

/// What a reply may quote. It is an extension of the response, which a batch reads.
#[derive(Debug, Clone)]
pub(super) struct Quoted {
    pub corpora: Vec<String>,
    /// The states of the corpora before the question.
    pub states: Vec<CorpusState>,
}

impl Quoted {
    /// Of a question to these corpora that is not asked yet.
    pub async fn before(tenant: &Arc<Tenant>, corpora: Vec<String>) -> Result<Quoted> {
        let tenant = Arc::clone(tenant);
        run_blocking(move || Ok(Quoted { states: states_of(&tenant, &corpora)?, corpora })).await
    }

    /// Whether no text of the corpora was removed or replaced since.
    pub fn is_current(&self, tenant: &Tenant) -> Result<bool> {
        Ok(states_of(tenant, &self.corpora)? == self.states)
    }
}

/// The states of corpora.
pub(super) fn states_of(tenant: &Tenant, corpora: &[String]) -> Result<Vec<CorpusState>> {
    corpora.iter().map(|corpus| tenant.forget.state(corpus)).collect()
}

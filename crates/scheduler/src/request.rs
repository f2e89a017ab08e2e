//! What is asked of a scheduler, and the names by which its callers know sequences, workflows and namespaces.

use crate::scheduler::PATIENCE;

/// Names a sequence for as long as it lives; chosen by the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SequenceId(pub u64);

/// Names a workflow: calls that ask about the same texts one after the other, until it is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkflowId(pub u64);

/// A part of the prefix cache that is separate by content: a request shares pages only with requests of its own namespace,
/// except those that are [pinned](crate::Scheduler::pin).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Namespace(pub u64);

/// Names a tenant: within a priority the one for which the fewest tokens were computed is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct TenantId(pub u64);

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Request {
    pub id: SequenceId,
    pub tenant: TenantId,
    /// Where prefixes are matched and published.
    pub namespace: Namespace,
    /// Whether the prompt may begin with the pages that are pinned for all namespaces.
    pub pinned: bool,
    /// The prompt; at least one token.
    pub prompt: Vec<u32>,
    /// The number of the prompt's first tokens with which other prompts begin too.
    pub stable_tokens: usize,
    /// What it is a part of, if more of the same will follow.
    pub workflow: Option<WorkflowId>,
    pub max_output_tokens: usize,
    /// Lower is sooner; within a priority tenants share the tokens, and each is served in order of arrival. A long-waiting request
    /// moves up.
    pub priority: u8,
}

/// Order of a tenant's requests: earliest due step first, then order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord)]
pub(crate) struct QueueKey {
    /// In steps.
    pub due: u64,
    pub arrival: u64,
}

/// A priority after waiting for some steps.
pub(crate) fn risen(priority: u8, waited_steps: u64) -> u64 {
    u64::from(priority).saturating_sub(waited_steps / PATIENCE)
}

//! Requests that wait for pages. Tenants take turns, those with requests of the highest priority first; the requests of a tenant
//! are admitted in the order in which they are due.
//!
//! The priority by which a tenant is compared with others rises with the time since its last turn, and not with that since the
//! arrival of its requests: those of a tenant with a long queue wait for each other, and would overtake all new ones of others.

use std::collections::BTreeMap;
use std::iter::successors;

use crate::request::{QueueKey, Request, SequenceId, TenantId, risen};
use crate::round_robin::{RoundRobin, Turn};

/// Requests of one tenant that are admitted before another tenant's turn. More than one, so that requests with a common prefix,
/// which often follow each other, find it in the cache where pages are too few for the prefixes of all tenants.
const TURN_REQUESTS: usize = 4;

/// The waiting requests.
#[derive(Debug)]
pub(crate) struct WaitingQueue {
    /// By tenant and priority.
    requests: BTreeMap<(TenantId, u8, QueueKey), Request>,
    /// Every tenant with requests.
    tenants: RoundRobin,
}

impl WaitingQueue {
    pub fn new() -> WaitingQueue {
        WaitingQueue { requests: BTreeMap::new(), tenants: RoundRobin::with_turns_of(TURN_REQUESTS) }
    }

    pub fn len(&self) -> usize {
        self.requests.len()
    }

    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Adds a request that arrives in the step `clock`.
    pub fn push(&mut self, key: QueueKey, request: Request, clock: u64) {
        self.tenants.join(request.tenant, clock);
        self.requests.insert((request.tenant, request.priority, key), request);
    }

    pub fn remove(&mut self, id: SequenceId) {
        self.requests.retain(|_, request| request.id != id);
    }

    /// Takes the request that is next in the step `clock`.
    pub fn pop(&mut self, clock: u64) -> Option<(QueueKey, Request)> {
        let priority = |turn: &Turn| {
            let (priority, _) = heads(&self.requests, turn.tenant).next()?;
            Some((risen(priority, clock - turn.since), turn.tenant))
        };
        // The first of several with the same priority.
        let (_, tenant) = self.tenants.iter().filter_map(priority).min_by_key(|(priority, _)| *priority)?;
        let (priority, key) = heads(&self.requests, tenant).min_by_key(|(_, key)| *key)?;
        self.requests.remove(&(tenant, priority, key)).map(|request| (key, request))
    }

    /// Counts an admission of a tenant's request.
    pub fn serve(&mut self, tenant: TenantId, clock: u64) {
        self.tenants.serve(tenant, clock);
    }

    /// Puts requests back that were popped and not admitted. Tenants without requests lose their turn.
    pub fn put_back(&mut self, popped: Vec<(QueueKey, Request)>) {
        let entry = |(key, request): (QueueKey, Request)| ((request.tenant, request.priority, key), request);
        self.requests.extend(popped.into_iter().map(entry));
        let requests = &self.requests;
        self.tenants.retain(|tenant| heads(requests, tenant).next().is_some());
    }

    /// True if every tenant with requests has a turn.
    pub fn all_have_turns(&self) -> bool {
        self.requests.keys().all(|(tenant, ..)| self.tenants.contains(*tenant))
    }
}

/// The first request of each priority of a tenant, the highest priority first.
fn heads(
    requests: &BTreeMap<(TenantId, u8, QueueKey), Request>,
    tenant: TenantId,
) -> impl Iterator<Item = (u8, QueueKey)> {
    let first = move |least: u8| {
        let ((of, priority, key), _) = requests.range((tenant, least, QueueKey::default())..).next()?;
        (*of == tenant).then_some((*priority, *key))
    };
    successors(first(0), move |(priority, _)| priority.checked_add(1).and_then(first))
}

//! Requests that wait for pages. The tenant with the fewest tokens is next, among those with requests of the highest priority; the
//! requests of a tenant are admitted in the order in which they are due.
//!
//! The priority by which a tenant is compared with others rises with the time since its last turn, and not with that since the
//! arrival of its requests: those of a tenant with a long queue wait for each other, and would overtake all new ones of others. It
//! does not rise while the tenant has more tokens than another that waits, which is then next.

use std::collections::BTreeMap;
use std::iter::successors;

use crate::prefix_tree::PrefixHash;
use crate::request::{QueueKey, Request, SequenceId, TenantId, risen};

/// Requests of a tenant that are admitted in a turn. More than one, so that requests with a common prefix, which often follow each
/// other, find it in the cache where pages are too few for the prefixes of all tenants.
const TURN_REQUESTS: usize = 4;

/// Prompt tokens to be computed after which a turn ends before that.
const TURN_TOKENS: usize = 8192;

/// A request that waits.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub request: Request,
    /// The hashes of the first pages of its prompt, as far as they were looked up.
    pub hashes: Vec<PrefixHash>,
}

/// The waiting requests.
#[derive(Debug, Default)]
pub(crate) struct WaitingQueue {
    /// By tenant and priority.
    requests: BTreeMap<(TenantId, u8, QueueKey), Waiting>,
    /// Every tenant with requests, and the step in which its last turn ended or the first of them arrived.
    tenants: BTreeMap<TenantId, u64>,
    /// The turn that has not ended.
    turn: Option<Turn>,
}

/// What was admitted of a tenant without another in between.
#[derive(Debug)]
struct Turn {
    tenant: TenantId,
    requests: usize,
    tokens: usize,
}

impl WaitingQueue {
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Adds a request that arrives in the step `clock`.
    pub fn push(&mut self, key: QueueKey, request: Request, clock: u64) {
        self.tenants.entry(request.tenant).or_insert(clock);
        let hashes = Vec::new();
        self.requests.insert((request.tenant, request.priority, key), Waiting { request, hashes });
    }

    pub fn remove(&mut self, id: SequenceId) {
        self.requests.retain(|_, waiting| waiting.request.id != id);
    }

    /// Each tenant with requests, with the highest priority of these.
    pub fn priorities(&self) -> impl Iterator<Item = (u8, TenantId)> {
        let highest =
            |tenant: &TenantId| heads(&self.requests, *tenant).next().map(|(priority, _)| (priority, *tenant));
        self.tenants.keys().filter_map(highest)
    }

    /// Takes the request that is next in the step `clock`, where `ahead` is how many tokens a tenant has more than the one with the
    /// fewest.
    pub fn pop(&mut self, clock: u64, ahead: impl Fn(TenantId) -> u64) -> Option<(QueueKey, Waiting)> {
        let place = |(tenant, since): (&TenantId, &u64)| {
            let (priority, _) = heads(&self.requests, *tenant).next()?;
            let (ahead, waits_for_turn) =
                (ahead(*tenant), self.turn.as_ref().is_none_or(|turn| turn.tenant != *tenant));
            let waited = if ahead > 0 && waits_for_turn { 0 } else { clock - since };
            Some((risen(priority, waited), waits_for_turn, ahead, *since, *tenant))
        };
        let (.., tenant) = self.tenants.iter().filter_map(place).min()?;
        let (priority, key) = heads(&self.requests, tenant).min_by_key(|(_, key)| *key)?;
        self.requests.remove(&(tenant, priority, key)).map(|waiting| (key, waiting))
    }

    /// Counts an admission of a tenant's request, of whose prompt some tokens are to be computed.
    pub fn serve(&mut self, tenant: TenantId, tokens: usize, clock: u64) {
        if let Some(turn) = self.turn.take_if(|turn| turn.tenant != tenant) {
            self.end(&turn, clock);
        }
        let mut turn = self.turn.take().unwrap_or(Turn { tenant, requests: 0, tokens: 0 });
        turn.requests += 1;
        turn.tokens += tokens;
        if turn.requests < TURN_REQUESTS && turn.tokens < TURN_TOKENS {
            self.turn = Some(turn);
        } else {
            self.end(&turn, clock);
        }
    }

    fn end(&mut self, turn: &Turn, clock: u64) {
        if let Some(since) = self.tenants.get_mut(&turn.tenant) {
            *since = clock;
        }
    }

    /// Puts requests back that were popped and not admitted, and forgets tenants without requests.
    pub fn put_back(&mut self, popped: Vec<(QueueKey, Waiting)>) {
        let entry =
            |(key, waiting): (QueueKey, Waiting)| ((waiting.request.tenant, waiting.request.priority, key), waiting);
        self.requests.extend(popped.into_iter().map(entry));
        let requests = &self.requests;
        self.tenants.retain(|tenant, _| heads(requests, *tenant).next().is_some());
    }

    /// True if every tenant with requests is among the tenants.
    pub fn has_all_tenants(&self) -> bool {
        self.requests.keys().all(|(tenant, ..)| self.tenants.contains_key(tenant))
    }
}

/// The first request of each priority of a tenant, the highest priority first.
fn heads(
    requests: &BTreeMap<(TenantId, u8, QueueKey), Waiting>,
    tenant: TenantId,
) -> impl Iterator<Item = (u8, QueueKey)> {
    let first = move |least: u8| {
        let ((of, priority, key), _) = requests.range((tenant, least, QueueKey::default())..).next()?;
        (*of == tenant).then_some((*priority, *key))
    };
    successors(first(0), move |(priority, _)| priority.checked_add(1).and_then(first))
}

//! Tenants in the order of their turns.

use std::collections::VecDeque;

use crate::request::TenantId;

/// A round robin of tenants: one whose turn has ended goes behind all others, and so does a new one.
#[derive(Debug)]
pub(crate) struct RoundRobin {
    /// How often a tenant is served before its turn ends.
    services: usize,
    turns: VecDeque<Turn>,
}

/// A tenant in a round robin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    pub tenant: TenantId,
    /// The step in which its last turn ended or it joined.
    pub since: u64,
    /// How often it was served since.
    served: usize,
}

impl RoundRobin {
    /// An empty round robin in which a tenant is served this often in each turn.
    pub fn with_turns_of(services: usize) -> RoundRobin {
        RoundRobin { services, turns: VecDeque::new() }
    }

    /// The tenants, that whose turn it is first.
    pub fn iter(&self) -> impl Iterator<Item = &Turn> {
        self.turns.iter()
    }

    /// True if the tenant has joined.
    pub fn contains(&self, tenant: TenantId) -> bool {
        self.turns.iter().any(|turn| turn.tenant == tenant)
    }

    /// Adds a tenant in the step `clock`, unless it has joined already.
    pub fn join(&mut self, tenant: TenantId, clock: u64) {
        if !self.contains(tenant) {
            self.turns.push_back(Turn { tenant, since: clock, served: 0 });
        }
    }

    /// Removes the tenants for which `stays` is false.
    pub fn retain(&mut self, stays: impl Fn(TenantId) -> bool) {
        self.turns.retain(|turn| stays(turn.tenant));
    }

    /// Counts a service of a tenant in the step `clock`, which may end its turn.
    pub fn serve(&mut self, tenant: TenantId, clock: u64) {
        let Some(place) = self.turns.iter().position(|turn| turn.tenant == tenant) else { return };
        self.turns[place].served += 1;
        if self.turns[place].served >= self.services {
            self.turns.remove(place);
            self.join(tenant, clock);
        }
    }
}

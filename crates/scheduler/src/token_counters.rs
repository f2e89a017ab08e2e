//! Tokens that were computed for each tenant, by which tenants share the machine.

use std::collections::BTreeMap;

use crate::request::TenantId;

/// A counter of tokens for each tenant. Of the tenants that wait, the one with the fewest tokens is served next, as with the
/// virtual token counter of Sheng et al. ("Fairness in Serving Large Language Models", 2024).
///
/// Counts are relative to the lowest one of the tenants that wait, and none is below zero: a tenant that was idle begins at zero,
/// without credit for that time. Zeros are not stored, so a tenant that has left is forgotten once the others have caught up.
#[derive(Debug, Default)]
pub struct TokenCounters(BTreeMap<TenantId, u64>);

impl TokenCounters {
    /// How many tokens more than the lowest count a tenant has.
    pub fn ahead(&self, tenant: TenantId) -> u64 {
        self.0.get(&tenant).copied().unwrap_or_default()
    }

    /// Counts tokens that were computed for a tenant.
    pub fn add(&mut self, tenant: TenantId, tokens: usize) {
        if tokens > 0 {
            *self.0.entry(tenant).or_default() += tokens as u64;
        }
    }

    /// Sets the lowest count to zero, given the tenants that wait and their priorities: the lowest of those with the highest
    /// priority, since a tenant that waits for a higher priority earns no credit against it. If none waits, all are forgotten.
    pub fn rebase(&mut self, waiting: impl Iterator<Item = (u8, TenantId)>) {
        let lowest = waiting.map(|(priority, tenant)| (priority, self.ahead(tenant))).min();
        let lowest = lowest.map_or(u64::MAX, |(_, lowest)| lowest);
        self.0.retain(|_, ahead| {
            *ahead = ahead.saturating_sub(lowest);
            *ahead > 0
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TenantId = TenantId(1);
    const B: TenantId = TenantId(2);
    const C: TenantId = TenantId(3);

    #[test]
    fn a_tenant_that_was_idle_has_no_credit_and_one_that_waits_keeps_its_claim() {
        let mut counters = TokenCounters::default();
        let ahead = |counters: &TokenCounters| [A, B, C].map(|tenant| counters.ahead(tenant));
        counters.add(A, 300);
        counters.add(B, 200);
        counters.rebase([(0, A), (0, B)].into_iter());
        assert_eq!(ahead(&counters), [100, 0, 0], "the idle one begins with the lowest count");
        counters.add(A, 1000);
        counters.rebase([(0, A), (0, B)].into_iter());
        assert_eq!(ahead(&counters), [1100, 0, 0]);
        counters.add(A, 1000);
        counters.rebase([(0, A), (1, B)].into_iter());
        assert_eq!(ahead(&counters), [0, 0, 0], "a lower priority keeps no claim against a higher one");
    }

    #[test]
    fn tenants_that_have_left_are_forgotten() {
        let mut counters = TokenCounters::default();
        (100..200).for_each(|tenant| counters.add(TenantId(tenant), tenant as usize));
        for _ in 0..15 {
            counters.add(A, 10);
            counters.rebase([(0, A)].into_iter());
        }
        assert_eq!(counters.0.len(), 49, "those with more than the 150 tokens of the tenant that waits");
        counters.rebase([].into_iter());
        assert!(counters.0.is_empty());
    }
}

//! Permits that tenants share: they bound what runs and waits at the same time.
//!
//! A tenant that is alone may hold every permit. While several hold permits and all are taken, a tenant that holds fewer than its
//! equal share still gets one, beyond the maximum: what was admitted is never refused later to make room. With `n` tenants the
//! permits in use are therefore at most `1 + 1/2 + ... + 1/n` times the maximum, and one for each tenant by rounding.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::TenantId;

/// Permits of several tenants. Copies share them.
#[derive(Debug, Clone)]
pub struct Permits {
    /// The permits of each tenant that holds any.
    held: Arc<Mutex<HashMap<TenantId, usize>>>,
    max: usize,
}

/// A permit, released when dropped.
#[derive(Debug)]
pub struct Permit {
    permits: Permits,
    tenant: TenantId,
}

impl Permits {
    /// `max` permits, all of which one tenant may hold.
    pub fn new(max: usize) -> Permits {
        Permits { held: Arc::default(), max }
    }

    /// A permit for a tenant.
    ///
    /// # Errors
    /// The number of permits that the tenant holds, if none is free for it.
    pub fn acquire(&self, tenant: TenantId) -> Result<Permit, usize> {
        let mut held = self.held();
        let (all, own) = (held.values().sum::<usize>(), held.get(&tenant).copied().unwrap_or(0));
        let tenants = held.len() + usize::from(own == 0);
        if all >= self.max && own >= self.max.div_ceil(tenants) {
            return Err(own);
        }
        held.insert(tenant, own + 1);
        Ok(Permit { permits: self.clone(), tenant })
    }

    fn held(&self) -> MutexGuard<'_, HashMap<TenantId, usize>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut held = self.permits.held();
        if let Some(own) = held.get_mut(&self.tenant) {
            *own -= 1;
            if *own == 0 {
                held.remove(&self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use random::Random;

    use super::*;

    /// Takes permits of a tenant until one is refused; returns them, and the number that the refusal names.
    fn take_all(permits: &Permits, tenant: u64) -> (Vec<Permit>, usize) {
        let mut taken = Vec::new();
        loop {
            match permits.acquire(TenantId::new(tenant)) {
                Ok(permit) => taken.push(permit),
                Err(own) => return (taken, own),
            }
        }
    }

    #[test]
    fn one_tenant_may_hold_all_permits_and_others_still_get_their_shares() {
        let permits = Permits::new(12);
        let (first, refused) = take_all(&permits, 1);
        assert_eq!((first.len(), refused), (12, 12));
        let (second, refused) = take_all(&permits, 2);
        assert_eq!((second.len(), refused), (6, 6), "half of the permits");
        let (third, _) = take_all(&permits, 3);
        assert_eq!(third.len(), 4, "a third of the permits");
        assert_eq!([1, 2].map(|tenant| take_all(&permits, tenant).0.len()), [0, 0], "they hold their shares");
        drop(first);
        let (again, refused) = take_all(&permits, 1);
        assert_eq!((again.len(), refused), (4, 4), "the first has its share again");
        drop((again, second, third));
        assert_eq!(take_all(&permits, 1).0.len(), 12);
    }

    #[test]
    fn random_calls_of_tenants_get_their_shares_and_permits_stay_bounded() {
        let mut random = Random::new(7);
        for tenants in [1, 3] {
            for max in [1, 2, 5, 24] {
                let permits = Permits::new(max);
                let mut held: Vec<Vec<Permit>> = (0..tenants).map(|_| Vec::new()).collect();
                let mut refusals = 0;
                for _ in 0..5000 {
                    // The first tenant sends more calls than the others.
                    let tenant = random.below(tenants + 1) % tenants;
                    let (all, own) = (held.iter().map(Vec::len).sum::<usize>(), held[tenant].len());
                    if random.below(5) < 2 && own > 0 {
                        held[tenant].swap_remove(random.below(own));
                        continue;
                    }
                    match permits.acquire(TenantId::new(tenant as u64)) {
                        Ok(permit) => held[tenant].push(permit),
                        Err(refused) => {
                            assert!(refused == own && all >= max && own >= max.div_ceil(tenants), "{own} of {all}");
                            refusals += 1;
                        }
                    }
                    let mut counts: Vec<usize> = held.iter().map(Vec::len).collect();
                    counts.sort_unstable_by(|a, b| b.cmp(a));
                    for (place, count) in counts.iter().enumerate() {
                        assert!(*count <= max.div_ceil(place + 1), "{counts:?} of {max}");
                    }
                }
                assert!(refusals > 100, "{refusals}");
                drop(held);
                assert!(permits.held().is_empty());
            }
        }
    }
}

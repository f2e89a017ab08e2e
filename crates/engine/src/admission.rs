//! Admission control: bounds the calls running and waiting for one model, which bounds the memory of the queue.
//!
//! A tenant that is alone may hold every permit. While several hold permits and all are taken, a tenant that holds fewer than its
//! equal share still gets one, beyond the maximum: a call that was admitted is never refused later to make room. With `n` tenants
//! the permits in use are therefore at most `1 + 1/2 + ... + 1/n` times the maximum, and one for each tenant by rounding.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use calls::{CallError, TenantId};

use crate::config::Config;

/// Permits for the calls of one model.
pub(crate) struct Admission {
    /// The permits of each tenant that holds any.
    held: Mutex<HashMap<TenantId, usize>>,
    max: usize,
}

/// A permit, released when dropped.
pub(crate) struct Permit<'a> {
    admission: &'a Admission,
    tenant: TenantId,
}

impl Admission {
    /// Permits for running and waiting calls.
    pub fn new(config: Config) -> Admission {
        Admission { held: Mutex::default(), max: config.max_running.saturating_add(config.max_waiting) }
    }

    /// # Errors
    /// [`CallError::Overloaded`], with the number of permits that the tenant holds, if none is free for it.
    pub fn acquire(&self, tenant: TenantId) -> Result<Permit<'_>, CallError> {
        let mut held = self.held();
        let (all, own) = (held.values().sum::<usize>(), held.get(&tenant).copied().unwrap_or(0));
        let tenants = held.len() + usize::from(own == 0);
        if all >= self.max && own >= self.max.div_ceil(tenants) {
            return Err(CallError::Overloaded { queued: own });
        }
        held.insert(tenant, own + 1);
        Ok(Permit { admission: self, tenant })
    }

    fn held(&self) -> MutexGuard<'_, HashMap<TenantId, usize>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut held = self.admission.held();
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
    use super::*;

    fn admission(max_running: usize, max_waiting: usize) -> Admission {
        Admission::new(Config { max_running, max_waiting, ..Config::default() })
    }

    /// Takes permits of a tenant until one is refused; returns them, and the number that the refusal names.
    fn take_all(admission: &Admission, tenant: u64) -> (Vec<Permit<'_>>, usize) {
        let mut permits = Vec::new();
        loop {
            match admission.acquire(TenantId::new(tenant)) {
                Ok(permit) => permits.push(permit),
                Err(CallError::Overloaded { queued }) => return (permits, queued),
                Err(error) => panic!("{error:?}"),
            }
        }
    }

    #[test]
    fn one_tenant_may_hold_all_permits_and_others_still_get_their_shares() {
        let admission = admission(2, 10);
        let (first, refused) = take_all(&admission, 1);
        assert_eq!((first.len(), refused), (12, 12));
        let (second, refused) = take_all(&admission, 2);
        assert_eq!((second.len(), refused), (6, 6), "half of the permits");
        let (third, _) = take_all(&admission, 3);
        assert_eq!(third.len(), 4, "a third of the permits");
        assert_eq!([1, 2].map(|tenant| take_all(&admission, tenant).0.len()), [0, 0], "they hold their shares");
        drop(first);
        let (again, refused) = take_all(&admission, 1);
        assert_eq!((again.len(), refused), (4, 4), "the first has its share again");
        drop((again, second, third));
        assert_eq!(take_all(&admission, 1).0.len(), 12);
    }

    #[test]
    fn random_calls_of_tenants_get_their_shares_and_permits_stay_bounded() {
        let mut random = 7u64;
        let mut below = |n: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random >> 11) as usize % n
        };
        for tenants in [1, 3] {
            for max in [1, 2, 5, 24] {
                let admission = admission(1, max - 1);
                let mut held: Vec<Vec<Permit<'_>>> = (0..tenants).map(|_| Vec::new()).collect();
                let mut refusals = 0;
                for _ in 0..5000 {
                    // The first tenant sends more calls than the others.
                    let tenant = below(tenants + 1) % tenants;
                    let (all, own) = (held.iter().map(Vec::len).sum::<usize>(), held[tenant].len());
                    if below(5) < 2 && own > 0 {
                        held[tenant].swap_remove(below(own));
                        continue;
                    }
                    match admission.acquire(TenantId::new(tenant as u64)) {
                        Ok(permit) => held[tenant].push(permit),
                        Err(CallError::Overloaded { queued }) => {
                            assert!(queued == own && all >= max && own >= max.div_ceil(tenants), "{own} of {all}");
                            refusals += 1;
                        }
                        Err(error) => panic!("{error:?}"),
                    }
                    let mut counts: Vec<usize> = held.iter().map(Vec::len).collect();
                    counts.sort_unstable_by(|a, b| b.cmp(a));
                    for (place, count) in counts.iter().enumerate() {
                        assert!(*count <= max.div_ceil(place + 1), "{counts:?} of {max}");
                    }
                }
                assert!(refusals > 100, "{refusals}");
                drop(held);
                assert!(admission.held().is_empty());
            }
        }
    }
}

//! The namespace of the prefix cache in which a call matches and publishes pages.

use calls::TenantId;
use scheduler::Namespace;

/// The namespace of everything besides the tokens that keys and values depend on, and of who may use them: the tenant, and the
/// digest of the adapter that they were computed with.
pub(crate) fn namespace(tenant: TenantId, adapter: Option<&[u8; 32]>) -> Namespace {
    let Some(adapter) = adapter else { return Namespace(tenant.number()) };
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"adapter").update(&tenant.number().to_le_bytes()).update(adapter);
    let mut number = [0; 8];
    hasher.finalize_xof().fill(&mut number);
    Namespace(u64::from_le_bytes(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenants_and_adapters_have_namespaces_of_their_own() {
        let tenants = [TenantId::LOCAL, TenantId::new(7)];
        let (first, second) = ([1; 32], [2; 32]);
        let all = tenants
            .iter()
            .flat_map(|tenant| [None, Some(&first), Some(&second)].map(|adapter| namespace(*tenant, adapter).0));
        assert_eq!(all.collect::<std::collections::HashSet<u64>>().len(), 6);
        assert_eq!(namespace(TenantId::new(7), None).0, 7, "saved prefixes of older versions are found");
    }
}

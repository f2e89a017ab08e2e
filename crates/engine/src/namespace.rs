//! The namespace of the prefix cache in which a call matches and publishes pages.

use calls::TenantId;
use scheduler::Namespace;

/// The namespace: what a page depends on besides its tokens, and who may share it.
pub(crate) fn namespace(tenant: TenantId) -> Namespace {
    Namespace(tenant.number())
}

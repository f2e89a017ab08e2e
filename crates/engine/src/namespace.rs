//! Which part of the prefix cache a call matches and publishes in.

use calls::TenantId;
use scheduler::Namespace;

/// The namespace of everything that keys and values, and who may profit from them, depend on beside the tokens.
pub(crate) fn namespace(tenant: TenantId) -> Namespace {
    Namespace(tenant.number())
}

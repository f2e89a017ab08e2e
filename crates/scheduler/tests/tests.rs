//! The scheduler through its public API.

mod eviction;
mod pinned;
mod random;
mod rows;
mod shares;
mod tenants;

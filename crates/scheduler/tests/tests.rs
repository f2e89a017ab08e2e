//! The scheduler through its public API.

mod eviction;
mod random;
mod rows;
mod shares;
mod tenants;

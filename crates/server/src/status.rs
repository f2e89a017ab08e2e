//! The status of a caller. A caller without one is taken to be alive.

use calls::{Caller, ModelState, Status};

/// States of the caller's models; empty if it does not report them.
pub(crate) fn states(caller: &dyn Caller) -> Vec<ModelState> {
    caller.status().map(Status::state).unwrap_or_default()
}

/// False once the caller no longer answers calls.
pub(crate) fn is_alive(caller: &dyn Caller) -> bool {
    caller.status().is_none_or(Status::is_alive)
}

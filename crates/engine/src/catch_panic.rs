//! Catches panics, so that they end a request and not the engine.

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a computation and turns an error with its causes, or a panic, into a reason.
pub(crate) fn catch_panic<T, E: Into<Box<dyn Error>>>(compute: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(compute)) {
        Ok(outcome) => outcome.map_err(|error| with_causes(&*error.into())),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Err(format!("the computation panicked: {}", text.unwrap_or_default()))
        }
    }
}

/// An error with its causes.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        // candle's errors end with a backtrace if RUST_BACKTRACE is set.
        let error_text = error.to_string();
        text = format!("{text}: {}", error_text.lines().next().unwrap_or_default());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use models::ModelError;

    use super::*;

    #[test]
    fn a_reason_has_its_causes() {
        let failed = || Err::<(), _>(ModelError::Compute(candle_core::Error::Msg("out of memory".into())));
        assert_eq!(catch_panic(failed), Err("computation failed: out of memory".into()));
        assert_eq!(catch_panic(|| Err::<(), _>("no token".to_owned())), Err("no token".into()));
        let panics = || -> Result<(), String> { panic!("at {}", 3) };
        assert_eq!(catch_panic(panics), Err("the computation panicked: at 3".into()));
    }
}

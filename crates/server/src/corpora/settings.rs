//! Settings of runs that the server makes.

use memory::{Method, Settings, methods as registry};

use crate::error::{Result, ServerError};

/// Default settings. A corpus is prepared before questions are known, so every method prepares for any question.
pub(crate) fn default_settings() -> Settings {
    let mut settings = Settings::new(registry::DEFAULT);
    registry::ALL.iter().for_each(|method| method.expect_any_question(&mut settings));
    settings
}

/// The method with this name; the default method without one.
pub(crate) fn method(name: Option<&str>) -> Result<&'static dyn Method> {
    let Some(name) = name else { return Ok(default_settings().method) };
    registry::find(name).map_err(|reason| ServerError::invalid(reason, "method"))
}

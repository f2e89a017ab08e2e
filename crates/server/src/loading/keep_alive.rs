//! How long a model stays loaded after its last request, as Ollama's clients write it.

use std::time::Duration;

use serde_json::Value;

use crate::error::{Result, ServerError};

/// How long a model stays loaded after its last request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepAlive {
    /// So long; no time unloads it as soon as no request uses it.
    For(Duration),
    /// Until it is unloaded or the server ends.
    Forever,
}

/// Longer times are as good as forever, and cannot be added to every clock.
const LONGEST: Duration = Duration::from_hours(100 * 365 * 24);

impl KeepAlive {
    /// Reads `keep_alive` of a request: seconds, or text as of Go (`5m`, `1h30m`, `-1s`); negative is forever.
    ///
    /// # Errors
    /// [`ServerError::Invalid`] for anything else.
    pub(crate) fn of_request(value: &Value) -> Result<KeepAlive> {
        let read = match value {
            Value::Number(seconds) => seconds.as_f64().map(KeepAlive::of_seconds),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        read.ok_or_else(|| ServerError::invalid(WRONG, "keep_alive"))
    }

    fn of_seconds(seconds: f64) -> KeepAlive {
        if seconds < 0.0 {
            return KeepAlive::Forever;
        }
        Duration::try_from_secs_f64(seconds).map_or(KeepAlive::Forever, KeepAlive::of_time)
    }

    fn of_time(time: Duration) -> KeepAlive {
        if time > LONGEST { KeepAlive::Forever } else { KeepAlive::For(time) }
    }
}

const WRONG: &str =
    "`keep_alive` is a number of seconds or a time such as \"5m\"; 0 unloads, and a negative one keeps the model";

/// Units of Go's durations with their seconds; the longer names come before their ends.
const UNITS: [(&str, f64); 7] =
    [("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("h", 3600.0), ("m", 60.0), ("s", 1.0)];

impl std::str::FromStr for KeepAlive {
    type Err = String;

    /// Reads a time such as `5m`, `1h30m` or `90`; a number alone is seconds.
    fn from_str(text: &str) -> std::result::Result<KeepAlive, String> {
        let wrong = || "it must be a time such as 5m, 1h30m or 90 (seconds); 0 unloads, -1 keeps".to_owned();
        let (is_negative, mut rest) = match text.trim().strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.trim()),
        };
        let (mut seconds, mut parts) = (0.0, 0);
        while !rest.is_empty() {
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            let number: f64 = rest[..end].parse().map_err(|_| wrong())?;
            let behind = &rest[end..];
            let (unit, factor) = match UNITS.iter().find(|(unit, _)| behind.starts_with(unit)) {
                Some(unit) => *unit,
                None if behind.is_empty() && parts == 0 => ("", 1.0),
                None => return Err(wrong()),
            };
            seconds += number * factor;
            parts += 1;
            rest = &behind[unit.len()..];
        }
        if parts == 0 {
            return Err(wrong());
        }
        Ok(KeepAlive::of_seconds(if is_negative { -seconds } else { seconds }))
    }
}

impl std::fmt::Display for KeepAlive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            KeepAlive::For(time) => write!(f, "{}s", time.as_secs_f64()),
            KeepAlive::Forever => f.write_str("-1"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_are_read_as_by_ollama() {
        let time = |seconds: f64| Some(KeepAlive::For(Duration::from_secs_f64(seconds)));
        let check = |value: Value, want: Option<KeepAlive>| {
            assert_eq!(KeepAlive::of_request(&value).ok(), want, "{value}");
        };
        check(json!(0), time(0.0));
        check(json!(300), time(300.0));
        check(json!(2.5), time(2.5));
        check(json!("5m"), time(300.0));
        check(json!("1h30m"), time(5400.0));
        check(json!("300ms"), time(0.3));
        check(json!("90"), time(90.0));
        check(json!("0"), time(0.0));
        for forever in [json!(-1), json!("-1"), json!("-1m"), json!(1e300), json!("99999999999h")] {
            check(forever, Some(KeepAlive::Forever));
        }
        for wrong in [json!("soon"), json!(""), json!("5 m"), json!("5m3"), json!([1]), json!(true), json!("-")] {
            check(wrong, None);
        }
    }
}

//! Rate limiting: a token bucket per client.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{Result, ServerError};

/// The buckets of all clients.
pub(crate) struct Rate {
    per_minute: f64,
    buckets: Mutex<HashMap<String, Bucket>>,
}

struct Bucket {
    tokens: f64,
    filled: Instant,
}

/// Above this number of clients, full buckets are dropped.
const MAX_BUCKETS: usize = 10_000;

impl Rate {
    pub fn new(per_minute: NonZeroU32) -> Rate {
        Rate { per_minute: per_minute.get().into(), buckets: Mutex::default() }
    }

    /// Takes a token from a client's bucket, which holds one minute's tokens.
    ///
    /// # Errors
    /// [`ServerError::RateLimited`] with the time until the next token.
    pub fn take(&self, client: String, now: Instant) -> Result<()> {
        let (most, per_second) = (self.per_minute, self.per_minute / 60.0);
        let filled = |bucket: &Bucket| {
            let new = now.saturating_duration_since(bucket.filled).as_secs_f64() * per_second;
            (bucket.tokens + new).min(most)
        };
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_BUCKETS {
            buckets.retain(|_, bucket| filled(bucket) < most);
        }
        let bucket = buckets.entry(client).or_insert(Bucket { tokens: most, filled: now });
        let tokens = filled(bucket);
        if tokens < 1.0 {
            let pause = Duration::from_secs_f64(((1.0 - tokens) * 60.0 / most).ceil());
            return Err(ServerError::RateLimited { pause_seconds: pause.as_secs() });
        }
        *bucket = Bucket { tokens: tokens - 1.0, filled: now };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Instant, NonZeroU32, Rate, ServerError};

    #[test]
    fn a_bucket_fills_at_an_even_pace() {
        let rate = Rate::new(NonZeroU32::new(2).expect("it is not 0"));
        let start = Instant::now();
        let check = |client: &str, milliseconds: u64, pause: Option<u64>| {
            let told = match rate.take(client.to_owned(), start + Duration::from_millis(milliseconds)) {
                Err(ServerError::RateLimited { pause_seconds }) => Some(pause_seconds),
                taken => taken.map(|()| None).expect("nothing else is refused"),
            };
            assert_eq!(told, pause, "{client} after {milliseconds} ms");
        };
        check("ann", 0, None);
        check("ann", 0, None);
        check("ann", 0, Some(30));
        check("bob", 0, None);
        check("ann", 20_500, Some(10));
        check("ann", 30_001, None);
        check("ann", 30_501, Some(30));
    }
}

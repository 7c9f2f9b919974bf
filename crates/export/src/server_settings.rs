//! What may stand in `[server]`, where a type does not say it.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::limits::THREADS_MAX;

/// How much a part may log.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// How much is logged.
pub(crate) fn log_level<'d, D: Deserializer<'d>>(written: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(written)?;
    let level = |directive: &str| directive.trim().rsplit('=').next().map(str::to_owned);
    let is_level = |level: String| LEVELS.contains(&level.as_str());
    if text.split(',').all(|directive| level(directive).is_some_and(is_level)) {
        return Ok(Some(text));
    }
    Err(D::Error::custom(format!(
        "{text:?} is no log level: expected off, error, warn, info, debug or trace, also for a \
         part only, as in info,comity_server=debug"
    )))
}

/// How many threads serve.
pub(crate) fn threads<'d, D: Deserializer<'d>>(written: D) -> Result<Option<usize>, D::Error> {
    let count = usize::deserialize(written)?;
    if (1..=THREADS_MAX).contains(&count) {
        return Ok(Some(count));
    }
    Err(D::Error::custom(format!("{count} threads: expected 1 to {THREADS_MAX}")))
}

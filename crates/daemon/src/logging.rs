//! The log: lines for people or JSON for programs, on standard error. Its level can change while
//! the server runs.

use anyhow::{Context, Result, anyhow};
use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt, reload};

/// The handle that changes the log level.
#[derive(Debug, Clone)]
pub(crate) struct Logging(reload::Handle<EnvFilter, Registry>);

impl Logging {
    /// Starts the log of this process.
    ///
    /// # Errors
    /// The process has a log already.
    pub(crate) fn begin(level: EnvFilter, json: bool) -> Result<Self> {
        let (filter, handle) = reload::Layer::new(level);
        let lines = fmt::layer().with_writer(std::io::stderr).with_target(true);
        let lines = if json {
            lines.json().flatten_event(true).boxed()
        } else {
            lines.with_ansi(false).compact().boxed()
        };
        tracing_subscriber::registry().with(filter).with(lines).try_init()?;
        Ok(Self(handle))
    }

    /// Returns the log level as it was set.
    pub(crate) fn level(&self) -> String {
        self.0.with_current(ToString::to_string).unwrap_or_default()
    }

    /// Changes the log level.
    ///
    /// # Errors
    /// The text is not a level; the error describes the format.
    pub(crate) fn set_level(&self, text: &str) -> Result<()> {
        self.0.reload(level(text)?).context("the log is closed")
    }
}

/// Starts the log of a process with a fixed level.
///
/// # Errors
/// The process has a log already, or `text` is not a level.
pub fn begin(text: &str) -> Result<()> {
    Logging::begin(level(text)?, false).map(|_| ())
}

/// Parses a level, such as `info` or `info,comity_server=debug`.
///
/// # Errors
/// The text is not a level; the error describes the format.
pub fn level(text: &str) -> Result<EnvFilter> {
    let directives: Vec<&str> = text.split(',').map(str::trim).collect();
    let parsed = EnvFilter::builder().parse(directives.join(","));
    let parsed = parsed.ok().filter(|_| directives.iter().copied().all(is_directive));
    parsed.ok_or_else(|| {
        anyhow!(
            "{text:?} is no log level: give off, error, warn, info, debug or trace, also for a \
             part only, as in info,comity_server=debug"
        )
    })
}

/// Returns whether a directive names a level. A bare word would be taken for the name of a module,
/// and everything else would be switched off.
fn is_directive(text: &str) -> bool {
    let level = text.rsplit('=').next().unwrap_or(text);
    ["off", "error", "warn", "info", "debug", "trace"].contains(&level)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_accepted_and_other_words_refused() {
        for good in ["info", "off", "info,comity_server=debug", "warn, comity_nfs3=trace"] {
            assert!(level(good).is_ok(), "{good}");
        }
        for bad in ["", "loud", "info,", "comity_server", "comity_server=loud", "=info=="] {
            assert!(level(bad).is_err(), "{bad}");
        }
    }
}

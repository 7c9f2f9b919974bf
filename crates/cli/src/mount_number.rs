use anyhow::{Result, anyhow};

/// Reads a whole number.
///
/// # Errors
/// If the value is no whole number or is too large; the message says what is expected.
pub(crate) fn number(name: &str, value: &str, most: u64) -> Result<u64> {
    let number = value.parse().ok().filter(|number| *number <= most);
    number.ok_or_else(|| anyhow!("-o {name}={value}: give a whole number, at most {most}"))
}

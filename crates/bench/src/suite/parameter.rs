use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

/// A parameter of a workload. On the command line it is the flag `--name`.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// The name: words joined by `-`.
    pub name: &'static str,
    /// Its description for the help text, with units.
    pub about: &'static str,
    /// The kind of its values.
    pub kind: ParameterKind,
    /// The value of the original work, which is the default.
    pub paper: &'static str,
    /// The value under `--quick`.
    pub quick: &'static str,
    /// The value under `--modern`.
    pub modern: &'static str,
}

/// The kind of the values of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterKind {
    /// A whole number.
    Count,
    /// Bytes: a number, with `K`, `M`, `G` for powers of 1,024.
    Bytes,
    /// A number from 0 to 1.
    Fraction,
    /// A number that is not negative, such as seconds or calls a second.
    Number,
    /// Whole numbers, separated by commas.
    Counts,
    /// `true` or `false`; the flag alone means `true`.
    Flag,
    /// Any text, possibly none.
    Text,
}

/// The set of defaults for parameters that are not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// The values of the original works.
    #[default]
    Paper,
    /// The whole suite on one target in ten minutes.
    Quick,
    /// Sizes for machines of today.
    Modern,
}

/// The values of all parameters of one workload, by name, as valid texts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Parameters(BTreeMap<String, String>);

impl Parameters {
    /// The values of a preset.
    #[must_use]
    pub fn preset(of: &[Parameter], preset: Preset) -> Self {
        let value = |parameter: &Parameter| match preset {
            Preset::Paper => parameter.paper,
            Preset::Quick => parameter.quick,
            Preset::Modern => parameter.modern,
        };
        Self(of.iter().map(|each| (each.name.to_owned(), value(each).to_owned())).collect())
    }

    /// Sets a parameter.
    ///
    /// # Errors
    /// The text is no value of its kind.
    pub fn set(&mut self, parameter: &Parameter, text: &str) -> Result<()> {
        parameter.kind.check(text).with_context(|| format!("--{}", parameter.name))?;
        self.0.insert(parameter.name.to_owned(), text.to_owned());
        Ok(())
    }

    /// Returns all values by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// Returns a text.
    ///
    /// # Errors
    /// There is no such parameter.
    pub fn text(&self, name: &str) -> Result<&str> {
        self.0.get(name).map(String::as_str).with_context(|| format!("no parameter {name}"))
    }

    /// Returns a whole number.
    ///
    /// # Errors
    /// There is no such parameter, or it is no whole number.
    pub fn count(&self, name: &str) -> Result<u64> {
        count(self.text(name)?).with_context(|| format!("--{name}"))
    }

    /// Returns a number of bytes.
    ///
    /// # Errors
    /// There is no such parameter, or it is no number of bytes.
    pub fn bytes(&self, name: &str) -> Result<u64> {
        bytes(self.text(name)?).with_context(|| format!("--{name}"))
    }

    /// Returns a number from 0 on, or a fraction.
    ///
    /// # Errors
    /// There is no such parameter, or it is no number.
    pub fn number(&self, name: &str) -> Result<f64> {
        number(self.text(name)?).with_context(|| format!("--{name}"))
    }

    /// Returns whole numbers.
    ///
    /// # Errors
    /// There is no such parameter, or a part is no whole number.
    pub fn counts(&self, name: &str) -> Result<Vec<u64>> {
        counts(self.text(name)?).with_context(|| format!("--{name}"))
    }

    /// Returns whether a flag is set.
    ///
    /// # Errors
    /// There is no such parameter.
    pub fn flag(&self, name: &str) -> Result<bool> {
        Ok(self.text(name)? == "true")
    }
}

impl fmt::Display for Parameters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (name, text) in self.iter() {
            write!(formatter, "{separator}--{name} {text}")?;
            separator = " ";
        }
        Ok(())
    }
}

impl ParameterKind {
    /// Checks that a text is a value of this kind.
    ///
    /// # Errors The text is no such value; the error shows the form of one.
    pub fn check(self, text: &str) -> Result<()> {
        match self {
            Self::Count => count(text).map(drop),
            Self::Bytes => bytes(text).map(drop),
            Self::Number => number(text).map(drop),
            Self::Counts => counts(text).map(drop),
            Self::Fraction => {
                ensure!(number(text)? <= 1.0, "`{text}` is not from 0 to 1");
                Ok(())
            }
            Self::Flag => {
                ensure!(["true", "false"].contains(&text), "`{text}` is not true or false");
                Ok(())
            }
            Self::Text => Ok(()),
        }
    }
}

fn count(text: &str) -> Result<u64> {
    text.parse().ok().with_context(|| format!("`{text}` is no whole number"))
}

fn counts(text: &str) -> Result<Vec<u64>> {
    text.split(',').map(|each| count(each.trim())).collect()
}

fn number(text: &str) -> Result<f64> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        _ => bail!("`{text}` is no number from 0 on"),
    }
}

/// Reads a number of bytes, such as `4096`, `64K`, `1M` or `2G`.
///
/// # Errors
/// The text is no number of bytes, or too large.
pub fn bytes(text: &str) -> Result<u64> {
    let wrong = || format!("`{text}` is no number of bytes, as 4096, 64K, 1M or 2G");
    let split = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let shift = match unit.trim_end_matches("iB") {
        "" => 0,
        "K" | "k" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => bail!(wrong()),
    };
    let count: u64 = digits.parse().ok().with_context(wrong)?;
    count.checked_mul(1 << shift).with_context(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Parameter = Parameter {
        name: "size",
        about: "Bytes of it",
        kind: ParameterKind::Bytes,
        paper: "512",
        quick: "1K",
        modern: "1M",
    };

    #[test]
    fn a_preset_gives_values_and_flags_change_them() {
        let mut parameters = Parameters::preset(&[SIZE], Preset::Quick);
        assert_eq!(parameters.bytes("size").unwrap(), 1024);
        parameters.set(&SIZE, "2G").unwrap();
        assert_eq!(parameters.bytes("size").unwrap(), 2 << 30);
        assert!(parameters.count("depth").is_err());
        let error = format!("{:#}", parameters.set(&SIZE, "much").unwrap_err());
        assert_eq!(error, "--size: `much` is no number of bytes, as 4096, 64K, 1M or 2G");
    }

    #[test]
    fn kinds_are_told_apart() {
        for (kind, good, bad) in [
            (ParameterKind::Count, "7", "7K"),
            (ParameterKind::Bytes, "64K", "64X"),
            (ParameterKind::Fraction, "0.5", "1.5"),
            (ParameterKind::Number, "1e3", "-1"),
            (ParameterKind::Counts, "1, 10,100", "1,,2"),
            (ParameterKind::Flag, "true", "yes"),
        ] {
            assert!(kind.check(good).is_ok(), "{kind:?} {good}");
            assert!(kind.check(bad).is_err(), "{kind:?} {bad}");
        }
        assert!(bytes("99999999999999999999").is_err());
        assert!(bytes("99999999999T").is_err());
    }
}

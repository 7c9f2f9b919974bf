use std::fmt;

use anyhow::{Result, bail};

/// The version of NFS for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Version {
    /// NFSv3.
    #[default]
    Three,
    /// NFSv4.1.
    FourOne,
}

impl Version {
    /// Reads a version.
    ///
    /// # Errors
    /// The version is not supported.
    pub fn parse(text: &str) -> Result<Self> {
        match text {
            "3" => Ok(Self::Three),
            "4.1" => Ok(Self::FourOne),
            other => bail!("version {other} of NFS is not spoken: there are 3 and 4.1"),
        }
    }

    /// Splits `...?vers=4.1` off a target's name.
    ///
    /// # Errors
    /// Another text follows the question mark.
    pub(crate) fn split(text: &str) -> Result<(&str, Option<Self>)> {
        let Some((name, option)) = text.rsplit_once('?') else { return Ok((text, None)) };
        match option.strip_prefix("vers=") {
            Some(version) => Ok((name, Some(Self::parse(version)?))),
            None => bail!("{text}: there is no option `{option}`, only vers=3 and vers=4.1"),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Three => "3",
            Self::FourOne => "4.1",
        })
    }
}

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::{Client, Location, RuleSource, Rules};

/// An export as the configuration has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExportSpec {
    /// Its location in the configuration.
    pub(crate) place: Location,
    /// The exported path.
    pub(crate) path: PathBuf,
    /// The clients it is offered to.
    pub(crate) specs: Vec<ClientSpec>,
}

/// One client of an export as the configuration has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientSpec {
    /// Its location in the configuration.
    pub(crate) place: Location,
    /// The client.
    pub(crate) client: Client,
    /// The terms that hold for the client.
    pub(crate) terms: Terms,
    /// The source of the terms.
    pub(crate) origin: RuleSource,
}

impl ClientSpec {
    /// The name that messages use: the domain, or else the client.
    pub(crate) fn name(&self) -> String {
        match &self.origin.domain {
            Some(domain) => format!("domain {domain}"),
            None => format!("client {}", self.client),
        }
    }
}

/// Everything that options say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Terms {
    /// The rules for the client.
    pub(crate) rules: Rules,
    /// The settings of the export, for all clients.
    pub(crate) settings: Settings,
}

/// The settings that the clients' options give the export itself; they have to agree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// Its number in handles and attributes (`fsid`); otherwise the path decides.
    pub fsid: Option<Fsid>,
    /// True if file systems mounted below it are part of it (`crossmnt`).
    pub crosses_mounts: bool,
    /// True if it is seen from the export above it (`nohide`).
    pub is_unhidden: bool,
    /// The path that must be a mount point for it to be offered (`mountpoint`).
    pub mount_point: Option<PathBuf>,
    /// The file of the administrator's KeyNote policy (`policy`).
    pub policy: Option<PathBuf>,
}

/// The name an export is given by `fsid=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fsid {
    /// A number; 0 is also the top of what NFSv4 clients see (`root`).
    Number(u32),
    /// A UUID.
    Uuid([u8; 16]),
}

/// A path as exports(5) writes it: what would end or change it there is escaped.
pub(crate) struct Escaped<'a>(pub(crate) &'a Path);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_os_str().as_bytes().iter().try_for_each(|&byte| match byte {
            b'"' | b'#' | b'\\' | b'(' | b')' | b',' => write!(f, "\\{byte:03o}"),
            0x21..=0x7e => write!(f, "{}", char::from(byte)),
            _ => write!(f, "\\{byte:03o}"),
        })
    }
}

impl fmt::Display for ClientSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.client, self.terms)
    }
}

impl fmt::Display for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.rules, self.settings)
    }
}

/// Only the settings that are set, each with a comma in front.
impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(fsid) = self.fsid {
            write!(f, ",fsid={fsid}")?;
        }
        f.write_str(if self.crosses_mounts { ",crossmnt" } else { "" })?;
        f.write_str(if self.is_unhidden { ",nohide" } else { "" })?;
        match &self.mount_point {
            Some(path) if path.as_os_str().is_empty() => f.write_str(",mountpoint")?,
            Some(path) => write!(f, ",mountpoint={}", Escaped(path))?,
            None => {}
        }
        self.policy.iter().try_for_each(|path| write!(f, ",policy={}", Escaped(path)))
    }
}

impl fmt::Display for Fsid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Uuid(bytes) => bytes.iter().enumerate().try_for_each(|(at, byte)| {
                let dash = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
                write!(f, "{dash}{byte:02x}")
            }),
        }
    }
}

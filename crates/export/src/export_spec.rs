use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

pub(crate) use crate::path::Escaped;
use crate::{CephSource, Client, Location, Referral, RuleSource, Rules};

/// An export as it is declared in the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExportSpec {
    /// Its location in the configuration.
    pub(crate) place: Location,
    /// The exported path.
    pub(crate) path: PathBuf,
    /// The clients to which it is offered.
    pub(crate) specs: Vec<ClientSpec>,
}

/// One client of an export as it is declared in the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientSpec {
    /// Its location in the configuration.
    pub(crate) place: Location,
    /// The client.
    pub(crate) client: Client,
    /// The terms for the client.
    pub(crate) terms: Terms,
    /// The source of the terms.
    pub(crate) origin: RuleSource,
}

impl ClientSpec {
    /// Returns the name of the client in messages: the domain, or else the client itself.
    pub(crate) fn name(&self) -> String {
        match &self.origin.domain {
            Some(domain) => format!("domain {domain}"),
            None => format!("client {}", self.client),
        }
    }
}

/// The effect of all options of a client.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Terms {
    /// The rules for the client.
    pub(crate) rules: Rules,
    /// The settings of the export, for all clients.
    pub(crate) settings: Settings,
}

/// The settings of the export itself, which clients' options give; the options have to agree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// Its number in handles and attributes (`fsid`); without it, the path determines the number.
    pub fsid: Option<Fsid>,
    /// True if file systems mounted below it are part of it (`crossmnt`).
    pub crosses_mounts: bool,
    /// True if it is visible from the export above it (`nohide`).
    pub is_unhidden: bool,
    /// The path that must be a mount point, or else the export is not offered (`mountpoint`).
    pub mount_point: Option<PathBuf>,
    /// The file of the administrator's KeyNote policy (`policy`).
    pub policy: Option<PathBuf>,
    /// The servers that have its files, if this one has not (`refer`).
    pub refer: Option<Referral>,
    /// The directory of a Ceph file system that it shows (`ceph`).
    pub ceph: CephSource,
    /// The peer that serves it, until it is moved (`home`).
    pub home: Option<Box<str>>,
    /// The address that goes to the head of a cluster which serves the export (`address`).
    pub address: Option<IpAddr>,
    /// True while it is on its way to another server.
    pub is_moving: bool,
}

/// The identifier of an export that `fsid=` sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fsid {
    /// A number; 0 also makes the export the root of NFSv4 clients (`root`).
    Number(u32),
    /// A UUID.
    Uuid([u8; 16]),
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

/// Formats only the settings that are set, each after a comma.
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
        self.policy.iter().try_for_each(|path| write!(f, ",policy={}", Escaped(path)))?;
        self.refer.iter().try_for_each(|referral| write!(f, ",refer={referral}"))?;
        self.ceph.fmt(f)?;
        self.home.iter().try_for_each(|name| write!(f, ",home={name}"))?;
        self.address.iter().try_for_each(|address| write!(f, ",address={address}"))
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

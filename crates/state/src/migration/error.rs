//! The reasons why the state of a volume is not exported, not read, or not imported.

use std::fmt;

use comity_xdr::Malformed;

use crate::{ClientId, Error, FileKey};

/// The reason why the state of a volume cannot be exported now. Each of them passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportRefusal {
    /// The engine is in grace: it does not know yet which state there is.
    Grace,
    /// A request of this client is under way.
    RequestUnderWay(ClientId),
    /// A copy of this client is under way, or the client has not acknowledged its end.
    Copy(ClientId),
    /// This directory is delegated ([`crate::Engine::recall_volume`]).
    DirectoryDelegation(FileKey),
    /// Clients have layouts of this file, or its fence has to be raised
    /// ([`crate::Engine::recall_volume`]).
    Layout(FileKey),
    /// This file is used through several exports, not all of which may be moving.
    SeveralExports(FileKey),
}

/// A section of the bytes of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// The number of the volume.
    Volume,
    /// The records of the clients.
    Clients,
    /// The sessions of each client.
    Sessions,
    /// The owners of each client.
    Owners,
    /// The states of each client.
    States,
    /// The locks of hosts whose grants are not acknowledged.
    Grants,
    /// The files with owners that wait.
    Files,
}

/// The reason why bytes are not the state of a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransferError {
    /// The bytes do not begin as such bytes do.
    Magic,
    /// This program does not know this version.
    Version(u32),
    /// The bytes end before their checksum, or there are bytes after it.
    Length,
    /// The checksum differs.
    Checksum,
    /// Another section was expected here.
    Misplaced(Section),
    /// The section is longer than it may be, or than the rest of the bytes.
    SectionLength(Section),
    /// The section has other contents.
    Malformed(Section, Malformed),
}

/// The reason why the state of a volume is not imported. Nothing of it is imported then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportRefusal {
    /// The values contradict each other, so that no engine has exported them.
    Contradiction(Section, &'static str),
    /// The engine is in grace: its own clients come first.
    Grace,
    /// There is no place for so many clients or delegations.
    Full,
    /// The engine cannot take in this client: [`Error::ClidInuse`] if its clientid, the number of
    /// that, or its name is in use, or a stateid or an owner of it is that of another here;
    /// [`Error::ReclaimConflict`] if its state conflicts with that of another client;
    /// [`Error::Delay`] or [`Error::Resource`] if a bound is reached.
    Client(ClientId, Error),
    /// There are too many locks and waiting owners of this file.
    File(FileKey),
}

impl fmt::Display for ExportRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Grace => f.write_str("the server is in grace"),
            Self::RequestUnderWay(client) => write!(f, "a request of client {client} is under way"),
            Self::Copy(client) => write!(f, "a copy of client {client} is under way"),
            Self::DirectoryDelegation(_) => f.write_str("a directory is delegated"),
            Self::Layout(_) => f.write_str("a client has a layout of a file"),
            Self::SeveralExports(_) => f.write_str(
                "a file is used through several exports, as one with hard links in them is",
            ),
        }
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Volume => "volume",
            Self::Clients => "clients",
            Self::Sessions => "sessions",
            Self::Owners => "owners",
            Self::States => "states",
            Self::Grants => "grants",
            Self::Files => "files",
        })
    }
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic => f.write_str("these bytes are not the state of a volume"),
            Self::Version(found) => write!(f, "version {found} of the format is unknown"),
            Self::Length => f.write_str("the bytes end early or late"),
            Self::Checksum => f.write_str("the checksum differs"),
            Self::Misplaced(section) => write!(f, "section {section} is missing or misplaced"),
            Self::SectionLength(section) => write!(f, "section {section} is too long"),
            Self::Malformed(section, why) => write!(f, "section {section}: {why}"),
        }
    }
}

impl fmt::Display for ImportRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Contradiction(section, what) => write!(f, "section {section}: {what}"),
            Self::Grace => f.write_str("the server is in grace"),
            Self::Full => f.write_str("there is no place for so many clients or delegations"),
            Self::Client(client, Error::ClidInuse) => write!(
                f,
                "client {client}: its clientid, its name, a stateid or an owner of it is in use \
                 there; have the client unmount there, or end the client that uses it (`comity \
                 clients` and `comity evict` there)"
            ),
            Self::Client(client, error) => write!(f, "client {client}: {error}"),
            Self::File(_) => f.write_str("a file has too many locks"),
        }
    }
}

impl std::error::Error for ExportRefusal {}
impl std::error::Error for TransferError {}
impl std::error::Error for ImportRefusal {}

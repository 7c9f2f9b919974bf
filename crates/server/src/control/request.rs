use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::ControlRequest;
use crate::limits::{CONTROL_ANSWER_SECONDS, CONTROL_WORK_SECONDS};

/// A request to a running server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Reads the configuration again.
    Reload,
    /// Asks for the server's state and counters.
    Status,
    /// Asks for the load of the server.
    Load,
    /// Sets the log level, or asks for it.
    LogLevel {
        /// The level, or the filter, as on the command line.
        level: Option<String>,
    },
    /// Asks for the exports, or for those that a client may see.
    Exports {
        /// The client.
        client: Option<IpAddr>,
    },
    /// Asks for a page of clients.
    Clients {
        /// The last client of the previous page.
        after: Option<String>,
    },
    /// Asks for a client and a page of its states.
    Client {
        /// The client's number.
        client: String,
        /// The last state of the previous page.
        after: Option<u32>,
    },
    /// Asks for the clients that wait for others.
    Waits {
        /// The client whose waits are shown; all clients if none is given.
        client: Option<String>,
    },
    /// Evicts a client and frees all its state.
    Evict {
        /// The client's number.
        client: String,
    },
    /// Binds a key to a user.
    BindAccount {
        /// The name of the user.
        user: String,
        /// The key in Comity's notation.
        key: String,
    },
    /// Removes the account of a key.
    UnbindAccount {
        /// The key in Comity's notation.
        key: String,
    },
    /// Asks for the keys that are bound to users.
    Accounts,
    /// Revokes a credential or a key for everybody.
    RevokeGrant {
        /// The digest of a credential or its text, or a key.
        what: String,
    },
    /// Asks for the credentials of all keys, or of one key.
    HeldGrants {
        /// The key in Comity's notation.
        key: Option<String>,
    },
    /// Asks for the credentials that end within 30 days.
    EndingGrants,
    /// Asks for the reasons of a key's rights to an object.
    Why {
        /// The path of the object on this machine.
        path: PathBuf,
        /// The name of an operation; empty for all.
        operation: String,
        /// The key in Comity's notation.
        key: String,
        /// The address from which the key is assumed to call.
        from: IpAddr,
    },
    /// Asks for the placements and the state of their data servers.
    Placements {
        /// The path of the export whose placement is shown; all if none is given.
        export: Option<PathBuf>,
    },
    /// Compares a page of a directory of placed files with their data servers.
    PlacementFiles {
        /// The path of the export.
        export: PathBuf,
        /// The handle of the directory, from an earlier answer; the export's top if none is given.
        directory: Option<Vec<u8>>,
        /// The cookie after which the page begins.
        after: u64,
    },
    /// Asks for a page of the names of the data files on a data server.
    PlacementStored {
        /// The path of an export whose placement has the data server.
        export: PathBuf,
        /// The name of the data server.
        server: String,
        /// The cookie after which the page begins.
        after: u64,
    },
    /// Compares the bytes of a range of a file's good mirrors.
    PlacementBytes {
        /// The path of the export.
        export: PathBuf,
        /// The handle of the file, from the answer to [`Self::PlacementFiles`].
        file: Vec<u8>,
        /// The offset of the range.
        offset: u64,
        /// The length of the range; up to the end of the file if none is given.
        length: Option<u64>,
    },
    /// Writes the labels of the data files of a page of a directory.
    PlacementLabels {
        /// The path of the export.
        export: PathBuf,
        /// The handle of the directory, from an earlier answer; the export's top if none is given.
        directory: Option<Vec<u8>>,
        /// The cookie after which the page begins.
        after: u64,
    },
    /// Gives the files of a page of data files their places back.
    PlacementRebuild {
        /// The path of the export.
        export: PathBuf,
        /// The name of the data server.
        server: String,
        /// The cookie after which the page begins.
        after: u64,
        /// The folder that the labels name, if it is not that of the export.
        from: Option<PathBuf>,
        /// Names of data files that are left as they are.
        except: Vec<String>,
        /// True to change nothing.
        dry_run: bool,
    },
    /// Moves a file away from data servers that are being drained: begins the move, or asks for the
    /// state of one that is under way.
    PlacementMove {
        /// The path of the export.
        export: PathBuf,
        /// The handle of the file, from the answer to [`Self::PlacementFiles`].
        file: Vec<u8>,
    },
    /// Dials a data server that a placement does not have yet, and looks whether it could have it.
    PlacementTry {
        /// The path of the export.
        export: PathBuf,
        /// The name that the data server gets.
        name: String,
        /// Its host, with or without a port.
        address: String,
        /// The path that it exports, if it is a stock server.
        path: Option<String>,
    },
    /// Tells that a walk over all files has found none that names a data server that is being
    /// drained.
    PlacementDrained {
        /// The path of the export.
        export: PathBuf,
        /// The name of the data server.
        server: String,
    },
    /// Moves exports to a peer: begins the move, or asks for the state of one that is under way.
    Migrate {
        /// The paths of the exports.
        exports: Vec<PathBuf>,
        /// The name of the peer.
        to: String,
        /// For how many seconds calls of NFSv3 are forwarded to the peer afterwards.
        forward_seconds: Option<u64>,
        /// True to ask only whether the move is possible.
        dry_run: bool,
        /// A number that differs in each run of the command: none gets the result of another.
        run: u64,
    },
    /// Asks for the heads of the cluster and the exports that they serve.
    Cluster,
    /// Moves an export, and those with the same address, to another head of the cluster: begins the
    /// move, or asks for the state of one that is under way.
    ClusterMove {
        /// The path of the export.
        export: PathBuf,
        /// The name of the head.
        to: String,
        /// True to ask only whether the move is possible.
        dry_run: bool,
        /// A number that differs in each run of the command.
        run: u64,
    },
    /// Marks a head of the cluster as drained, so that its exports move to others.
    ClusterDrain {
        /// The name of the head.
        head: String,
    },
    /// Takes the mark of a drained head away.
    ClusterUndrain {
        /// The name of the head.
        head: String,
    },
    /// Cancels the move of exports that is under way.
    CancelMigration,
    /// Asks what the moves of exports to peers would change: begins to ask the peers for their
    /// load, or asks whether they have answered.
    Advise {
        /// The names of the peers; all peers if none is named.
        with: Vec<String>,
        /// A number that differs in each run of the command.
        run: u64,
    },
    /// Asks for the decisions about a call.
    Explain {
        /// The path of the export.
        export: PathBuf,
        /// The path of the file, as seen from the export.
        path: PathBuf,
        /// The client.
        from: IpAddr,
        /// The user in its credential.
        uid: u32,
        /// The primary group.
        gid: u32,
        /// Supplementary groups.
        groups: Vec<u32>,
        /// The operation to explain.
        operation: String,
    },
}

impl ControlRequest for Request {
    /// A reload looks hosts up and opens the exports; an explanation, or the list of exports for a
    /// client, may need to look up a name. A data server or a peer may not answer.
    fn patience_seconds(&self) -> u64 {
        match self {
            Self::Reload
            | Self::Exports { .. }
            | Self::PlacementFiles { .. }
            | Self::PlacementStored { .. }
            | Self::PlacementBytes { .. }
            | Self::PlacementTry { .. }
            | Self::PlacementLabels { .. }
            | Self::PlacementRebuild { .. }
            | Self::Migrate { .. }
            | Self::ClusterMove { .. }
            | Self::ClusterDrain { .. }
            | Self::ClusterUndrain { .. }
            | Self::Advise { .. }
            | Self::Explain { .. } => CONTROL_WORK_SECONDS,
            _ => CONTROL_ANSWER_SECONDS,
        }
    }
}

//! The arguments of the commands that ask a server as the owner of a key.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::KeyChoice;
use crate::common_arguments::Json;

/// The server to ask, and the key to prove.
#[derive(Debug, Args)]
pub(crate) struct Server {
    /// The server: HOST or HOST:PORT
    #[arg(long, value_name = "HOST", env = "COMITY_SERVER")]
    pub(crate) server: String,

    /// The server's key: as `comity key show` on the server prints it, or a file with its
    /// certificate [default: the key that this server had before]
    #[arg(long, value_name = "KEY")]
    pub(crate) server_key: Option<String>,

    #[command(flatten)]
    pub(crate) key: KeyChoice,
}

/// See [`crate::arguments::Command::Submit`].
#[derive(Debug, Args)]
pub(crate) struct Submit {
    /// Files of credentials; `-` or none reads from standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) server: Server,

    #[command(flatten)]
    pub(crate) json: Json,
}

/// See [`crate::arguments::Command::Grants`].
#[derive(Debug, Args)]
pub(crate) struct Grants {
    /// Show what you have given to others, instead of what you hold
    #[arg(long)]
    pub(crate) given: bool,

    /// Show the texts of the credentials, too
    #[arg(long)]
    pub(crate) texts: bool,

    /// Give these credentials up, by their digests
    #[arg(long, value_name = "DIGEST", conflicts_with_all = ["given", "texts"])]
    pub(crate) drop: Vec<String>,

    #[command(flatten)]
    pub(crate) server: Server,

    #[command(flatten)]
    pub(crate) json: Json,
}

/// See [`crate::arguments::Command::Revoke`].
#[derive(Debug, Args)]
pub(crate) struct Revoke {
    /// A digest as `comity grants` shows it, a file with a credential, or a public key
    #[arg(value_name = "WHAT")]
    pub(crate) what: String,

    /// Revoke as the administrator of the server on this machine, for everybody
    #[arg(long, conflicts_with = "server_key")]
    pub(crate) admin: bool,

    #[command(flatten)]
    pub(crate) state: crate::common_arguments::StateFolderArguments,

    /// The server: HOST or HOST:PORT
    #[arg(long, value_name = "HOST", env = "COMITY_SERVER", required_unless_present = "admin")]
    pub(crate) server: Option<String>,

    /// The server's key, as for `comity submit`
    #[arg(long, value_name = "KEY")]
    pub(crate) server_key: Option<String>,

    #[command(flatten)]
    pub(crate) key: KeyChoice,

    #[command(flatten)]
    pub(crate) json: Json,
}

/// See [`crate::arguments::Command::Fetch`].
#[derive(Debug, Args)]
pub(crate) struct Fetch {
    /// The path of a file or folder on the server
    #[arg(value_name = "PATH")]
    pub(crate) path: String,

    #[command(flatten)]
    pub(crate) server: Server,
}

/// See [`crate::arguments::Command::Why`].
#[derive(Debug, Args)]
pub(crate) struct Why {
    /// The path of a file or folder on the server
    #[arg(value_name = "PATH")]
    pub(crate) path: String,

    /// Only this operation: look, read, search, write, set_attributes, create or delete
    #[arg(long, value_name = "OPERATION", default_value = "")]
    pub(crate) op: String,

    /// Ask about this public key, a file or the key itself, as if it called from your address
    /// [default: your own key]
    #[arg(long, value_name = "KEY", required_if_eq("admin", "true"))]
    pub(crate) key: Option<String>,

    /// Ask as the administrator of the server on this machine, about any key
    #[arg(long, conflicts_with = "server_key")]
    pub(crate) admin: bool,

    /// With --admin, the address from which the key is taken to call
    #[arg(long, value_name = "ADDR", requires = "admin", default_value = "127.0.0.1")]
    pub(crate) from: std::net::IpAddr,

    #[command(flatten)]
    pub(crate) state: crate::common_arguments::StateFolderArguments,

    /// The server: HOST or HOST:PORT
    #[arg(long, value_name = "HOST", env = "COMITY_SERVER", required_unless_present = "admin")]
    pub(crate) server: Option<String>,

    /// The server's key, as for `comity submit`
    #[arg(long, value_name = "KEY")]
    pub(crate) server_key: Option<String>,

    /// File of your private key, as --key of `comity submit`
    #[arg(long, value_name = "FILE", env = "COMITY_KEY", value_hint = ValueHint::FilePath)]
    pub(crate) own_key: Option<PathBuf>,
}

/// See [`crate::arguments::Command::Whoami`].
#[derive(Debug, Args)]
pub(crate) struct Whoami {
    #[command(flatten)]
    pub(crate) server: Server,
}

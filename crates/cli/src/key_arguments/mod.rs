//! The arguments of the commands of keys and grants.

mod expiry;
pub(crate) mod server;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use comity_keynote::Rights;

pub(crate) use self::expiry::Expiry;
use crate::common_arguments::{Json, StateFolderArguments};

/// See [`crate::arguments::Command::Key`].
#[derive(Debug, Subcommand)]
pub(crate) enum Key {
    /// Make a key pair
    ///
    /// Writes the private key as PKCS#8 in PEM, readable by its owner only, and prints the public
    /// key. An existing file is never overwritten.
    New(KeyNew),
    /// Show a public key in all its forms
    ///
    /// Reads a public key, a private key or a certificate and prints the key as Comity, KeyNote and
    /// OpenSSH write it, and its fingerprint. Without FILE, shows the key that the other commands
    /// would use.
    Show(KeyShow),
    /// Copy a private key of OpenSSH or PEM into a file of Comity's
    Import(KeyImport),
}

/// See [`Key::New`].
#[derive(Debug, Args)]
pub(crate) struct KeyNew {
    /// File of the private key [default: comity/key.pem in the user's configuration folder]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,

    /// Algorithm of the key
    #[arg(long, value_enum, default_value_t = Algorithm::Ed25519)]
    pub(crate) algorithm: Algorithm,
}

/// Algorithms of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Algorithm {
    /// Ed25519
    Ed25519,
    /// ECDSA with the curve P-256
    P256,
}

/// See [`Key::Show`].
#[derive(Debug, Args)]
pub(crate) struct KeyShow {
    /// File of a public key, a private key or a certificate
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) json: Json,
}

/// See [`Key::Import`].
#[derive(Debug, Args)]
pub(crate) struct KeyImport {
    /// File of the private key to copy
    #[arg(value_name = "FROM", value_hint = ValueHint::FilePath)]
    pub(crate) from: PathBuf,

    /// File to write [default: comity/key.pem in the user's configuration folder]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
}

/// The private key that a command uses.
#[derive(Debug, Args)]
pub(crate) struct KeyChoice {
    /// File of the private key, or `agent` for a key of ssh-agent [default: comity/key.pem in the
    /// user's configuration folder, else ~/.ssh/id_ed25519]
    #[arg(long, value_name = "FILE", env = "COMITY_KEY", value_hint = ValueHint::FilePath)]
    pub(crate) key: Option<PathBuf>,
}

/// See [`crate::arguments::Command::Id`].
#[derive(Debug, Args)]
pub(crate) struct Id {
    /// A file or folder, on the server or in a mount of it
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) path: PathBuf,

    /// Look at the file in this process, however long that takes
    #[arg(long, hide = true)]
    pub(crate) here: bool,

    #[command(flatten)]
    pub(crate) json: Json,
}

/// See [`crate::arguments::Command::Grant`].
#[derive(Debug, Args)]
pub(crate) struct Grant {
    /// The file or folder to grant, on the server or in a mount of it, or its id
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) path: PathBuf,

    /// The public key that gets the rights: a file, or the key itself
    #[arg(long, value_name = "KEY")]
    pub(crate) to: String,

    /// Rights: r read and list, w write, x search and execute, c create in, d delete from, a change
    /// attributes
    #[arg(long, value_name = "RIGHTS", value_parser = rights)]
    pub(crate) rights: Rights,

    /// When the grant ends: a duration such as 30d, 12h or 45m, or a moment such as
    /// 2027-01-31T12:00:00Z
    #[arg(long, value_name = "WHEN", value_parser = Expiry::parse)]
    pub(crate) expires: Option<Expiry>,

    /// The key that gets the rights may not hand them on
    #[arg(long = "final")]
    pub(crate) is_final: bool,

    /// The grant holds only through the export of this path on the server
    #[arg(long, value_name = "EXPORT")]
    pub(crate) export: Option<String>,

    /// A line of text that is signed with the grant
    #[arg(long, value_name = "TEXT")]
    pub(crate) comment: Option<String>,

    #[command(flatten)]
    pub(crate) key: KeyChoice,
}

/// See [`crate::arguments::Command::Account`].
#[derive(Debug, Subcommand)]
pub(crate) enum Account {
    /// Bind a public key to a user of this machine
    ///
    /// Clients that prove the key act as this user, whatever ids they claim, and the user may grant
    /// rights with the key.
    Bind(AccountBind),
    /// Take the account of a key away; grants that rest on it end at once
    Unbind(AccountUnbind),
    /// List the keys that are bound to users
    List(AccountList),
}

/// See [`Account::Bind`].
#[derive(Debug, Args)]
pub(crate) struct AccountBind {
    /// The name of the user
    #[arg(value_name = "USER")]
    pub(crate) user: String,

    /// The public key: a file, or the key itself
    #[arg(value_name = "KEY")]
    pub(crate) key: String,

    #[command(flatten)]
    pub(crate) state: StateFolderArguments,
}

/// See [`Account::Unbind`].
#[derive(Debug, Args)]
pub(crate) struct AccountUnbind {
    /// The public key: a file, or the key itself
    #[arg(value_name = "KEY")]
    pub(crate) key: String,

    #[command(flatten)]
    pub(crate) state: StateFolderArguments,
}

/// See [`Account::List`].
#[derive(Debug, Args)]
pub(crate) struct AccountList {
    #[command(flatten)]
    pub(crate) state: StateFolderArguments,

    #[command(flatten)]
    pub(crate) json: Json,
}

fn rights(text: &str) -> Result<Rights, String> {
    text.parse::<Rights>().map_err(|why| why.to_string())
}

//! The arguments of the heads of a cluster.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use crate::common_arguments::{Json, StateFolderArguments};

/// The cluster in which a server is a head.
#[derive(Debug, Clone, Args)]
pub(crate) struct ClusterArguments {
    /// Be a head of the cluster of these members of etcd: several servers with one configuration
    /// and one `handle.key` serve the exports of one shared file system, each export by one of them
    /// at a time. If one fails, others serve its exports
    #[arg(long, value_name = "URL,...", value_delimiter = ',',
          conflicts_with_all = ["from", "data_server", "in_memory"])]
    pub(crate) cluster: Vec<String>,

    /// The file with the authorities, in PEM, that certify the members of etcd (`https://`)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) etcd_ca: Option<PathBuf>,

    /// The certificate that this head shows to etcd, in PEM
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "etcd_key")]
    pub(crate) etcd_cert: Option<PathBuf>,

    /// The private key of that certificate, in PEM
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "etcd_cert")]
    pub(crate) etcd_key: Option<PathBuf>,

    /// The name or address of this head, to which the other heads refer clients
    #[arg(long, value_name = "NAME", value_parser = head)]
    pub(crate) head: Option<String>,

    /// Seconds of silence after which the other heads take over the exports of this one. The server
    /// ends when it could not reach etcd for three quarters of this time
    #[arg(long, value_name = "SECONDS", default_value_t = 10,
          value_parser = clap::value_parser!(u32).range(3..=300))]
    pub(crate) head_lease_seconds: u32,
}

/// See [`crate::arguments::Command::Cluster`].
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Show the heads of the cluster, and the exports with their heads
    ///
    /// Asks the head that runs with the state folder. Exits with 1 if that server is no head.
    Status(ClusterStatus),
    /// Move an export to another head, with the state of its clients
    ///
    /// Asks the head that serves the export, which runs with the state folder. Clients keep their
    /// opens, locks and delegations; they wait meanwhile, for less than a second. All exports with
    /// the same `address=` move together. If the move fails, the exports stay where they are.
    Move(ClusterMove),
    /// Move all exports of a head to others, and keep exports away from it
    ///
    /// Asks any head, which runs with the state folder. Clients keep their opens, locks and
    /// delegations, as when a single export moves. The head is drained until `comity cluster
    /// undrain`, also after a restart: it takes no export unless all heads that are up are drained.
    /// Exports that do not move are tried again all the time. Exits with 1 if some have stayed.
    Drain(ClusterDrain),
    /// Let a drained head take exports again
    ///
    /// Asks any head, which runs with the state folder. Exports that have moved stay where they
    /// are: `comity cluster move` moves them back.
    Undrain(ClusterUndrain),
    /// Give this host the addresses of the exports that its head serves
    ///
    /// Runs as root until it is stopped, beside the head. The addresses are those of the option
    /// `address=`. Neighbours are told when one has come here. If this program or the head ends,
    /// the host loses the addresses within seconds.
    Addresses(ClusterAddresses),
}

/// See [`ClusterCommand::Move`].
#[derive(Debug, Clone, Args)]
pub(crate) struct ClusterMove {
    /// The folder of the export
    #[arg(value_name = "EXPORT", value_hint = ValueHint::DirPath)]
    pub(crate) export: PathBuf,
    /// The name of the head that is to serve it
    #[arg(long, value_name = "HEAD", value_parser = head)]
    pub(crate) to: String,
    /// Ask both heads whether the export could be moved, and move nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) state: StateFolderArguments,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// See [`ClusterCommand::Drain`].
#[derive(Debug, Clone, Args)]
pub(crate) struct ClusterDrain {
    /// The name of the head
    #[arg(value_name = "HEAD", value_parser = head)]
    pub(crate) head: String,
    /// Do not wait until the exports have moved
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Seconds to wait while no export moves
    #[arg(long, value_name = "SECONDS", default_value_t = 120, conflicts_with = "no_wait",
          value_parser = clap::value_parser!(u64).range(1..=86400))]
    pub(crate) wait_seconds: u64,
    #[command(flatten)]
    pub(crate) state: StateFolderArguments,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// See [`ClusterCommand::Undrain`].
#[derive(Debug, Args)]
pub(crate) struct ClusterUndrain {
    /// The name of the head
    #[arg(value_name = "HEAD", value_parser = head)]
    pub(crate) head: String,
    #[command(flatten)]
    pub(crate) state: StateFolderArguments,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// See [`ClusterCommand::Addresses`].
#[derive(Debug, Args)]
pub(crate) struct ClusterAddresses {
    /// The network device that gets the addresses
    #[arg(long, value_name = "DEVICE", value_parser = device)]
    pub(crate) device: String,
    #[command(flatten)]
    pub(crate) state: StateFolderArguments,
}

/// See [`ClusterCommand::Status`].
#[derive(Debug, Args)]
pub(crate) struct ClusterStatus {
    #[command(flatten)]
    pub(crate) state: StateFolderArguments,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// Takes the name of a head, as referrals and etcd have it.
pub(crate) fn head(text: &str) -> Result<String, String> {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    let is_name = (1..=255).contains(&text.len()) && text.bytes().all(is_letter);
    if is_name || text.parse::<IpAddr>().is_ok() {
        return Ok(text.to_owned());
    }
    Err("expected the name or address of a host".to_owned())
}

/// Takes the name of a network device.
fn device(text: &str) -> Result<String, String> {
    let is_letter = |byte: u8| byte.is_ascii_graphic() && byte != b'/';
    match (1..=15).contains(&text.len()) && text.bytes().all(is_letter) && !text.starts_with('-') {
        true => Ok(text.to_owned()),
        false => Err("expected the name of a network device, such as eth0".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_has_the_name_or_address_of_a_host() {
        for good in ["a", "a.example.org", "192.0.2.1", "2001:db8::1"] {
            assert_eq!(head(good), Ok(good.to_owned()));
        }
        for bad in ["", "a b", "a/b", "[2001:db8::1]", &"a".repeat(256)] {
            assert!(head(bad).is_err(), "{bad}");
        }
    }
}

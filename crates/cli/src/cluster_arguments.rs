//! The arguments of the heads of a cluster.

use std::net::IpAddr;

use clap::{Args, Subcommand};

use crate::common_arguments::{Json, State};

/// The cluster in which a server is a head.
#[derive(Debug, Clone, Args)]
pub(crate) struct ClusterArguments {
    /// Be a head of the cluster of these members of etcd: several servers with one configuration
    /// and one `handle.key` serve the exports of one shared file system, each export by one of them
    /// at a time. If one fails, others serve its exports
    #[arg(long, value_name = "URL,...", value_delimiter = ',',
          conflicts_with_all = ["from", "data_server", "in_memory"])]
    pub(crate) cluster: Vec<String>,

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
}

/// See [`ClusterCommand::Status`].
#[derive(Debug, Args)]
pub(crate) struct ClusterStatus {
    #[command(flatten)]
    pub(crate) state: State,
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

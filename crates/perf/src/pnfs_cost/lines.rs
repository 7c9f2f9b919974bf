//! Network namespaces at the end of lines of their own, whose speed is limited.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::placed_site::StorePlace;

/// Bytes of a packet: with those of 1,500 bytes, headers alone take more than 4 % of a line.
const PACKET_BYTES: &str = "9000";
/// Bytes that may be sent at once, and the longest time that they wait.
const BURST: [&str; 4] = ["burst", "256kb", "latency", "50ms"];

/// A pair of interfaces, of which one is alone in a network namespace. Both ends of it exist as
/// long as the network namespace of this program.
#[derive(Debug)]
pub(super) struct LimitedLine {
    number: u8,
}

impl LimitedLine {
    /// Makes lines without a limit.
    ///
    /// # Errors
    /// This takes root, the programs `ip` and `tc`, and a network namespace of this program.
    pub(super) fn make(count: u8) -> Result<Vec<Self>> {
        (1..=count).map(Self::one).collect()
    }

    fn one(number: u8) -> Result<Self> {
        let line = Self { number };
        let (namespace, near) = (line.namespace(), line.near());
        let [here, there] = [line.here(), line.there()].map(|address| format!("{address}/24"));
        let inside = ["-n", &namespace];
        ip(&["netns", "add", &namespace])?;
        ip(&["link", "add", &near, "type", "veth", "peer", "name", "far", "netns", &namespace])?;
        ip(&["address", "add", &here, "dev", &near])?;
        ip(&["link", "set", &near, "mtu", PACKET_BYTES, "up"])?;
        ip(&[&inside[..], &["address", "add", &there, "dev", "far"]].concat())?;
        ip(&[&inside[..], &["link", "set", "far", "mtu", PACKET_BYTES, "up"]].concat())?;
        ip(&[&inside[..], &["link", "set", "lo", "up"]].concat())?;
        Ok(line)
    }

    /// Limits both directions, each to so many bytes a second, by the token bucket filter of the
    /// kernel.
    ///
    /// # Errors
    /// The kernel has no such filter.
    pub(super) fn limit(&self, bytes_per_second: u64) -> Result<()> {
        let rate = format!("{}bit", bytes_per_second * 8);
        let filter = |command: &mut Command, interface: &str| {
            command.args(["qdisc", "replace", "dev", interface, "root", "tbf", "rate", &rate]);
            run(command.args(BURST))
        };
        filter(&mut Command::new("tc"), &self.near())?;
        filter(Command::new("tc").args(["-n", &self.namespace()]), "far")
    }

    /// The place of a data server at the end of the line.
    pub(super) fn store(&self, port: u16) -> StorePlace {
        let address = SocketAddr::new(self.there(), port);
        StorePlace { address, metadata_server: self.here(), namespace: Some(self.namespace()) }
    }

    /// Does something in a thread in the namespace at the end of the line.
    ///
    /// # Errors
    /// If it fails, or the namespace cannot be entered.
    pub(super) fn inside<T: Send>(&self, act: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        let path = format!("/run/netns/{}", self.namespace());
        let enter = move || {
            let namespace = File::open(&path).with_context(|| path.clone())?;
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            act()
        };
        let done = std::thread::scope(|scope| scope.spawn(enter).join());
        done.unwrap_or_else(|_| anyhow::bail!("a thread in a namespace has ended"))
    }

    /// The address of the far end.
    pub(super) const fn there(&self) -> IpAddr {
        self.address(2)
    }

    const fn here(&self) -> IpAddr {
        self.address(1)
    }

    /// An address for tests of benchmarks (RFC 2544).
    const fn address(&self, host: u8) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(198, 18, self.number, host))
    }

    fn namespace(&self) -> String {
        format!("store{}", self.number)
    }

    fn near(&self) -> String {
        format!("line{}", self.number)
    }
}

fn ip(arguments: &[&str]) -> Result<()> {
    run(Command::new("ip").args(arguments))
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("run {command:?}"))?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}

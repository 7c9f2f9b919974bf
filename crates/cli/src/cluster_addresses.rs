//! `comity cluster addresses`: this host has the addresses of the exports that its head serves.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use comity_server::control::Request;
use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::sys::socket::SockaddrStorage;
use serde_json::Value;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::address_announcement::announce;
use crate::cluster_arguments::ClusterAddresses;
use crate::common_arguments::StateFolderArguments;
use crate::control_client;
use crate::stdout::say;

/// Time between two looks at the head.
const PAUSE: Duration = Duration::from_millis(250);

/// Time between two renewals of an address.
const RENEWAL: Duration = Duration::from_secs(1);

/// Seconds after which the kernel removes an address that is not renewed: this program has failed.
const LIFETIME_SECONDS: &str = "4";

/// The number of times that neighbours are told of an address. A message may be lost.
const ANNOUNCEMENTS: u32 = 5;

/// The state of an address that this host has.
struct Held {
    renewed: Instant,
    announcements_left: u32,
}

/// Gives and takes addresses until SIGINT or SIGTERM.
///
/// # Errors
/// This is not root, there is no such device, or `ip` is missing.
pub(crate) fn follow(typed: ClusterAddresses) -> Result<ExitCode> {
    ensure!(rustix::process::geteuid().is_root(), "addresses are given by root only");
    let end = Arc::<AtomicBool>::default();
    for signal in [SIGINT, SIGTERM] {
        flag::register(signal, Arc::clone(&end))?;
    }
    let mut host = Host { device: typed.device, held: BTreeMap::new() };
    ip(&["link", "show", "dev", &host.device])?;
    let mut reason = String::new();
    while !end.load(Ordering::Relaxed) {
        let (here, elsewhere) = told(&typed.state).unwrap_or_else(|why| {
            note(&mut reason, format!("{why:#}"));
            Default::default()
        });
        if let Err(why) = host.follow(&here, &elsewhere) {
            note(&mut reason, format!("{why:#}"));
        }
        thread::sleep(PAUSE);
    }
    host.follow(&[], &[]).map(|()| ExitCode::SUCCESS)
}

/// Says why addresses are not here, once.
fn note(last: &mut String, reason: String) {
    if *last != reason {
        eprintln!("comity: {reason}");
        *last = reason;
    }
}

/// Returns the addresses that belong here, and those that do not, as the head says.
fn told(state: &StateFolderArguments) -> Result<(Vec<IpAddr>, Vec<IpAddr>)> {
    let answer = control_client::ask(state.clone(), &Request::Cluster)?;
    let rows = answer["addresses"].as_array();
    let rows = rows.context("this head has another version: it tells no addresses")?;
    let (here, elsewhere): (Vec<&Value>, Vec<&Value>) =
        rows.iter().partition(|row| row["is_here"] == true);
    let addresses = |rows: Vec<&Value>| {
        let texts = rows.into_iter().filter_map(|row| row["address"].as_str());
        let parsed = |text: &str| text.parse::<IpAddr>().with_context(|| format!("{text:?}"));
        texts.map(parsed).collect::<Result<Vec<_>>>()
    };
    Ok((addresses(here)?, addresses(elsewhere)?))
}

/// The device of this host that gets the addresses.
struct Host {
    device: String,
    held: BTreeMap<IpAddr, Held>,
}

impl Host {
    /// Has the addresses `here` and no others. Those `elsewhere` may be left of an earlier run.
    fn follow(&mut self, here: &[IpAddr], elsewhere: &[IpAddr]) -> Result<()> {
        let leaving = self.held.keys().filter(|address| !here.contains(address));
        for address in leaving.copied().collect::<Vec<_>>() {
            self.remove(address)?;
            self.held.remove(&address);
            say(format!("{address} is not here any more"));
        }
        for address in here {
            self.hold(*address)?;
        }
        elsewhere.iter().try_for_each(|address| self.remove(*address))
    }

    /// Gives the host an address, or renews it.
    fn hold(&mut self, address: IpAddr) -> Result<()> {
        if self.held.get(&address).is_some_and(|held| held.renewed.elapsed() < RENEWAL) {
            return Ok(());
        }
        let renewed = Instant::now();
        let lifetime = ["valid_lft", LIFETIME_SECONDS, "preferred_lft", LIFETIME_SECONDS];
        self.address("replace", address, &lifetime)?;
        let held = self.held.entry(address).or_insert_with(|| {
            say(format!("{address} is here"));
            Held { renewed, announcements_left: ANNOUNCEMENTS }
        });
        held.renewed = renewed;
        if held.announcements_left > 0 {
            held.announcements_left -= 1;
            announce(&self.device, address)?;
        }
        Ok(())
    }

    /// Takes an address from the device, if it has it.
    fn remove(&self, address: IpAddr) -> Result<()> {
        match self.has(address)? {
            true => self.address("del", address, &[]),
            false => Ok(()),
        }
    }

    /// Returns whether the device has an address.
    fn has(&self, address: IpAddr) -> Result<bool> {
        let all = getifaddrs().context("cannot read the addresses of this machine")?;
        // A label of an IPv4 address follows the name of the device.
        let is_own =
            |it: &InterfaceAddress| it.interface_name.split(':').next() == Some(&self.device);
        Ok(all.filter(is_own).filter_map(|it| ip_of(&it.address?)).any(|own| own == address))
    }

    fn address(&self, verb: &str, address: IpAddr, more: &[&str]) -> Result<()> {
        // Other heads are asked by etcd whether an address is used, and not by neighbour discovery.
        let (whole, nodad) = (alone(address), address.is_ipv6().then_some("nodad"));
        let given = ["address", verb, &whole, "dev", &self.device].into_iter();
        let nodad = nodad.filter(|_| verb == "replace");
        ip(&given.chain(more.iter().copied()).chain(nodad).collect::<Vec<_>>())
    }
}

fn ip_of(address: &SockaddrStorage) -> Option<IpAddr> {
    let four = address.as_sockaddr_in().map(|it| it.ip().into());
    four.or_else(|| address.as_sockaddr_in6().map(|it| it.ip().into()))
}

/// The address with a prefix of its whole length: the host has no route by it.
fn alone(address: IpAddr) -> String {
    format!("{address}/{}", if address.is_ipv4() { 32 } else { 128 })
}

/// Runs `ip` of iproute2.
fn ip(arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("ip");
    let done = command.args(arguments).stdin(Stdio::null()).output();
    let done = done.context("cannot run ip (Debian package iproute2)")?;
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "ip {}: {}", arguments.join(" "), said.trim());
    Ok(())
}

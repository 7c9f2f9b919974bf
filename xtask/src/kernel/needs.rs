//! Programs and devices that guests need.

use std::path::Path;

use super::network::Network;

/// Programs a test or its guests call.
const PROGRAMS: &[&str] = &[
    "ip",
    "setpriv",
    "unshare",
    "nsenter",
    "mount.nfs",
    "modprobe",
    "git",
    "sqlite3",
    "gcc",
    "make",
    "tar",
    "sha256sum",
    "python3",
];

/// The reason why guests cannot run on this machine, if there is one.
pub(super) fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("they need root, for network namespaces".into());
    }
    if !Path::new("/dev/net/tun").exists() {
        return Some("no /dev/net/tun for the guests' network".into());
    }
    let missing: Vec<&str> = PROGRAMS.iter().copied().filter(|name| !is_there(name)).collect();
    if !missing.is_empty() {
        return Some(format!("not installed: {}", missing.join(", ")));
    }
    // A container may have root without the right to make networks.
    let tried = Network::new().and_then(|network| network.tap(1));
    tried.err().map(|error| format!("{error:#}"))
}

/// Returns whether a guest, whose PATH has the standard folders, finds a program.
fn is_there(program: &str) -> bool {
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
        .iter()
        .any(|folder| Path::new(folder).join(program).exists())
}

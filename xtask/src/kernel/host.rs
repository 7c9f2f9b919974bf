//! A host of a test beside the server: it has an address of its own on the test's network, and
//! folders /srv, /var/lib and /var/log of its own.
//!
//! It consists of namespaces without a name, as [`Network`] does, and all its processes end with
//! it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Result, ensure};

use super::network::{Network, listens};

/// Folders that each host has of its own.
const OWN_FOLDERS: [&str; 3] = ["/srv", "/var/lib", "/var/log"];

/// The host; it ends when this is dropped.
pub(super) struct Host {
    holder: Child,
}

impl Host {
    /// Makes a host whose own folders are below `folder`.
    ///
    /// # Errors
    /// If a namespace, its device or a folder cannot be made.
    pub(super) fn new(network: &Network, number: u16, folder: &Path) -> Result<Self> {
        let mut script = "ip link set lo up".to_owned();
        for own in OWN_FOLDERS {
            let source = own_folder(folder, own);
            fs::create_dir_all(&source)?;
            script += &format!(" && mount --bind '{}' {own}", source.display());
        }
        script += " && echo up && exec sleep infinity";
        let namespaces = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
        let start = [&["unshare"], &namespaces[..], &["sh", "-c", &script]].concat();
        let mut holder = network.command(&start).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        if let Some(out) = holder.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        let host = Self { holder };
        ensure!(line == "up\n", "cannot make a host with namespaces of its own");
        host.connect(network, number)?;
        Ok(host)
    }

    /// Gives the host a device on the bridge of the network.
    fn connect(&self, network: &Network, number: u16) -> Result<()> {
        let (device, process) = (format!("h{number}"), self.holder.id());
        let outside = format!(
            "ip link add {device} type veth peer name eth0 netns {process} && \
             ip link set {device} master br0 up"
        );
        let inside = format!("ip addr add {}/24 dev eth0 && ip link set eth0 up", address(number));
        for mut command in
            [network.command(&["sh", "-c", &outside]), self.command(&["sh", "-c", &inside])]
        {
            ensure!(command.status()?.success(), "cannot connect host {number}");
        }
        Ok(())
    }

    /// Makes a command that runs on the host.
    pub(super) fn command(&self, program: &[&str]) -> Command {
        let namespace =
            |option: &str, name: &str| format!("--{option}=/proc/{}/ns/{name}", self.holder.id());
        let mut command = Command::new("nsenter");
        command
            .arg(namespace("net", "net"))
            .arg(namespace("mount", "mnt"))
            .arg(namespace("pid", "pid_for_children"))
            .args(program)
            .stdin(Stdio::null());
        command
    }

    /// Returns whether a program listens on a TCP port of the host.
    pub(super) fn listens(&self, port: u16) -> bool {
        listens(self.holder.id(), port)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // This fails only if the process has ended.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// The address of a host.
pub(super) fn address(number: u16) -> String {
    format!("10.77.0.{}", number + 21)
}

/// The folder of this machine that a host sees as its own folder of this path.
pub(super) fn own_folder(folder: &Path, path: &str) -> PathBuf {
    folder.join(path.trim_start_matches('/'))
}

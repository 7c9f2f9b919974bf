//! The text that a server prints when it starts: the exports, the identities of callers, and how a
//! client mounts them.

use std::net::{IpAddr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use comity_credential::ChannelKind;
use comity_export::{Client, Export, Plan, Rules, Squash};
use serde_json::{Value, json};

use crate::state_folder::WEB_TOKEN;
use crate::tls::Tls;
use crate::versions::Spoken;

/// The facts in the banner.
pub(crate) struct StartupBanner<'a> {
    /// The plan in force.
    pub(crate) plan: &'a Plan,
    /// True if all exports are read-only, regardless of their rules.
    pub(crate) read_only: bool,
    /// The addresses the server listens on.
    pub(crate) addresses: &'a [SocketAddr],
    /// The NFS versions that are enabled.
    pub(crate) spoken: Spoken,
    /// The address of the metrics page.
    pub(crate) metrics: Option<SocketAddr>,
    /// The address of the web page.
    pub(crate) web: Option<SocketAddr>,
    /// The state folder.
    pub(crate) state_folder: &'a Path,
    /// The uid of the server process.
    pub(crate) user: u32,
    /// True if all callers act with that uid.
    pub(crate) is_one_user: bool,
    /// TLS, if it is on.
    pub(crate) tls: Option<&'a Tls>,
}

impl StartupBanner<'_> {
    /// Returns the banner as text for people.
    pub(crate) fn text(&self) -> String {
        let mut lines = Vec::new();
        for export in self.plan.exports() {
            lines.push(format!("Serving {}", export.path().display()));
            let clients = export.clients().iter();
            lines.extend(
                clients.map(|(client, rules)| {
                    format!("  to {client}: {}", terms(rules, self.read_only))
                }),
            );
        }
        let addresses: Vec<String> = self.addresses.iter().map(ToString::to_string).collect();
        let (addresses, spoken) = (addresses.join(", "), self.spoken);
        lines.push(format!("Listening at {addresses} (NFS {spoken}, TCP)"));
        if let Some(tls) = self.tls {
            let (key, certificate) = (tls.shown(), tls.certificate().display());
            let key = key.public();
            lines.push(format!(
                "TLS for clients that ask for it: key {key}, certificate {certificate}"
            ));
        }
        lines.extend(self.callers().lines().map(str::to_owned));
        lines.push("Mount it on a Linux client, as root, on a folder of your choice:".into());
        let mounts = self.plan.exports().iter().map(|export| format!("  {}", self.mount(export)));
        lines.extend(mounts);
        if let Some(metrics) = self.metrics {
            lines.push(format!("Metrics at http://{metrics}/metrics"));
        }
        if let Some(web) = self.web {
            let token = self.state_folder.join(WEB_TOKEN);
            lines.push(format!("Web page at http://{web}/, its token in {}", token.display()));
        }
        lines
            .push(format!("State in {}; stop with Ctrl-C or SIGTERM", self.state_folder.display()));
        lines.join("\n")
    }

    /// Returns the banner as one line of JSON.
    pub(crate) fn json(&self) -> Value {
        let exports: Vec<Value> = self.plan.exports().iter().map(|e| self.export(e)).collect();
        json!({
            "exports": exports,
            "read_only": self.read_only,
            "listen": self.addresses,
            "port": self.port(),
            "callers": if self.is_one_user { "the server's user" } else { "their own ids" },
            "user": self.user,
            "tls": self.tls.map(Tls::json),
            "metrics": self.metrics.map(|metrics| format!("http://{metrics}/metrics")),
            "web": self.web.map(|web| format!("http://{web}/")),
            "state_dir": self.state_folder.display().to_string(),
            "process": std::process::id(),
        })
    }

    fn export(&self, export: &Export) -> Value {
        let client = |client: &Client, rules: &Rules| {
            let (client, options) = (client.to_string(), rules.to_string());
            json!({ "client": client, "options": options })
        };
        let clients: Vec<Value> =
            export.clients().iter().map(|(c, rules)| client(c, rules)).collect();
        json!({
            "path": export.path().display().to_string(),
            "clients": clients,
            "mount": self.mount(export),
        })
    }

    fn callers(&self) -> String {
        match self.is_one_user {
            false => "Callers act under their own user and group ids; the file system decides \
                      what they may do."
                .into(),
            true => format!(
                "All callers act with the rights of user {}, who runs the server: whoever can \
                 connect\ncan do with these files what that user can. To tell callers apart, run \
                 it as root.",
                self.user
            ),
        }
    }

    fn port(&self) -> u16 {
        self.addresses.first().map_or(0, SocketAddr::port)
    }

    /// The shell command that mounts an export.
    fn mount(&self, export: &Export) -> String {
        let (host, port) = (self.host(), self.port());
        let path = quoted(export.path());
        let version = self.spoken.highest();
        let of_three = if version == "3" {
            format!(",mountport={port},mountproto=tcp,nolock")
        } else {
            String::new()
        };
        let secured = secured(export);
        format!(
            "mount -t nfs -o vers={version},proto=tcp,port={port}{of_three}{secured} {host}:{path} \
             /mnt"
        )
    }

    /// Returns a host name or address by which clients can reach the server.
    fn host(&self) -> String {
        match self.addresses.first().map(SocketAddr::ip) {
            Some(IpAddr::V4(address)) if !address.is_unspecified() => address.to_string(),
            Some(IpAddr::V6(address)) if !address.is_unspecified() => format!("[{address}]"),
            _ => rustix::system::uname().nodename().to_string_lossy().into_owned(),
        }
    }
}

/// Describes rules in words.
fn terms(rules: &Rules, read_only: bool) -> String {
    let access = if rules.read_only || read_only { "read only" } else { "read and write" };
    let (uid, gid) = (rules.ids.anonymous.uid, rules.ids.anonymous.gid);
    let squash = match rules.ids.squash {
        Squash::None => "root stays root".to_owned(),
        Squash::Root => format!("root becomes {uid}:{gid}"),
        Squash::All => format!("everybody becomes {uid}:{gid}"),
    };
    let ports = if rules.secure { "ports below 1024 only" } else { "any port" };
    let maps = !rules.ids.users.is_empty() || !rules.ids.groups.is_empty();
    let maps = if maps { ", ids mapped" } else { "" };
    let cloaks = if rules.cloak.is_empty() { "" } else { ", some files hidden" };
    format!("{access}, {squash}, {ports}{maps}{cloaks}")
}

/// Returns the mount option for the channel that asks least of a client; nothing if that is a plain
/// one.
fn secured(export: &Export) -> String {
    let of_clients = export.clients().iter().filter_map(|(_, rules)| rules.channels.least());
    match of_clients.min() {
        None | Some(ChannelKind::Plain) => String::new(),
        Some(kind) => format!(",xprtsec={}", kind.name()),
    }
}

/// Quotes a path for a shell.
fn quoted(path: &Path) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+@%:=,".contains(byte);
    let text = path.display().to_string();
    match path.as_os_str().as_bytes().iter().all(plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comity_export::Ids;

    #[test]
    fn paths_are_quoted_for_a_shell_only_where_needed() {
        assert_eq!(quoted(Path::new("/srv/data-1.2")), "/srv/data-1.2");
        assert_eq!(quoted(Path::new("/a b")), "'/a b'");
        assert_eq!(quoted(Path::new("/it's")), r"'/it'\''s'");
    }

    #[test]
    fn rules_are_described_in_words() {
        let rules = Rules { read_only: false, secure: false, ..Rules::default() };
        assert_eq!(terms(&rules, false), "read and write, root becomes 65534:65534, any port");
        assert_eq!(terms(&rules, true), "read only, root becomes 65534:65534, any port");
        let ids = Ids { squash: Squash::None, ..Ids::default() };
        let rules = Rules { ids, ..Rules::default() };
        assert_eq!(terms(&rules, false), "read only, root stays root, ports below 1024 only");
    }
}

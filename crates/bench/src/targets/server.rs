use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use comity_proto::{mount, portmap};
use comity_remote::nfs4::Session;
use comity_remote::rpc::{Caller, RESULTS_AT, dial};
use comity_xdr::Decoder;

use super::counters;
use super::nfs::NfsFiles;
use super::nfs4::Nfs4Files;
use crate::suite::Version;
use crate::suite::{Files, Target, TargetKind, TargetRecord, TargetServer};

/// The port of NFS (RFC 8881, 2.9.1).
const PORT: u16 = 2049;

/// A server that is reached by protocol.
#[derive(Debug)]
pub struct NfsTarget {
    pub(super) name: String,
    pub(super) address: SocketAddr,
    pub(super) root: Vec<u8>,
    /// The version of NFS.
    pub(super) version: Version,
    /// The uid and gid of the calls.
    pub(super) who: (u32, u32),
    pub(super) server: Option<String>,
    pub(super) durability: String,
    /// The address of the metrics page, if the target is a comity server started by the harness.
    pub(super) metrics: Option<SocketAddr>,
    /// The resources that end with the target: the server's process, its folder.
    pub(super) kept: Option<super::peer::StartedTarget>,
}

impl NfsTarget {
    /// Mounts `nfs://host[:port]/export`. For version 3 MOUNT is asked for at the same port, and if
    /// it is not there, where the host's portmapper says; in 4.1 the path leads there from the
    /// server's root.
    ///
    /// # Errors
    /// No such host, no server, no such export, or not for us.
    pub fn open((url, name): (&str, &str), version: Version, who: (u32, u32)) -> Result<Self> {
        let (host, path) = parse(url)?;
        let address = resolve(&host)?;
        let root = enter((address, version), who, &path).with_context(|| name.to_owned())?;
        Ok(Self {
            name: name.to_owned(),
            address,
            root,
            version,
            who,
            server: None,
            durability: "the server's: what it says of COMMIT".into(),
            metrics: None,
            kept: None,
        })
    }
}

impl Target for NfsTarget {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> TargetKind {
        TargetKind::Protocol
    }

    fn record(&self) -> TargetRecord {
        let user = format!("{}:{}", self.who.0, self.who.1);
        let protocol = format!("NFSv{} over TCP", self.version);
        let settings = [("protocol", protocol.as_str()), ("caller", user.as_str())];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        TargetRecord {
            name: self.name.clone(),
            kind: TargetKind::Protocol,
            server: self.server.clone(),
            mount: None,
            durability: self.durability.clone(),
            sync_seconds: None,
            cache_reset: String::new(),
            settings: BTreeMap::from(settings),
        }
    }

    fn files(&self) -> Result<Box<dyn Files>> {
        let (address, root) = (self.address, self.root.as_slice());
        Ok(match self.version {
            Version::Three => Box::new(NfsFiles::connect(address, root, self.who)?),
            Version::FourOne => Box::new(Nfs4Files::connect(address, root, self.who)?),
        })
    }

    fn server(&self) -> Option<TargetServer<'_>> {
        let (user, group) = self.who;
        let version = self.version;
        Some(TargetServer { address: self.address, root: &self.root, version, user, group })
    }

    fn has_locks(&self) -> bool {
        self.version == Version::FourOne
    }

    fn calls(&self) -> Result<Option<BTreeMap<String, u64>>> {
        self.metrics.map(counters::of_comity).transpose()
    }

    fn check(&self) -> Result<()> {
        match &self.kept {
            Some(kept) => kept.check().with_context(|| self.name.clone()),
            None => Ok(()),
        }
    }
}

/// Host with port, and path, of `nfs://host[:port]/path`.
pub(super) fn parse(url: &str) -> Result<(String, String)> {
    let rest = url.strip_prefix("nfs://").unwrap_or(url);
    let split = rest.split_once('/').filter(|(host, _)| !host.is_empty());
    let (host, path) =
        split.with_context(|| format!("{url}: a server is named as nfs://host[:port]/export"))?;
    // Colons in brackets belong to an IPv6 address.
    let bracketed = host.starts_with('[');
    let named = if bracketed { host.find(']').map_or(host.len(), |end| end + 1) } else { 0 };
    let host = match host[named..].split_once(':') {
        None => format!("{host}:{PORT}"),
        Some((_, port)) if port.parse::<u16>().is_ok() => host.to_owned(),
        Some((_, port)) if port.contains(':') && !bracketed => {
            bail!("{url}: an address of IPv6 stands in brackets: nfs://[{host}]/{path}")
        }
        Some((_, port)) => bail!("{url}: `{port}` is no port: from 1 to 65535, or leave it out"),
    };
    Ok((host, format!("/{path}")))
}

/// The first of a host's addresses that accepts a connection: `localhost` may have two.
fn resolve(host: &str) -> Result<SocketAddr> {
    let looked_up = || format!("look up {host}: is the name right?");
    let addresses: Vec<_> = host.to_socket_addrs().with_context(looked_up)?.collect();
    let answers = |address: &&SocketAddr| addresses.len() > 1 && dial(**address).is_ok();
    let first = addresses.iter().find(answers).or(addresses.first());
    first.copied().with_context(|| format!("{host} has no address"))
}

/// The handle of an export.
pub(super) fn enter(
    (address, version): (SocketAddr, Version),
    who: (u32, u32),
    path: &str,
) -> Result<Vec<u8>> {
    match version {
        Version::Three => mount(address, who, Path::new(path)),
        Version::FourOne => {
            let asked =
                || format!("{path}, from the server's root: is it exported to this machine?");
            Session::connect(address, who)?.mount(path).with_context(asked)
        }
    }
}

fn mount(address: SocketAddr, who: (u32, u32), path: &Path) -> Result<Vec<u8>> {
    let here = Caller::connect_as(address, who.0, who.1)?.mount(path);
    // A refusal is the answer; only where MOUNT is not served it is looked for elsewhere.
    let elsewhere = here.as_ref().is_err_and(|error| format!("{error:#}").contains("accepted"));
    match elsewhere.then(|| mount_port(address)) {
        Some(Ok(port)) => {
            let address = SocketAddr::new(address.ip(), port);
            Caller::connect_as(address, who.0, who.1)?.mount(path)
        }
        _ => here,
    }
}

/// The port of MOUNT according to the host's portmapper.
fn mount_port(address: SocketAddr) -> Result<u16> {
    let portmapper = SocketAddr::new(address.ip(), portmap::PORT);
    let mut caller = Caller::connect_as(portmapper, 0, 0)?;
    let program = (portmap::PROGRAM, portmap::PORTMAP_VERSION, portmap::procedure::GETPORT);
    let wanted = portmap::Mapping {
        program: mount::PROGRAM,
        version: mount::VERSION,
        protocol: portmap::TCP,
        port: 0,
    };
    let reply = caller.program(program, &wanted)?;
    let port: u32 = Decoder::whole(&reply[RESULTS_AT..])?;
    ensure!((1..=0xffff).contains(&port), "MOUNT is not registered with the portmapper");
    Ok(port as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        let read = |url: &str| parse(url).unwrap();
        assert_eq!(read("nfs://a/b/c"), ("a:2049".into(), "/b/c".into()));
        assert_eq!(read("nfs://a:20490/"), ("a:20490".into(), "/".into()));
        assert_eq!(read("nfs://[::1]/x"), ("[::1]:2049".into(), "/x".into()));
        assert_eq!(read("nfs://[::1]:99/x"), ("[::1]:99".into(), "/x".into()));
    }

    #[test]
    fn urls_that_are_wrong_say_what_a_right_one_is() {
        for (wrong, said) in [
            ("nfs://host", "a server is named as nfs://host[:port]/export"),
            ("nfs:///x", "a server is named as nfs://host[:port]/export"),
            ("nfs://h:99999/x", "`99999` is no port"),
            ("nfs://[::1]:/x", "`` is no port"),
            ("nfs://fe80::1/x", "stands in brackets: nfs://[fe80::1]/x"),
        ] {
            let error = parse(wrong).unwrap_err().to_string();
            assert!(error.contains(said), "{wrong}: {error}");
        }
    }

    #[test]
    fn of_a_hosts_addresses_the_one_that_answers_is_taken() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(resolve(&format!("localhost:{port}")).unwrap().port(), port);
        assert!(resolve(&format!("localhost:{port}")).unwrap().is_ipv4());
    }
}

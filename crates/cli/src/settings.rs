//! Decides from the arguments, the configuration and the machine how the server is to run. The
//! result cannot contradict itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use comity_backend::{CEPH, Location};
use comity_daemon::{
    ClusterOptions, Listen, Options, Portmap, Spoken, TlsKey, TlsOptions, logging,
};
use comity_export::{NfsVersion, ServerSettings, Source};
use comity_state::Limits;
use comity_tls::ObjectId;
use comity_tls::client::ServiceFiles;

use crate::cluster_arguments::{self, ClusterArguments};
use crate::{arguments, common_arguments};

/// The name shown as the source of exports that were typed as arguments.
pub(crate) const TYPED: &str = "command line";

/// The port of NFS (RFC 1813, 1.1).
const PORT_OF_ROOT: u16 = 2049;

/// The default port of ordinary users: it resembles 2049, and no service is registered for it.
const PORT_OF_USERS: u16 = 20_490;

/// Clients on this machine.
const LOOPBACK: [&str; 2] = ["127.0.0.0/8", "::1"];

/// The default log level.
const LEVEL: &str = "info";

/// Decides the settings. An argument comes before the `[server]` section of the configuration.
///
/// # Errors
/// There is no folder for the state, or the log level in the configuration is invalid.
pub(crate) fn options(
    typed: arguments::Serve,
    sources: Vec<Source>,
    written: ServerSettings,
) -> Result<Options> {
    let is_root = rustix::process::geteuid().is_root();
    let is_for_others = typed.data.data_server.is_some() || !typed.allow.is_empty();
    let is_local = !is_written(&typed) && !is_for_others;
    let level = typed.log.as_deref().or(written.log_level.as_deref()).unwrap_or(LEVEL);
    let tls = TlsOptions {
        key: tls_key(typed.no_tls, typed.tls_cert.clone().zip(typed.tls_key.clone()), &written)?,
        client_authorities: written.tls_client_ca.clone(),
        user_names: user_names(written.tls_user_oid.as_deref())?,
    };
    let cluster = cluster(&typed.cluster, &written)?;
    Ok(Options {
        listen: listen(&typed, &written, is_root, is_local),
        portmap: portmap(&typed, is_local),
        limits: limits(&typed),
        level: logging::level(level).context("log_level of the configuration")?,
        accounts: typed.accounts.clone(),
        decisions_per_key: typed.decisions_per_key,
        state_folder: state_folder(typed.state.state_dir.or(written.state_dir), is_root)?,
        sources,
        given: None,
        placement_key: typed.data.placement_key.clone(),
        read_only: typed.read_only,
        all_as_root: typed.all_as_root,
        in_memory: typed.in_memory,
        metrics: typed.pages.metrics.or(written.metrics),
        web: typed.pages.web,
        cluster,
        spoken: spoken(&typed.vers, written.vers.as_deref())?,
        threads: typed.threads.map(usize::from).or(written.threads),
        lease_seconds: typed.lease_seconds,
        local_locks: !typed.no_local_locks,
        tls,
        drain_seconds: typed.drain_seconds,
        json: typed.json.json,
    })
}

/// The server's key for TLS: the command line comes before the configuration, and without either
/// the server makes one.
fn tls_key(
    is_off: bool,
    typed: Option<(PathBuf, PathBuf)>,
    written: &ServerSettings,
) -> Result<TlsKey> {
    if is_off {
        return Ok(TlsKey::None);
    }
    if let Some((certificate, key)) = typed {
        return Ok(TlsKey::Files { certificate, key });
    }
    let files = (written.tls_cert.clone(), written.tls_key.clone());
    Ok(match (written.tls, files) {
        (Some(false), (None, None)) => TlsKey::None,
        (Some(false), _) => bail!("[server]: tls = false contradicts tls_cert and tls_key"),
        (_, (Some(certificate), Some(key))) => TlsKey::Files { certificate, key },
        (_, (None, None)) => TlsKey::SelfMade,
        _ => bail!("[server]: tls_cert and tls_key go together; name both files"),
    })
}

/// The cluster in which the server is a head: the command line comes before the configuration.
fn cluster(typed: &ClusterArguments, written: &ServerSettings) -> Result<Option<ClusterOptions>> {
    let etcd = match typed.cluster.is_empty() {
        true => written.cluster.clone().unwrap_or_default(),
        false => typed.cluster.clone(),
    };
    let head = typed.head.clone().or_else(|| written.head.clone());
    let lease_seconds = typed.head_lease_seconds;
    match (etcd.is_empty(), head) {
        (true, None) => Ok(None),
        (true, Some(_)) => bail!("a head needs the members of etcd: add --cluster URL"),
        (false, None) => bail!("a cluster needs the name of this head: add --head NAME"),
        (false, Some(head)) => {
            let head = cluster_arguments::head(&head).map_err(|why| anyhow!("head: {why}"))?;
            let etcd_tls = etcd_tls(typed, written)?;
            Ok(Some(ClusterOptions { etcd, etcd_tls, head, lease_seconds }))
        }
    }
}

/// The files for TLS with etcd: the command line comes before the configuration.
fn etcd_tls(typed: &ClusterArguments, written: &ServerSettings) -> Result<Option<ServiceFiles>> {
    let either = |typed: &Option<PathBuf>, written: &Option<PathBuf>| {
        typed.clone().or_else(|| written.clone())
    };
    let authorities = either(&typed.etcd_ca, &written.etcd_ca);
    let certificate = either(&typed.etcd_cert, &written.etcd_cert);
    let key = either(&typed.etcd_key, &written.etcd_key);
    if certificate.is_some() != key.is_some() {
        bail!("etcd_cert and etcd_key go together; name both files");
    }
    let own = certificate.zip(key);
    match (authorities, own) {
        (Some(authorities), own) => Ok(Some(ServiceFiles { authorities, own })),
        (None, None) => Ok(None),
        (None, Some(_)) => bail!("etcd_cert needs the authorities of etcd: add --etcd-ca FILE"),
    }
}

/// The object identifier of the otherName entries in certificates that name a user.
fn user_names(written: Option<&str>) -> Result<Option<ObjectId>> {
    written.map(str::parse).transpose().context("tls_user_oid of [server]")
}

/// Returns the bounds of the clients' state: the defaults, where nothing is typed.
fn limits(typed: &arguments::Serve) -> Limits {
    Limits {
        delegations: typed.delegations_max,
        reply_cache_bytes: typed.reply_cache_bytes_max,
        ..Limits::DEFAULT
    }
}

/// The versions of NFS to serve: those typed, else those of the configuration, else all.
fn spoken(typed: &[String], written: Option<&[NfsVersion]>) -> Result<Spoken> {
    let written: Option<Vec<_>> = written.map(|all| all.iter().map(|one| one.name()).collect());
    match (typed, written) {
        ([], None) => Ok(Spoken::ALL),
        ([], Some(named)) => {
            Spoken::these(&named).map_err(|why| anyhow!("vers of [server]: {why}"))
        }
        (named, _) => Spoken::these(named).map_err(|why| anyhow!("--vers: {why}")),
    }
}

fn listen(
    typed: &arguments::Serve,
    written: &ServerSettings,
    is_root: bool,
    is_local: bool,
) -> Listen {
    let named = match typed.listen.is_empty() {
        true => written.listen.clone().filter(|addresses| !addresses.is_empty()),
        false => Some(typed.listen.clone()),
    };
    let usual: &[IpAddr] = match is_local {
        true => &[IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)],
        false => &[IpAddr::V6(Ipv6Addr::UNSPECIFIED)],
    };
    let port = typed.port.or(written.port);
    Listen {
        is_explicit: named.is_some(),
        addresses: named.unwrap_or_else(|| usual.into()),
        port: port.unwrap_or(if is_root { PORT_OF_ROOT } else { PORT_OF_USERS }),
    }
}

/// Chooses the use of the portmapper. A server for this machine only is not registered.
fn portmap(typed: &arguments::Serve, is_local: bool) -> Portmap {
    match (typed.portmap, typed.no_register || is_local) {
        (true, _) => Portmap::Embedded,
        (false, true) => Portmap::None,
        (false, false) => Portmap::Register,
    }
}

/// The state folder, absolute: the one given, or the user's own.
///
/// # Errors
/// If the user has no home.
pub(crate) fn state_folder(given: Option<PathBuf>, is_root: bool) -> Result<PathBuf> {
    match given {
        Some(folder) => std::path::absolute(folder).context("--state-dir"),
        None => comity_daemon::default_state_folder(is_root),
    }
}

/// Returns the sources of the exports: files, or exports made from the typed folders, or the path
/// `far` of a directory of another server.
///
/// # Errors
/// A typed folder does not exist; the message says what to do about it.
pub(crate) fn sources(typed: &arguments::Serve, far: Option<&Path>) -> Result<Vec<Source>> {
    if is_written(typed) {
        return Ok(files(&typed.source));
    }
    if let (Some(dir), Some(server)) = (&typed.data.data_server, &typed.data.metadata_server) {
        return Ok(vec![Source::export(TYPED, &folder(dir)?, &metadata_server(server))]);
    }
    let clients = clients(&typed.allow, typed.read_only);
    if let Some(path) = far {
        return Ok(vec![Source::export(TYPED, path, &clients)]);
    }
    let mut folders = Vec::new();
    for dir in &typed.dirs {
        let served = match ceph_path(dir) {
            Some(path) => (path.to_owned(), format!("-ceph={} {clients}", escaped(path))),
            None => (folder(dir)?, clients.clone()),
        };
        // A folder that is named twice, also by different paths, is one export.
        if !folders.contains(&served) {
            folders.push(served);
        }
    }
    Ok(folders.iter().map(|(path, rest)| Source::export(TYPED, path, rest)).collect())
}

/// Returns whether the exports are written in files, and not typed.
const fn is_written(typed: &arguments::Serve) -> bool {
    typed.dirs.is_empty() && typed.far.from.is_none() && typed.data.data_server.is_none()
}

/// The files that the arguments name.
pub(crate) fn files(typed: &common_arguments::Source) -> Vec<Source> {
    let exports = typed.exports.iter().cloned().map(Source::Exports);
    let drop_ins = typed.exports.iter().filter_map(|path| drop_ins(path)).map(Source::Directory);
    let config = typed.config.iter().cloned().map(Source::Config);
    exports.chain(drop_ins).chain(config).collect()
}

/// The folder `exports.d` beside a file `exports`, as exports(5) describes it.
fn drop_ins(exports: &Path) -> Option<PathBuf> {
    let is_usual = exports.file_name().is_some_and(|name| name == "exports");
    is_usual.then(|| exports.with_file_name("exports.d"))
}

/// Returns the clients of `comity serve DIR...` in the form of exports(5): loopback, and the
/// clients named, from any port, with root squashed.
fn clients(allow: &[String], read_only: bool) -> String {
    let access = if read_only { "ro" } else { "rw" };
    let clients = LOOPBACK.into_iter().chain(allow.iter().map(String::as_str));
    let clients: Vec<_> = clients.map(|client| format!("{client}({access},insecure)")).collect();
    clients.join(" ")
}

/// Returns the metadata server of a data server in the form of exports(5). Its root alone may use
/// the files, so it calls from a port that only root has. A metadata server on this machine calls
/// from any port, and one without root's rights is for trials.
fn metadata_server(host: &str) -> String {
    let is_here = host.parse().is_ok_and(|address: IpAddr| address.is_loopback());
    let is_root = rustix::process::geteuid().is_root();
    let port = if is_root && !is_here { "secure" } else { "insecure" };
    format!("{host}(rw,no_root_squash,{port},fsid=0)")
}

/// Returns the path in `ceph:/PATH`, which is also the path of the export.
fn ceph_path(dir: &Path) -> Option<&Path> {
    let location = Location::parse(dir);
    (location.scheme == CEPH).then_some(location.place)
}

/// Returns a path as the value of an option of exports(5).
fn escaped(path: &Path) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    let shown = |byte: &u8| match is_plain(*byte) {
        true => char::from(*byte).to_string(),
        false => format!("\\{byte:03o}"),
    };
    path.as_os_str().as_bytes().iter().map(shown).collect()
}

fn folder(dir: &Path) -> Result<PathBuf> {
    let shown = dir.display();
    let path = dir.canonicalize().with_context(|| {
        format!("cannot serve {shown}: create the folder, or name one that exists")
    })?;
    ensure!(
        path.is_dir(),
        "cannot serve {shown}: it is not a folder; name the folder that contains it"
    );
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn typed(words: &[&str]) -> arguments::Serve {
        let all = ["comity", "serve"].iter().chain(words);
        match arguments::Arguments::try_parse_from(all).unwrap().command {
            arguments::Command::Serve(typed) => *typed,
            other => unreachable!("{other:?}"),
        }
    }

    fn decided(words: &[&str], written: ServerSettings) -> Options {
        let typed = typed(words);
        let sources = sources(&typed, None).unwrap();
        options(typed, sources, written).unwrap()
    }

    fn text(sources: &[Source]) -> &str {
        let [Source::Text { text, .. }] = sources else { unreachable!("{sources:?}") };
        std::str::from_utf8(text).unwrap()
    }

    #[test]
    fn a_folder_alone_is_for_this_machine_only() {
        let serve = decided(&["/tmp", "--state-dir", "/s"], ServerSettings::default());
        assert_eq!(text(&serve.sources), "/tmp 127.0.0.0/8(rw,insecure) ::1(rw,insecure)\n");
        assert!(serve.listen.addresses.iter().all(IpAddr::is_loopback));
        assert_eq!(serve.portmap, Portmap::None);
    }

    #[test]
    fn a_folder_of_ceph_is_an_export_under_its_own_path() {
        let serve = decided(&["ceph:/a b,c", "--state-dir", "/s"], ServerSettings::default());
        let line = "-ceph=/a\\040b\\054c 127.0.0.0/8(rw,insecure) ::1(rw,insecure)\n";
        assert!(text(&serve.sources).ends_with(line), "{}", text(&serve.sources));
        let read = comity_daemon::server_settings(&serve.sources);
        assert!(read.is_ok(), "{read:?}");
    }

    #[test]
    fn a_folder_named_twice_is_one_export() {
        let typed = typed(&["/tmp", "/tmp/", "/tmp/../tmp", "/"]);
        assert_eq!(sources(&typed, None).unwrap().len(), 2);
    }

    #[test]
    fn others_come_in_only_when_named() {
        let words = ["/tmp", "--allow", "192.0.2.0/24", "--read-only", "--state-dir", "/s"];
        let serve = decided(&words, ServerSettings::default());
        let expected = "/tmp 127.0.0.0/8(ro,insecure) ::1(ro,insecure) 192.0.2.0/24(ro,insecure)\n";
        assert_eq!(text(&serve.sources), expected);
        assert!(serve.listen.addresses.iter().all(IpAddr::is_unspecified));
        assert_eq!(serve.portmap, Portmap::Register);
    }

    #[test]
    fn the_command_line_comes_before_the_configuration() {
        let written = ServerSettings {
            port: Some(1),
            threads: Some(7),
            listen: Some(vec![Ipv4Addr::new(192, 0, 2, 1).into()]),
            ..ServerSettings::default()
        };
        let words = ["--config", "f", "--port", "2", "--state-dir", "/s"];
        let serve = decided(&words, written);
        assert_eq!((serve.listen.port, serve.threads), (2, Some(7)));
        assert_eq!(serve.listen.addresses, [Ipv4Addr::new(192, 0, 2, 1)]);
        assert!(serve.listen.is_explicit);
    }

    #[test]
    fn drop_ins_are_read_beside_the_usual_name_only() {
        assert_eq!(drop_ins(Path::new("/etc/exports")), Some("/etc/exports.d".into()));
        assert_eq!(drop_ins(Path::new("/tmp/my")), None);
    }
}

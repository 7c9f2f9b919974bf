use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::limits::THREADS_MAX;

/// The settings of the server in the configuration (`[server]`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSettings {
    /// The addresses to listen on.
    pub listen: Option<Vec<IpAddr>>,
    /// The TCP port.
    pub port: Option<u16>,
    /// The number of worker threads.
    #[serde(default, deserialize_with = "threads")]
    pub threads: Option<usize>,
    /// The versions of NFS that are offered.
    pub vers: Option<Vec<NfsVersion>>,
    /// The address at which metrics are served.
    pub metrics: Option<SocketAddr>,
    /// The folder for everything that must survive a restart.
    pub state_dir: Option<PathBuf>,
    /// True if peers may begin TLS (RFC 9289).
    pub tls: Option<bool>,
    /// The members of etcd of the cluster in which this server is a head.
    pub cluster: Option<Vec<String>>,
    /// The file with the authorities that certify the members of etcd, in PEM.
    pub etcd_ca: Option<PathBuf>,
    /// The file with the certificate that the server shows to etcd, in PEM.
    pub etcd_cert: Option<PathBuf>,
    /// The file with the private key of that certificate, in PEM.
    pub etcd_key: Option<PathBuf>,
    /// The name or address of this head, to which clients are referred.
    pub head: Option<String>,
    /// The file with the server's certificate for TLS, in PEM.
    pub tls_cert: Option<PathBuf>,
    /// The file with the private key of that certificate, in PEM.
    pub tls_key: Option<PathBuf>,
    /// Files with the certificates of authorities that may certify names and users of clients, in
    /// PEM.
    #[serde(default)]
    pub tls_client_ca: Vec<PathBuf>,
    /// The object identifier of otherName entries that contain a user.
    pub tls_user_oid: Option<String>,
    /// The log level: `error`, `warn`, `info`, `debug`, `trace`, or by component.
    #[serde(default, deserialize_with = "log_level")]
    pub log_level: Option<String>,
}

/// A version of NFS, named as in mount options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum NfsVersion {
    /// Version 3.
    #[serde(rename = "3")]
    V3,
    /// All of version 4.
    #[serde(rename = "4")]
    V4,
    /// 4.0.
    #[serde(rename = "4.0")]
    V4_0,
    /// 4.1.
    #[serde(rename = "4.1")]
    V4_1,
    /// 4.2.
    #[serde(rename = "4.2")]
    V4_2,
}

impl NfsVersion {
    /// Its name in mount options.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V3 => "3",
            Self::V4 => "4",
            Self::V4_0 => "4.0",
            Self::V4_1 => "4.1",
            Self::V4_2 => "4.2",
        }
    }
}

/// The log levels.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Reads the log level.
pub(crate) fn log_level<'d, D: Deserializer<'d>>(written: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(written)?;
    let level = |directive: &str| directive.trim().rsplit('=').next().map(str::to_owned);
    let is_level = |level: String| LEVELS.contains(&level.as_str());
    if text.split(',').all(|directive| level(directive).is_some_and(is_level)) {
        return Ok(Some(text));
    }
    Err(D::Error::custom(format!(
        "{text:?} is no log level: expected off, error, warn, info, debug or trace, also for a \
         part only, as in info,comity_server=debug"
    )))
}

/// Reads the number of threads.
pub(crate) fn threads<'d, D: Deserializer<'d>>(written: D) -> Result<Option<usize>, D::Error> {
    let count = usize::deserialize(written)?;
    if (1..=THREADS_MAX).contains(&count) {
        return Ok(Some(count));
    }
    Err(D::Error::custom(format!("{count} threads: expected 1 to {THREADS_MAX}")))
}

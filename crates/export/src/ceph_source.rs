//! Exports whose files are in a Ceph file system: the option `ceph` and its companions.

use std::fmt;
use std::path::PathBuf;

use crate::path::Escaped;

/// The directory of a Ceph file system that an export shows, if it shows one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CephSource {
    /// The path of the directory in the file system (`ceph`). Without it the export is a directory
    /// of this machine.
    pub path: Option<PathBuf>,
    /// The configuration file of Ceph (`ceph_conf`); otherwise the first of Ceph's own places.
    pub configuration: Option<PathBuf>,
    /// The user of Ceph without `client.` (`ceph_id`); otherwise `admin`.
    pub id: Option<Box<str>>,
    /// The name of the file system (`ceph_fs`); otherwise the default of the cluster.
    pub file_system: Option<Box<str>>,
}

/// Formats only what is set, each after a comma.
impl fmt::Display for CephSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.iter().try_for_each(|path| write!(f, ",ceph={}", Escaped(path)))?;
        let configuration = self.configuration.iter();
        configuration.map(|it| Escaped(it)).try_for_each(|it| write!(f, ",ceph_conf={it}"))?;
        self.id.iter().try_for_each(|id| write!(f, ",ceph_id={id}"))?;
        self.file_system.iter().try_for_each(|name| write!(f, ",ceph_fs={name}"))
    }
}

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;

use super::peer::caller;
use super::{DirectoryTarget, NfsTarget, NullTarget, Peer, server};
use crate::suite::{Content, Target, Version};

/// A target as it is named on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spec {
    /// A directory.
    Directory(PathBuf),
    /// `nfs://host[:port]/export[?vers=4.1]`.
    Server(String, Option<Version>),
    /// `peer:NAME[=DIR][?vers=4.1]`; the server's files are in DIR.
    Peer(Peer, Option<PathBuf>, Option<Version>),
    /// `idle:`, which does nothing.
    Idle,
}

/// Other options that concern targets.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// User and group of calls over NFS, if not those of this process.
    pub who: Option<(u32, u32)>,
    /// The comity that `peer:comity` starts, if not this program.
    pub comity: Option<PathBuf>,
    /// The version for servers whose names contain none.
    pub version: Version,
    /// The metrics page of the comity that serves the directories, if calls are counted there.
    pub calls_at: Option<SocketAddr>,
}

impl Spec {
    /// Reads a target's name.
    ///
    /// # Errors
    /// There is no such peer, or no such version of NFS.
    pub fn parse(text: &str) -> Result<Self> {
        if text == "idle:" {
            return Ok(Self::Idle);
        }
        if text.starts_with("nfs://") {
            let (url, version) = Version::split(text)?;
            server::parse(url)?;
            return Ok(Self::Server(url.to_owned(), version));
        }
        let Some(peer) = text.strip_prefix("peer:") else {
            return Ok(Self::Directory(PathBuf::from(text)));
        };
        let (peer, version) = Version::split(peer)?;
        let (peer, place) = match peer.split_once('=') {
            Some((peer, place)) => (peer, Some(PathBuf::from(place))),
            None => (peer, None),
        };
        Ok(Self::Peer(Peer::parse(peer)?, place, version))
    }

    /// Opens or starts the target; `content` is the content of the run's files.
    ///
    /// # Errors
    /// The target does not exist, or refuses.
    pub fn open(&self, options: &Options, content: &Arc<Content>) -> Result<Box<dyn Target>> {
        Ok(match self {
            Self::Directory(path) => {
                Box::new(DirectoryTarget::open(path)?.counting_at(options.calls_at))
            }
            Self::Server(url, version) => {
                let who = options.who.unwrap_or_else(caller);
                let version = version.unwrap_or(options.version);
                Box::new(NfsTarget::open((url, &self.name()), version, who)?)
            }
            Self::Peer(peer, place, version) => {
                let version = version.unwrap_or(options.version);
                let place = place.as_deref();
                peer.start((&self.name(), version), place, options.comity.as_deref())?
            }
            Self::Idle => Box::new(NullTarget::new(Arc::clone(content))),
        })
    }

    /// The target as the command line names it.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Directory(path) => path.display().to_string(),
            Self::Server(url, version) => format!("{url}{}", suffix(*version)),
            Self::Idle => "idle:".into(),
            Self::Peer(peer, place, version) => {
                let place = place.as_deref().map(Path::display);
                let place = place.map(|place| format!("={place}")).unwrap_or_default();
                format!("{}{place}{}", peer.name(), suffix(*version))
            }
        }
    }
}

fn suffix(version: Option<Version>) -> String {
    version.map(|version| format!("?vers={version}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_told_apart() {
        let servers = ["nfs://h:1/x", "nfs://h/x?vers=4.1", "peer:comity", "peer:keys?vers=3"];
        for name in servers.into_iter().chain(["peer:ganesha=/tmp?vers=4.1", "/mnt/a?b", "idle:"]) {
            assert_eq!(Spec::parse(name).unwrap().name(), name);
        }
        let error = Spec::parse("peer:samba").unwrap_err().to_string();
        assert_eq!(
            error,
            "peer:samba: there are peer:comity, peer:memory, peer:keys and peer:ganesha"
        );
        let error = Spec::parse("nfs://h/x?vers=2").unwrap_err().to_string();
        assert_eq!(error, "version 2 of NFS is not spoken: there are 3 and 4.1");
        assert!(Spec::parse("peer:comity?proto=udp").is_err());
        assert!(Spec::parse("nfs://host").is_err());
        assert!(matches!(Spec::parse("mnt").unwrap(), Spec::Directory(_)));
    }
}

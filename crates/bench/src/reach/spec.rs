use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;

use super::peer::caller;
use super::{DirectoryTarget, IdleTarget, NfsTarget, Peer};
use crate::suite::{Content, Target};

/// A target as it is named on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spec {
    /// A directory.
    Directory(PathBuf),
    /// `nfs://host[:port]/export`.
    Server(String),
    /// `peer:comity` or `peer:ganesha`, perhaps with `=DIR`, where its files are to lie.
    Peer(Peer, Option<PathBuf>),
    /// `idle:`, which does nothing.
    Idle,
}

/// What else the command line says of targets.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// User and group of calls by protocol, if others than our own.
    pub who: Option<(u32, u32)>,
    /// The comity that `peer:comity` starts, if not this program.
    pub comity: Option<PathBuf>,
}

impl Spec {
    /// Reads a target's name.
    ///
    /// # Errors
    /// There is no such peer.
    pub fn parse(text: &str) -> Result<Self> {
        if text.starts_with("nfs://") {
            return Ok(Self::Server(text.to_owned()));
        }
        if text == "idle:" {
            return Ok(Self::Idle);
        }
        let Some(peer) = text.strip_prefix("peer:") else {
            return Ok(Self::Directory(PathBuf::from(text)));
        };
        let (peer, place) = match peer.split_once('=') {
            Some((peer, place)) => (peer, Some(PathBuf::from(place))),
            None => (peer, None),
        };
        Ok(Self::Peer(Peer::parse(peer)?, place))
    }

    /// Opens or starts it; `content` is what the run's files hold.
    ///
    /// # Errors
    /// It is not there, or refuses.
    pub fn open(&self, options: &Options, content: &Arc<Content>) -> Result<Box<dyn Target>> {
        Ok(match self {
            Self::Directory(path) => Box::new(DirectoryTarget::open(path)?),
            Self::Server(url) => {
                Box::new(NfsTarget::open(url, options.who.unwrap_or_else(caller))?)
            }
            Self::Peer(peer, place) => {
                Box::new(peer.start(&self.name(), place.as_deref(), options.comity.as_deref())?)
            }
            Self::Idle => Box::new(IdleTarget::new(Arc::clone(content))),
        })
    }

    /// As it is written.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Directory(path) => path.display().to_string(),
            Self::Server(url) => url.clone(),
            Self::Idle => "idle:".into(),
            Self::Peer(peer, place) => {
                let place = place.as_deref().map(Path::display);
                let place = place.map(|place| format!("={place}")).unwrap_or_default();
                let peer = if *peer == Peer::Comity { "comity" } else { "ganesha" };
                format!("peer:{peer}{place}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_told_apart() {
        for name in ["/mnt/a", "nfs://h:1/x", "peer:comity", "peer:ganesha=/tmp", "idle:"] {
            assert_eq!(Spec::parse(name).unwrap().name(), name);
        }
        let error = Spec::parse("peer:samba").unwrap_err().to_string();
        assert_eq!(error, "peer:samba: there are peer:comity and peer:ganesha");
        assert!(matches!(Spec::parse("mnt").unwrap(), Spec::Directory(_)));
    }
}

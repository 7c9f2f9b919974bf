//! The server that serves an export, and the move of an export between servers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use comity_vfs::FileKey;

use crate::check::Merged;
use crate::diagnostic::Diagnostics;
use crate::{Export, Fsid, PeerServer, Plan, Referral};

/// The server of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whereabouts {
    /// The export is served by this server.
    Here,
    /// The export is on its way to another server: nobody serves it, and callers have to wait.
    Moving,
    /// The peer with this name serves it.
    At(Box<str>),
    /// Another head of the cluster serves it, at this name or address.
    AtHost(Box<str>),
}

/// Returns the server to which an export was moved; none if it was not moved.
pub type FindMoved = dyn Fn(&Path) -> Option<Whereabouts> + Send + Sync;

/// Finds the server of each export. An export of another server gets a referral to it.
pub(crate) fn find_whereabouts(
    exports: &mut [Merged],
    (peers, moved): (&[PeerServer], &Arc<FindMoved>),
    diagnostics: &mut Diagnostics,
) {
    for Merged { declaration, settings } in exports {
        let home = settings.home.clone().map(Whereabouts::At);
        let found = moved(&declaration.path).or(home).unwrap_or(Whereabouts::Here);
        if found != Whereabouts::Here && settings.refer.is_some() {
            let what = "option refer: home= or a migration says which server has the export; \
                leave out refer";
            diagnostics.error(&declaration.place, what);
        }
        match found {
            Whereabouts::Here => {}
            Whereabouts::Moving => settings.is_moving = true,
            Whereabouts::AtHost(host) => {
                settings.refer = Some(Referral::to(&declaration.path, &host));
            }
            Whereabouts::At(name) => match peers.iter().find(|peer| peer.name == name) {
                Some(peer) => {
                    settings.refer = Some(Referral::to(&declaration.path, &peer.host));
                }
                None => {
                    let what = format!("its files are at {name}, which is no [[peer]]");
                    diagnostics.error(&declaration.place, what);
                }
            },
        }
    }
}

impl Plan {
    /// Makes the same plan, except that exports which are served here are moving, elsewhere, or
    /// here again.
    ///
    /// # Errors
    /// The reason in words why one of them cannot be there.
    pub fn placing(&self, paths: &[PathBuf], whereabouts: &Whereabouts) -> Result<Self, String> {
        let mut placed = Vec::new();
        for path in paths {
            let export = self.export_at(path);
            let missing = || format!("no export has the path {}", path.display());
            let export = export.ok_or_else(missing)?;
            if export.referral().is_some() {
                return Err(format!("{} is not served here", path.display()));
            }
            let (mut refer, mut is_moving) = (None, false);
            match whereabouts {
                Whereabouts::Here => {}
                Whereabouts::Moving => is_moving = true,
                Whereabouts::AtHost(host) => refer = Some(Referral::to(path, host)),
                Whereabouts::At(name) => refer = Some(self.referral_to(name, (export, paths))?),
            }
            placed.push(Arc::new(export.placed(refer, is_moving)));
        }
        Ok(self.replacing(&placed))
    }

    /// Returns whether the export of a file is on its way to another server.
    #[must_use]
    pub fn is_moving(&self, file: &FileKey) -> bool {
        self.export_of(file).is_some_and(|export| export.settings().is_moving)
    }

    /// Makes the same plan, except that the exports at these paths are those of another plan.
    #[must_use]
    pub fn adopting(&self, other: &Self, paths: &[PathBuf]) -> Self {
        self.replacing(&other.exports_at(paths).cloned().collect::<Vec<_>>())
    }

    fn referral_to(
        &self,
        name: &str,
        (export, leaving): (&Export, &[PathBuf]),
    ) -> Result<Referral, String> {
        let path = export.path();
        let shown = path.display();
        if path == Path::new("/") || export.settings().fsid == Some(Fsid::Number(0)) {
            return Err(format!("{shown} is the top of what NFSv4 clients see, which cannot move"));
        }
        let is_below = |other: &&Arc<Export>| {
            other.path() != path
                && other.path().starts_with(path)
                && !leaving.iter().any(|leaving| leaving == other.path())
        };
        if let Some(below) = self.exports().iter().find(is_below) {
            let below = below.path().display();
            return Err(format!("{below} is below {shown}, and clients could not reach it"));
        }
        let peer = self.peer_named(name);
        let peer = peer.ok_or_else(|| format!("the configuration has no [[peer]] {name}"))?;
        Ok(Referral::to(path, &peer.host))
    }
}

use std::fmt;
use std::path::Path;

use crate::export_spec::Escaped;
use crate::{Candidate, Client, Export, Plan, Rules};

/// An export as it is offered to a peer. It is formatted as a line of exports(5) with every option,
/// the defaults too.
#[derive(Clone, Copy)]
pub struct VisibleExport<'a> {
    export: &'a Export,
    client: &'a Client,
    rules: &'a Rules,
}

impl Plan {
    /// Returns the exports that a peer may use, in the order of the configuration. An export is
    /// left out if its entry depends on a name that is not known yet; see [`Plan::learn_name`].
    #[must_use]
    pub fn offered<'p>(&self, peer: impl Into<Candidate<'p>>) -> Vec<VisibleExport<'_>> {
        let peer = peer.into();
        let mounted = self.exports().iter().filter(|export| export.is_mounted());
        mounted.filter_map(|export| VisibleExport::to(export, peer)).collect()
    }
}

impl<'a> VisibleExport<'a> {
    fn to(export: &'a Export, peer: Candidate<'_>) -> Option<Self> {
        let (client, rules) = export.judge(peer).ok()?;
        Some(Self { export, client, rules })
    }

    /// The path of the export.
    #[must_use]
    pub fn path(&self) -> &'a Path {
        self.export.path()
    }

    /// Returns whether other servers have its files, so that NFSv3 clients cannot mount it.
    #[must_use]
    pub const fn is_absent(&self) -> bool {
        self.export.referral().is_some()
    }

    /// The entry that matched the client.
    #[must_use]
    pub const fn client(&self) -> &'a Client {
        self.client
    }

    /// The rules for the client.
    #[must_use]
    pub const fn rules(&self) -> &'a Rules {
        self.rules
    }
}

impl fmt::Display for VisibleExport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, settings) = (Escaped(self.path()), self.export.settings());
        write!(f, "{path} {}({}{settings})", self.client, self.rules)
    }
}

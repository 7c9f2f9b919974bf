//! An export whose files are served by other servers, as an admitted caller meets it.

use crate::{Export, Plan, Referral, Referred, SealedHandle};

/// An absent file system (RFC 7530, 8.3; RFC 8881, 11.4): there is no object in it that a request
/// could name, so it has no [`crate::View`] and no [`crate::Node`].
#[derive(Clone, Copy)]
pub struct Absent<'a> {
    plan: &'a Plan,
    export: &'a Export,
    referral: &'a Referral,
}

impl Plan {
    /// Returns the absent file system to which a caller was admitted; none if the proof is of
    /// another plan that had the file system.
    #[must_use]
    pub fn absent(&self, referred: Referred) -> Option<Absent<'_>> {
        let export = self.export(referred.export_id())?;
        let referral = export.referral()?;
        Some(Absent { plan: self, export, referral })
    }

    /// Returns whether the files of some export are served by other servers.
    #[must_use]
    pub fn refers(&self) -> bool {
        self.exports().iter().any(|export| export.referral().is_some())
    }
}

impl<'a> Absent<'a> {
    /// The export.
    #[must_use]
    pub const fn export(&self) -> &'a Export {
        self.export
    }

    /// The places of its files.
    #[must_use]
    pub const fn referral(&self) -> &'a Referral {
        self.referral
    }

    /// Returns the handle of the file system.
    #[must_use]
    pub fn seal(&self) -> SealedHandle {
        self.plan.seal(self.export.id(), &self.export.fs().root())
    }
}

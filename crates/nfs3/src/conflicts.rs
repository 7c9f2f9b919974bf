use comity_coherence::{Act, Clearance, Hosts};
use comity_export::{Node, View};
use comity_vfs::Result;

use crate::program::Nfs3;
use crate::request::Request;

impl Nfs3 {
    /// Returns what clients hold, if anything is delegated to anybody.
    #[inline]
    pub(crate) fn anything_delegated(&self) -> Option<&Hosts> {
        self.hosts().filter(|hosts| hosts.have_delegations())
    }

    /// Clears an act on an object, see [`Hosts::clear`].
    ///
    /// # Errors
    /// As [`Hosts::clear`].
    #[inline]
    pub(crate) fn clear(
        &self,
        request: &Request<'_>,
        object: (&View<'_>, &Node),
        act: Act<'_>,
    ) -> Result<Clearance> {
        Hosts::clear(self.hosts(), request.address(), object, act)
    }

    /// Clears an act on the object of a name, see [`Hosts::clear_named`].
    ///
    /// # Errors
    /// As [`Hosts::clear`].
    pub(crate) fn clear_named(
        &self,
        request: &Request<'_>,
        name: (&View<'_>, &Node, &[u8]),
        act: Act<'_>,
    ) -> Result<Clearance> {
        Hosts::clear_named(self.hosts(), request.address(), name, act)
    }
}

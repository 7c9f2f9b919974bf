use comity_coherence::{Act, Clearance, HostCall, Hosts};
use comity_export::{Node, View};
use comity_vfs::Result;

use crate::program::Nfs3;
use crate::request::Request;

impl Nfs3 {
    /// Returns the state that clients hold, if anything is delegated to any client.
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
    ) -> Result<Clearance<'_>> {
        Hosts::clear(self.hosts(), request.visitor, object, act)
    }

    /// Returns a call that may change directories.
    pub(crate) const fn host_call<'a>(&'a self, request: &Request<'a>) -> HostCall<'a> {
        HostCall { hosts: self.hosts(), peer: request.visitor }
    }
}

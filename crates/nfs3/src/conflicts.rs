use comity_export::{Node, View};
use comity_vfs::Result;

use crate::program::Nfs3;
use crate::recall::{Act, Delegated};
use crate::request::Request;

impl Nfs3 {
    /// What is delegated, if there is anything at all.
    #[inline]
    pub(crate) fn anything_delegated(&self) -> Option<&Delegated> {
        self.delegated().filter(|delegated| !delegated.is_nothing())
    }

    /// Sees to it that a call breaks nothing that clients of NFSv4 or NLM were promised: recalls
    /// delegations, heeds deny modes, and waits for reclaims in grace.
    ///
    /// # Errors
    /// [`Status::Delay`]: a delegation is being recalled, or may still be reclaimed.
    /// [`Status::Locked`] for a WRITE, [`Status::Acces`]: a deny mode forbids it.
    #[inline]
    pub(crate) fn check_conflicts(
        &self,
        request: &Request<'_>,
        view: &View<'_>,
        (node, act): (&Node, Act),
    ) -> Result<()> {
        match self.concerned(act) {
            Some(delegated) => delegated.check(request, view, (node, act)),
            None => Ok(()),
        }
    }

    /// The same for the object of a name that is about to be changed. If there is none, or none
    /// that the caller may know of, the call itself finds that out.
    ///
    /// # Errors
    /// As [`Nfs3::check_conflicts`].
    pub(crate) fn check_named(
        &self,
        request: &Request<'_>,
        view: &View<'_>,
        (dir, name, act): (&Node, &[u8], Act),
    ) -> Result<()> {
        match self.concerned(act).map(|delegated| (delegated, view.lookup(dir, name))) {
            Some((delegated, Ok((seen, _)))) => delegated.check(request, view, (&seen.node, act)),
            _ => Ok(()),
        }
    }

    #[inline]
    fn concerned(&self, act: Act) -> Option<&Delegated> {
        self.delegated().filter(|delegated| delegated.concerns(act))
    }
}

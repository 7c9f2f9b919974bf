//! Ceph's delegations of open files.

use std::ffi::{c_uint, c_void};
use std::sync::Arc;

use super::api::{Raw, Result, checked};
use super::file::CephFile;

/// `CEPH_DELEGATION_NONE`.
const NONE: c_uint = 0;

/// `CEPH_DELEGATION_RD`.
const READ: c_uint = 1;

/// A read delegation: other clients of Ceph cannot change the file until this is dropped.
pub(in crate::ceph) struct ReadDelegation {
    file: Arc<CephFile>,
    notice: Arc<Notice>,
}

/// The function that is called at a recall.
struct Notice(Box<dyn Fn() + Send + Sync>);

impl ReadDelegation {
    /// Takes a delegation of an open file. Ceph calls `recalled` once when another client waits for
    /// the file, under a lock of the mount: it must not call the library, nor wait for a thread
    /// that does.
    pub(in crate::ceph) fn take(
        file: &Arc<CephFile>,
        recalled: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self> {
        let (file, notice) = (Arc::clone(file), Arc::new(Notice(Box::new(recalled))));
        let this = Self { file, notice };
        // A failed call leaves nothing to give back, but giving back nothing is harmless.
        checked(this.ask(READ)).map(|_| this)
    }

    /// Asks for the delegation once more, which changes nothing while there is one. An error says
    /// that Ceph has recalled it, or has taken the file from this client without a recall.
    pub(in crate::ceph) fn renew(&self) -> Result<()> {
        checked(self.ask(READ)).map(drop)
    }

    fn ask(&self, kind: c_uint) -> i32 {
        let (mount, token) = (&self.file.mount, Arc::as_ptr(&self.notice).cast_mut().cast());
        let delegation = mount.api.ceph_ll_delegation;
        // SAFETY: mount and file live, and the notice lives until the delegation was given back.
        unsafe { delegation(mount.raw, self.file.raw, kind, tell, token) }
    }
}

impl Drop for ReadDelegation {
    fn drop(&mut self) {
        if checked(self.ask(NONE)).is_err() {
            // The mount was cut off. The library may still have the notice, so it stays.
            let _ = Arc::into_raw(Arc::clone(&self.notice));
        }
    }
}

/// Is called by the library when it recalls a delegation.
unsafe extern "C" fn tell(_file: Raw, token: *mut c_void) {
    // SAFETY: the token is that of a delegation that was not given back, so its notice lives.
    let notice = unsafe { &*token.cast::<Notice>() };
    (notice.0)();
}

//! Events about the layer's state at a server.

use comity_vfs::{Handle, OpenEvent};

use super::Mounted;
use crate::invalidation::{Invalidation, Notifier, send};
use crate::limits::EVENT_PATIENCE;

impl Mounted {
    /// Handles the next event, if one comes soon: first invalidates the kernel's data that is no
    /// longer certain, and then returns a recalled delegation. Must not be called by a thread that
    /// answers requests.
    pub(crate) fn take_event(&self, notifier: &dyn Notifier) {
        let Some(files) = self.open_files() else { return };
        match files.poll_event(EVENT_PATIENCE) {
            None => {}
            Some(OpenEvent::Recalled { node, .. }) => {
                self.forget_data(&node, notifier);
                if let Err(status) = files.return_delegation(&node) {
                    tracing::warn!(%status, "a delegation could not be returned");
                }
            }
            Some(OpenEvent::DelegationLost { node } | OpenEvent::StateLost { node }) => {
                self.forget_data(&node, notifier);
            }
        }
    }

    fn forget_data(&self, node: &Handle, notifier: &dyn Notifier) {
        if let Some(number) = self.inodes.number(node) {
            self.inodes.changed(number, None, None);
            send(notifier, &Invalidation::Data(number));
        }
    }
}

use std::time::Duration;

use crate::directories::DirectoryPolicy;
use crate::{ClientId, Engine, FileKey};

impl Engine {
    /// Notes that a client was notified of changes; returns whether it keeps the delegation (RFC
    /// 8881, 10.9.4: a server recalls delegations that cause too many notifications).
    pub(super) fn is_worth(
        &self,
        now: Duration,
        policy: Option<&dyn DirectoryPolicy>,
        (client, directory): (ClientId, &FileKey),
    ) -> bool {
        let seen = self.history.note(client, directory, |seen| seen.notify());
        policy.is_none_or(|policy| policy.keeps(now, &seen))
    }
}

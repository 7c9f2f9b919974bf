//! Sessions (RFC 8881, 2.10): requests that are executed exactly once, and the back channel.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::channel::{Connections, Slots};
use crate::sync::{Mutex, MutexGuard};
use crate::table::{Keyed, lock};
use crate::{BackChannel, ChannelAttrs, Client, ConnectionId, ExportedSession, Result, SessionId};

/// A session. Its channels have their own lock, under which no other lock is taken. Each request
/// takes it twice: when it arrives and when it is answered.
pub struct Session {
    pub(crate) id: SessionId,
    pub(crate) client: Arc<Client>,
    pub(crate) made: Duration,
    pub(crate) fore: ChannelAttrs,
    pub(crate) channels: Mutex<Channels>,
}

/// The fore channel and the back channel.
pub(crate) struct Channels {
    pub(crate) slots: Slots,
    pub(crate) back: Back,
    /// The address of the server by which the client made it, if that is known.
    pub(crate) address: Option<IpAddr>,
}

/// The back channel.
pub(crate) struct Back {
    pub(crate) channel: Option<BackChannel>,
    pub(crate) connections: Connections,
    /// True if the client must be told of a fault (`SEQ4_STATUS_BACKCHANNEL_FAULT`).
    pub(crate) fault: bool,
    /// True if the client has answered on the back channel.
    pub(crate) worked: bool,
}

impl Keyed for Session {
    type Key = SessionId;

    fn key(&self) -> &SessionId {
        &self.id
    }
}

impl Session {
    /// Returns its sessionid.
    #[must_use]
    pub const fn id(&self) -> SessionId {
        self.id
    }

    /// Returns the client of the session.
    #[must_use]
    pub const fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Returns the time at which it was made.
    #[must_use]
    pub const fn made(&self) -> Duration {
        self.made
    }

    /// Returns the number of connections that carry its requests, in either direction.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.channels().back.connections.len()
    }

    /// Returns the present number of its slots.
    #[must_use]
    pub fn slots_len(&self) -> u32 {
        self.channels().slots.len()
    }

    /// Notes the address of the server by which the client has made the session. If the address
    /// goes to another server, so does the session.
    pub fn made_at(&self, address: IpAddr) {
        self.channels().address = Some(address);
    }

    /// Returns the attributes of the fore channel.
    #[must_use]
    pub const fn fore(&self) -> &ChannelAttrs {
        &self.fore
    }

    /// Returns the back channel, if there is one.
    #[must_use]
    pub fn back(&self) -> Option<BackChannel> {
        self.channels().back.channel.clone()
    }

    /// Returns the connections on which the server may send callbacks, the newest last.
    #[must_use]
    pub fn back_connections(&self) -> Vec<ConnectionId> {
        self.channels().back.connections.back().collect()
    }

    /// Returns the session as a plain value.
    ///
    /// # Errors
    /// [`crate::Error::Delay`]: a request is under way.
    pub(crate) fn exported(&self, now: Duration) -> Result<ExportedSession> {
        let channels = self.channels();
        let (slots_max, slots) = channels.slots.exported()?;
        let (age, back) = (now.saturating_sub(self.made), channels.back.channel.clone());
        Ok(ExportedSession { id: self.id, age, fore: self.fore, back, slots_max, slots })
    }

    /// Returns whether the client has answered on its back channel.
    pub(crate) fn is_reachable(&self) -> bool {
        let back = &self.channels().back;
        back.channel.is_some() && back.worked
    }

    pub(crate) fn channels(&self) -> MutexGuard<'_, Channels> {
        lock(&self.channels)
    }
}

impl Back {
    /// Returns whether no connection carries the back channel. This holds for a client that has not
    /// answered on it yet, too: it may believe that the connection of its CREATE_SESSION does.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.channel.is_some() && self.connections.back().next().is_none()
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Session(")?;
        self.id.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(")")
    }
}

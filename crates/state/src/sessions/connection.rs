//! Connections that are bound to a session (RFC 8881, 2.10.3.1 and 18.34).

use std::sync::Arc;
use std::time::Duration;

use crate::{
    BackChannel, CallbackSecurity, Caller, ConnectionId, Direction, Effect, Engine, Error, Result,
    Session, SessionId,
};

impl Engine {
    /// BIND_CONN_TO_SESSION. The connection is bound in the direction `wanted`, or only as fore
    /// channel if the session has no back channel.
    ///
    /// # Errors
    /// [`Error::BadSession`]. [`Error::WrongCred`]: the session belongs to another principal.
    /// [`Error::Inval`]: only the back channel is asked for, and the session has none.
    pub fn bind_connection(
        &self,
        now: Duration,
        session: &SessionId,
        (connection, wanted): (ConnectionId, Direction),
        caller: Caller,
    ) -> Result<Direction> {
        let session = self.session(session).ok_or(Error::BadSession)?;
        if !session.client.is_principal(&caller) {
            return Err(Error::WrongCred);
        }
        let mut channels = session.channels();
        let back = &mut channels.back;
        let direction = match (back.channel.is_some(), wanted) {
            (true, _) => wanted,
            (false, Direction::Back) => return Err(Error::Inval),
            (false, _) => Direction::Fore,
        };
        back.connections.bind(connection, direction);
        back.fault = false;
        drop(channels);
        session.client().move_to(caller.origin);
        session.client().renew(now);
        if direction.is_back() {
            self.effect_queue.push(Effect::Probe { client: Arc::clone(session.client()) });
        }
        Ok(direction)
    }

    /// BACKCHANNEL_CTL: sets the program and the credentials of callbacks (RFC 8881, 18.33).
    ///
    /// # Errors
    /// [`Error::WrongCred`]: the session belongs to another principal. [`Error::Inval`]: it has no
    /// back channel.
    pub fn backchannel_ctl(
        &self,
        session: &Session,
        (program, security): (u32, Box<[CallbackSecurity]>),
        caller: Caller,
    ) -> Result<()> {
        if !session.client.is_principal(&caller) {
            return Err(Error::WrongCred);
        }
        let mut channels = session.channels();
        let back = &mut channels.back;
        let BackChannel { attrs, minor, .. } = back.channel.take().ok_or(Error::Inval)?;
        back.channel = Some(BackChannel { attrs, minor, program, security });
        drop(channels);
        self.effect_queue.push(Effect::Probe { client: Arc::clone(session.client()) });
        Ok(())
    }

    /// Removes a closed connection from a session.
    pub fn connection_lost(&self, session: &SessionId, connection: ConnectionId) {
        if let Some(session) = self.session(session) {
            session.channels().back.connections.forget(connection);
        }
    }

    /// Notes that a client has answered on its callback channel.
    pub fn callbacks_work(&self, client: &Arc<crate::Client>) {
        client.set_callbacks(true);
        for session in client.sessions().iter().filter_map(|id| self.session(id)) {
            let back = &mut session.channels().back;
            (back.worked, back.fault) = (true, false);
        }
    }

    /// Notes that a client does not answer on its callback channel. The client is told so, and gets
    /// no delegations until it answers again.
    pub fn callbacks_fail(&self, client: &Arc<crate::Client>) {
        client.set_callbacks(false);
        for session in client.sessions().iter().filter_map(|id| self.session(id)) {
            let back = &mut session.channels().back;
            back.fault = back.channel.is_some() && back.worked;
        }
    }
}

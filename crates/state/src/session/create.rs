use std::sync::Arc;
use std::time::Duration;

use super::Channels;
use super::connection::Connections;
use super::slots::Slots;
use super::{Back, BackChannel, CallbackSecurity, ChannelAttrs, Direction, Session};
use crate::client::{ClientState, Standing};
use crate::effect::Effect;
use crate::memory_pool::Portion;
use crate::sync::Mutex;
use crate::{Caller, Client, ClientId, ConnectionId, Desk, Engine, Error, Result, SessionId};

/// The arguments of CREATE_SESSION (RFC 8881, 18.36).
#[derive(Debug, Clone)]
pub struct CreateSession {
    /// Whose it is to be.
    pub clientid: ClientId,
    /// The next sequence of the client's, as EXCHANGE_ID told it.
    pub sequenceid: u32,
    /// Who calls, and from where.
    pub caller: Caller,
    /// On which connection.
    pub connection: ConnectionId,
    /// Whether that shall carry callbacks too (`CREATE_SESSION4_FLAG_CONN_BACK_CHAN`).
    pub back_wanted: bool,
    /// What the client wishes for its requests ...
    pub fore: ChannelAttrs,
    /// ... and the server's.
    pub back: ChannelAttrs,
    /// In which minor version it was asked for: that of its callbacks too.
    pub minor: u32,
    /// The RPC program of its callbacks.
    pub program: u32,
    /// The credentials it takes there.
    pub security: Box<[CallbackSecurity]>,
}

/// The results of CREATE_SESSION.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreatedSession {
    /// The new session.
    pub session: SessionId,
    /// The request's own sequence.
    pub sequenceid: u32,
    /// Whether the connection carries callbacks.
    pub back: Option<ChannelAttrs>,
    /// What was agreed on.
    pub fore: ChannelAttrs,
    /// What the client said about its way back, cut to what the server uses.
    pub back_attrs: ChannelAttrs,
}

/// The slot of a client's CREATE_SESSIONs: the last that was granted, and its answer.
#[derive(Debug, Default)]
pub(crate) struct Creation {
    sequenceid: u32,
    answer: Option<CreatedSession>,
}

impl Creation {
    /// What the next must say.
    pub(crate) const fn expected(&self) -> u32 {
        self.sequenceid.wrapping_add(1)
    }

    /// The answer of the last one, if this is it again.
    fn replay(&self, sequenceid: u32) -> Result<Option<CreatedSession>> {
        match self.answer {
            Some(answer) if sequenceid == self.sequenceid => Ok(Some(answer)),
            _ if sequenceid == self.expected() => Ok(None),
            _ => Err(Error::SeqMisordered),
        }
    }
}

impl Engine {
    /// CREATE_SESSION. The first one confirms the client; what it had in an earlier life is gone
    /// then.
    ///
    /// # Errors
    /// [`Error::StaleClientid`], [`Error::SeqMisordered`]; [`Error::ClidInuse`]: the client was
    /// introduced by another principal, or its name is in use; [`Error::Toosmall`];
    /// [`Error::Nospc`]: too many sessions;
    /// [`Error::Delay`]: no memory for replies, or none beside what the client has of it.
    pub fn create_session(&self, now: Duration, args: &CreateSession) -> Result<CreatedSession> {
        let mut names = self.clients.names();
        let client = self.clients.get(args.clientid).ok_or(Error::StaleClientid)?;
        if client.desk != Desk::ExchangeId {
            return Err(Error::StaleClientid);
        }
        let mut state = client.live().map_err(|_| Error::StaleClientid)?;
        if !client.is_principal(args.caller) {
            return Err(Error::ClidInuse);
        }
        if let Some(made) = state.creation.replay(args.sequenceid)? {
            return Ok(made);
        }
        if state.standing == Standing::Unconfirmed {
            // When it was introduced the name may have been free to be taken.
            let holder = names.confirmed(client.desk, &client.owner);
            let holder = holder.filter(|old| self.is_in_use(now, old));
            self.may_take_name(holder, (client.desk, &client.name()), args.caller)?;
        }
        // What is refused changes nothing, the sequence neither.
        let made = self.build((now, &client), &mut state, args)?;
        state.creation = Creation { sequenceid: args.sequenceid, answer: Some(made) };
        drop(state);
        client.move_to(args.caller.origin);
        client.renew(now);
        if let Some(old) = self.confirm(&mut names, &client) {
            self.discard(now, &mut names, &old);
        }
        Ok(made)
    }

    fn build(
        &self,
        (made, client): (Duration, &Arc<Client>),
        state: &mut ClientState,
        args: &CreateSession,
    ) -> Result<CreatedSession> {
        if state.sessions.len() >= self.settings.limits.sessions_per_client {
            return Err(Error::Nospc);
        }
        let fore = args.fore.fore(self.settings.message_bytes_max)?;
        let back_attrs = args.back.back()?;
        let slots = Slots::new(self.replies(client), &fore, &self.settings.limits)?;
        let fore = ChannelAttrs { requests_max: slots.len(), ..fore };
        state.sessions_made += 1;
        let id = SessionId::new(&self.settings.secret, client.id, state.sessions_made);
        let channel = args.back_wanted.then(|| BackChannel {
            attrs: back_attrs,
            minor: args.minor,
            program: args.program,
            security: args.security.clone(),
        });
        let mut connections = Connections::default();
        let direction = if args.back_wanted { Direction::Both } else { Direction::Fore };
        connections.bind(args.connection, direction);
        let back = Back { channel, connections, fault: false, worked: false };
        let channels = Mutex::new(Channels { slots, back });
        let session = Session { id, client: Arc::clone(client), made, fore, channels };
        state.sessions.push(id);
        self.sessions.insert(Arc::new(session));
        if args.back_wanted {
            self.outbox.push(Effect::Probe { client: Arc::clone(client) });
        }
        let back = args.back_wanted.then_some(back_attrs);
        Ok(CreatedSession { session: id, sequenceid: args.sequenceid, back, fore, back_attrs })
    }

    /// A session by its id.
    #[must_use]
    pub fn session(&self, id: &SessionId) -> Option<Arc<Session>> {
        self.sessions.get(id)
    }

    /// DESTROY_SESSION (RFC 8881, 18.37). The client keeps its state until its lease is over.
    ///
    /// # Errors
    /// [`Error::BadSession`]; [`Error::WrongCred`]: it is another principal's;
    /// [`Error::ConnNotBound`]: it came on a connection that is none of the session's.
    pub fn destroy_session(
        &self,
        id: &SessionId,
        (connection, caller): (ConnectionId, Caller),
    ) -> Result<()> {
        let session = self.session(id).ok_or(Error::BadSession)?;
        if !session.client.is_principal(caller) {
            return Err(Error::WrongCred);
        }
        if !session.channels().back.connections.has(connection) {
            return Err(Error::ConnNotBound);
        }
        session.client.state().sessions.retain(|other| other != id);
        self.drop_session(id);
        Ok(())
    }

    /// The memory for replies, as this client meets it.
    pub(super) fn replies<'a>(&'a self, client: &'a Client) -> Portion<'a> {
        Portion { pool: &self.reply_cache, share: &client.replies }
    }

    pub(crate) fn drop_session(&self, id: &SessionId) {
        if let Some(session) = self.sessions.remove(id) {
            session.channels().slots.close(self.replies(&session.client));
        }
    }
}

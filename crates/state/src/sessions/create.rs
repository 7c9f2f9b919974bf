use std::sync::Arc;
use std::time::Duration;

use crate::channel::{Connections, Creation, Slots};
use crate::client_state::{ClientState, Standing};
use crate::session::{Back, Channels};
use crate::sync::Mutex;
use crate::{
    BackChannel, CallbackSecurity, Caller, ChannelAttrs, Client, ClientId, ClientProtocol,
    ConnectionId, CreatedSession, Direction, Effect, Engine, Error, Result, Session, SessionId,
};

/// The arguments of CREATE_SESSION (RFC 8881, 18.36).
#[derive(Debug, Clone)]
pub struct CreateSession {
    /// The client.
    pub clientid: ClientId,
    /// The client's next sequenceid; EXCHANGE_ID returned the first one.
    pub sequenceid: u32,
    /// The principal and the origin of the call.
    pub caller: Caller,
    /// The connection of the call.
    pub connection: ConnectionId,
    /// True if the connection should also carry callbacks (`CREATE_SESSION4_FLAG_CONN_BACK_CHAN`).
    pub back_wanted: bool,
    /// The attributes that the client asks for in the fore channel.
    pub fore: ChannelAttrs,
    /// The attributes that the client asks for in the back channel.
    pub back: ChannelAttrs,
    /// The minor version of the call, which the session's callbacks use, too.
    pub minor: u32,
    /// The RPC program of its callbacks.
    pub program: u32,
    /// The credentials that the client accepts in callbacks.
    pub security: Box<[CallbackSecurity]>,
}

impl Engine {
    /// CREATE_SESSION. The first one confirms the client, and ends the state of its earlier
    /// instance.
    ///
    /// # Errors
    /// [`Error::StaleClientid`], [`Error::SeqMisordered`]. [`Error::ClidInuse`]: another principal
    /// introduced the client, or its name is in use. [`Error::Toosmall`]. [`Error::Nospc`]: there
    /// are too many sessions. [`Error::Delay`]: the memory for replies is short, or the client has
    /// its share of it.
    pub fn create_session(&self, now: Duration, args: &CreateSession) -> Result<CreatedSession> {
        let mut names = self.clients.names();
        let client = self.clients.get(args.clientid).ok_or(Error::StaleClientid)?;
        if client.protocol != ClientProtocol::ExchangeId {
            return Err(Error::StaleClientid);
        }
        let mut state = client.live().map_err(|_| Error::StaleClientid)?;
        if !client.is_principal(&args.caller) {
            return Err(Error::ClidInuse);
        }
        if let Some(made) = state.creation.replay(args.sequenceid)? {
            return Ok(made);
        }
        if state.standing == Standing::Unconfirmed {
            // Another client may have taken the name since EXCHANGE_ID.
            let holder = names.confirmed(&client.recorded());
            let holder = holder.filter(|old| self.is_in_use(now, old));
            self.may_take_name(holder, (client.protocol, &client.name()), args.caller)?;
        }
        // A refused request changes nothing, not even the sequenceid.
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
        // Another engine may have sent any number with the client.
        state.sessions_made = state.sessions_made.wrapping_add(1);
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
        let channels = Mutex::new(Channels { slots, back, address: None });
        let session = Session { id, client: Arc::clone(client), made, fore, channels };
        state.sessions.push(id);
        self.sessions.insert(Arc::new(session));
        if args.back_wanted {
            self.effect_queue.push(Effect::Probe { client: Arc::clone(client) });
        }
        let back = args.back_wanted.then_some(back_attrs);
        Ok(CreatedSession { session: id, sequenceid: args.sequenceid, back, fore, back_attrs })
    }

    /// DESTROY_SESSION (RFC 8881, 18.37). The client keeps its state until its lease expires.
    ///
    /// # Errors
    /// [`Error::BadSession`]. [`Error::WrongCred`]: the session belongs to another principal.
    /// [`Error::ConnNotBound`]: the connection of the call is not bound to the session.
    pub fn destroy_session(
        &self,
        id: &SessionId,
        (connection, caller): (ConnectionId, Caller),
    ) -> Result<()> {
        let session = self.session(id).ok_or(Error::BadSession)?;
        if !session.client.is_principal(&caller) {
            return Err(Error::WrongCred);
        }
        if !session.channels().back.connections.has(connection) {
            return Err(Error::ConnNotBound);
        }
        session.client.state().sessions.retain(|other| other != id);
        self.drop_session(id);
        Ok(())
    }
}

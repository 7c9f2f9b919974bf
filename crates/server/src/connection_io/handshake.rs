//! The TLS handshake of a connection, between the reply to the probe for TLS and the first
//! encrypted record (RFC 9289, 4.1).

use std::sync::Arc;

use comity_credential::Channel;
use comity_rpc::Admission;
use comity_tls::{Established, Handshake, HandshakeError, HandshakeStep};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::ConnectionIo;
use crate::blocking::blocking;
use crate::close_reason::CloseReason;
use crate::connection::Connection;
use crate::event_loop::After;
use crate::handshaking::Handshaking;
use crate::limits::HANDSHAKE_RECEIVE_BYTES;
use crate::memory_budget::Account;
use crate::service::Service;
use crate::transport::Tls;

/// Counts a thread as sleeping for a client while it computes.
struct Busy(Arc<Account>);

impl Busy {
    fn begin(account: &Arc<Account>) -> Self {
        account.sleepers.begin();
        Self(Arc::clone(account))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.sleepers.end();
    }
}

impl<S: Service> ConnectionIo<'_, '_, S> {
    /// Begins a handshake after the reply STARTTLS, which is sent first.
    ///
    /// # Errors
    /// The connection ends: replies to other calls are not sent yet, or there is no memory.
    pub(super) fn begin_tls(&mut self) -> Result<After, CloseReason> {
        self.send()?;
        let is_owed = self.connection.backlog.is_some() || self.connection.away > 0;
        if is_owed || !self.lates.is_empty() {
            return Err(CloseReason::EarlyBytes);
        }
        let Some(acceptor) = &self.shared.settings.tls else { return Err(CloseReason::EarlyBytes) };
        let handshake = acceptor.begin().map_err(|error| CloseReason::Handshake(error.into()))?;
        let charge = self.connection.place.account.charge(comity_tls::limits::HANDSHAKE_BYTES_MAX);
        let _charge = charge.ok_or(CloseReason::Memory)?;
        let begun = self.shared.seconds();
        let handshaking = Handshaking { handshake, begun, is_counted: false, _charge };
        self.connection.handshaking = Some(Box::new(handshaking));
        self.connection.stream.begin_handshake();
        Ok(After::Again)
    }

    /// Continues the handshake of the connection, if one is under way; otherwise returns `None`.
    ///
    /// # Errors
    /// The connection ends.
    pub(super) fn shake_hands(&mut self) -> Result<Option<After>, CloseReason> {
        let Some(mut handshaking) = self.connection.handshaking.take() else { return Ok(None) };
        if let Some(after) = self.must_wait(&mut handshaking) {
            self.connection.handshaking = Some(handshaking);
            return Ok(Some(after));
        }
        loop {
            if !self.receive_handshake(&mut handshaking.handshake)? {
                self.connection.handshaking = Some(handshaking);
                return Ok(Some(After::Wait));
            }
            if !handshaking.handshake.has_record() {
                continue;
            }
            match self.advance(handshaking.handshake)? {
                HandshakeStep::Pending(handshake) => handshaking.handshake = handshake,
                HandshakeStep::Done(established) => {
                    self.secure(*established)?;
                    return Ok(None);
                }
            }
        }
    }

    /// Returns how the handshake waits, if it must not use a thread now: its client uses its share
    /// of the threads, or no export is offered to the peer and such peers have begun many
    /// handshakes in this second.
    fn must_wait(&self, handshaking: &mut Handshaking) -> Option<After> {
        let Connection { place, call_back, .. } = &*self.connection;
        let threads = self.shared.sleepers_max();
        if place.account.sleepers.postpone(&call_back.backchannel, threads) {
            return Some(After::Wait);
        }
        let now = self.shared.seconds();
        let is_counted = handshaking.is_counted || place.is_listed();
        handshaking.is_counted =
            is_counted || self.shared.handshakes.take_stranger(&place.account, now);
        (!handshaking.is_counted).then_some(After::Starved)
    }

    /// Receives bytes of the handshake; `false` if none have arrived.
    fn receive_handshake(&mut self, handshake: &mut Handshake) -> Result<bool, CloseReason> {
        let mut buffer = [0; HANDSHAKE_RECEIVE_BYTES];
        loop {
            let socket = self.connection.stream.socket();
            match rustix::net::recv(socket, &mut buffer, RecvFlags::empty()) {
                Ok((0, _)) => return Err(CloseReason::Closed),
                Ok((count, _)) => {
                    self.connection.heard(self.shared.seconds());
                    let received = handshake.receive(buffer.get(..count).unwrap_or_default());
                    return received.map(|()| true).map_err(CloseReason::Handshake);
                }
                Err(Errno::AGAIN) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(error) => return Err(CloseReason::Broken(error.into())),
            }
        }
    }

    /// Does the next step, while another thread serves the other connections: the cryptography
    /// takes as long as a hundred small calls.
    fn advance(&mut self, handshake: Box<Handshake>) -> Result<HandshakeStep, CloseReason> {
        let mut out = Vec::new();
        let step: Result<HandshakeStep, HandshakeError> = {
            let _busy = Busy::begin(&self.connection.place.account);
            let slots = &self.shared.handshakes;
            blocking(|| slots.run(|| handshake.advance(&mut out)))
        };
        self.send_handshake(&out)?;
        step.map_err(CloseReason::Handshake)
    }

    /// Sends a message of the handshake, which is short and the first data in the socket's send
    /// buffer.
    fn send_handshake(&self, mut flight: &[u8]) -> Result<(), CloseReason> {
        while !flight.is_empty() {
            match rustix::net::send(self.connection.stream.socket(), flight, SendFlags::NOSIGNAL) {
                Ok(sent) => flight = flight.get(sent..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(error) => return Err(CloseReason::Broken(error.into())),
            }
        }
        Ok(())
    }

    /// Finishes the handshake: the identity that the peer has proved counts from now on.
    fn secure(&mut self, mut established: Established) -> Result<(), CloseReason> {
        let channel = Channel::Tls(established.identity.take());
        self.counters.handshaken(channel.kind());
        let account = &self.connection.place.account;
        let tls = Tls::new(established, account).map_err(|_| CloseReason::Memory)?;
        self.connection.stream.secure(tls);
        self.connection.secured(&channel, self.shared.seconds());
        let peer = self.connection.peer;
        tracing::debug!(%peer, %channel, "TLS");
        if let Some(visitor) = self.shared.service.secured(&self.visitor, channel) {
            self.visitor = Arc::new(visitor);
            self.connection.visitor = Arc::clone(&self.visitor);
        }
        let is_admitted = || self.shared.service.dispatcher().admission(&self.visitor);
        if !self.connection.place.is_listed() && is_admitted() == Admission::Admitted {
            self.connection.place.list();
        }
        Ok(())
    }
}

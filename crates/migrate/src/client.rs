//! The source's side of the migration program.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use comity_export::PeerServer;
use comity_programs::{ClientError, ProgramClient, whole};
use comity_proto::migration::{
    CHUNK_BYTES_MAX, ForwardArgs, ForwardedReply, HostsReply, LoadReply, MigrationArgs,
    MigrationId, PROGRAM, SendArgs, VERSION, procedure,
};
use comity_tls::client::{ClientIdentity, ServerTrust};
use comity_xdr::Opaque;

use crate::ForwardingHosts;
use crate::forwarding_hosts::mapped;

/// A connection of a source to a target.
pub struct MigrationClient(ProgramClient);

/// The reason why a call failed.
pub type MigrationError = ClientError;

impl MigrationClient {
    /// Connects to a peer, which must prove its key; `identity` proves the key of this server.
    ///
    /// # Errors
    /// [`MigrationError`].
    pub fn connect(
        peer: &PeerServer,
        identity: Arc<ClientIdentity>,
    ) -> Result<Self, MigrationError> {
        let trust = ServerTrust::new(Some(peer.key));
        let place = (&*peer.host, peer.port);
        ProgramClient::connect(place, (PROGRAM, VERSION), identity, &trust).map(Self)
    }

    /// Connects to a peer to ask for its load, and returns it; gives the peer this time for each of
    /// the two.
    ///
    /// # Errors
    /// [`MigrationError`].
    pub fn load(
        peer: &PeerServer,
        identity: Arc<ClientIdentity>,
        time: Duration,
    ) -> Result<LoadReply, MigrationError> {
        let trust = ServerTrust::new(Some(peer.key));
        let place = (&*peer.host, peer.port);
        let mut client =
            ProgramClient::connect_within(time, place, (PROGRAM, VERSION), (identity, &trust))?;
        client.value(procedure::LOAD, &())
    }

    /// Asks whether the target could take exports over, and begins a transfer.
    ///
    /// # Errors
    /// [`MigrationError`].
    pub fn offer(&mut self, offer: &MigrationArgs<'_>) -> Result<(), MigrationError> {
        self.0.value(procedure::OFFER, offer)
    }

    /// Sends the state of the clients.
    ///
    /// # Errors
    /// [`MigrationError`]; also if not all is sent at `until`.
    pub fn send(
        &mut self,
        id: MigrationId,
        state: &[u8],
        until: Instant,
    ) -> Result<(), MigrationError> {
        let mut offset = 0;
        for bytes in state.chunks(CHUNK_BYTES_MAX as usize) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::Error::from(ErrorKind::TimedOut).into());
            }
            let part = SendArgs { id, offset, bytes: Opaque(bytes) };
            self.0.call_within(left, (procedure::SEND, &part), |reply| reply.value::<()>().ok())?;
            offset += bytes.len() as u64;
        }
        Ok(())
    }

    /// Makes the target serve the exports.
    ///
    /// # Errors
    /// [`MigrationError`]. After [`ClientError::Failed`] the target does not serve them. After any
    /// other error it may, and [`MigrationClient::outcome`] tells.
    pub fn take(&mut self, offer: &MigrationArgs<'_>) -> Result<(), MigrationError> {
        self.0.value(procedure::TAKE, offer)
    }

    /// Returns whether the target has completed a migration. If it has not, it never will.
    ///
    /// # Errors
    /// [`MigrationError`].
    pub fn outcome(&mut self, id: MigrationId) -> Result<bool, MigrationError> {
        self.0.value(procedure::OUTCOME, &id)
    }

    /// Returns the hosts that have locks there and reach it through this server, which gives it
    /// `time` for that.
    ///
    /// # Errors
    /// [`MigrationError`].
    pub fn hosts(&mut self, time: Duration) -> Result<ForwardingHosts, MigrationError> {
        let call = (procedure::HOSTS, &());
        self.0
            .call_within(time, call, |reply| whole::<HostsReply>(reply).map(ForwardingHosts::from))
    }

    /// Forwards a call of a client, an RPC message without a record mark. Returns the reply, which
    /// is empty if the client gets none. The server has `time` for it.
    ///
    /// # Errors
    /// [`MigrationError`]. After [`ClientError::Failed`] the call was not executed.
    pub fn forward(
        &mut self,
        time: Duration,
        client: SocketAddr,
        call: &[u8],
    ) -> Result<Vec<u8>, MigrationError> {
        let (address, port) = (mapped(client.ip()), client.port().into());
        let args = ForwardArgs { address, port, call: Opaque(call) };
        self.0.call_within(time, (procedure::FORWARD, &args), |reply| {
            whole::<ForwardedReply<'_>>(reply).map(|reply| reply.0.to_vec())
        })
    }
}

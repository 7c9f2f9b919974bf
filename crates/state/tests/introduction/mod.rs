//! The arguments with which clients of the tests introduce themselves.

use comity_state::{Caller, ChannelAttrs, ConnectionId, CreateSession, Exchanged};

/// Returns the arguments of CREATE_SESSION of minor version 1 for a client that EXCHANGE_ID has
/// introduced, on this connection, with the same attributes for both channels. The connection is
/// wanted as a back channel.
pub(crate) fn session_of(
    known: &Exchanged,
    (caller, connection): (Caller, u64),
    attrs: ChannelAttrs,
) -> CreateSession {
    CreateSession {
        clientid: known.clientid,
        sequenceid: known.sequenceid,
        caller,
        connection: ConnectionId(connection),
        back_wanted: true,
        fore: attrs,
        back: attrs,
        minor: 1,
        program: 1,
        security: Box::default(),
    }
}

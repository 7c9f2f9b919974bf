//! The records of clients, without their lists.

use std::time::Duration;

use comity_xdr::{Decoder, Encoder, Malformed};

use super::value::{Field, fields, variants};
use crate::{
    Announced, CallbackAddress, Caller, ClientId, ClientOwner, ClientProtocol, CreatedSession,
    ExportedClient, Origin, Result, Verifier,
};

fields!(ExportedClient {
    id: ClientId,
    given_out: u32,
    protocol: ClientProtocol,
    name: ClientOwner,
    introduced_by: Caller,
    origin: Origin,
    silent: Duration,
    courteous: bool,
    told: Option<Duration>,
    callback: Option<CallbackAddress>,
    announced: Option<Announced>,
    confirmed_by: Option<Verifier>,
    reclaim_complete: bool,
    monitor_state: i32,
    create_sequenceid: u32,
    created: Option<CreatedSession>,
    sessions_made: u64,
    last_number: u32,
} except granted, sessions, owners, states);

variants!(ClientProtocol { 0 => Setclientid, 1 => ExchangeId, 2 => Nlm });
fields!(ClientOwner { verifier: Verifier, id: Box<[u8]> });
fields!(CallbackAddress { program: u32, netid: Box<[u8]>, address: Box<[u8]>, ident: u32 });
fields!(Announced { confirm: Verifier, callback: CallbackAddress });

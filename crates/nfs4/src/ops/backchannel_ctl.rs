//! BACKCHANNEL_CTL (RFC 8881, 18.33): sets the program and the credential of callbacks.

use comity_proto::nfs4::{BackchannelCtl4args, Nfsstat4};
use comity_xdr::{Decoder, Encoder};

use super::create_session::security;
use crate::compound::Compound;
use crate::sequencing::Sequencing;
use crate::stop::{Stop, refused};

pub(super) fn backchannel_ctl(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    _: &mut Encoder,
) -> Result<(), Stop> {
    let args = args.value::<BackchannelCtl4args<'_>>()?;
    let Sequencing::Sequenced(sequenced) = &compound.sequencing else {
        return Err(Nfsstat4::OpIllegal.into());
    };
    let ticket = sequenced.ticket.as_ref().ok_or(Stop::Status(Nfsstat4::OpNotInSession))?;
    let wanted = (args.cb_program, security(&args.sec_parms.0));
    let engine = compound.engine();
    engine.backchannel_ctl(ticket.session(), wanted, compound.caller).map_err(refused)
}

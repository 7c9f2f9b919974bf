//! SETCLIENTID (RFC 7530, 16.33): a client introduces itself.

use comity_proto::nfs4::{Component4, Netaddr4, Nfsstat4, Setclientid4args, SetclientidConfirm4};
use comity_state::{CallbackAddress, Error, Setclientid};
use comity_xdr::{Decoder, Encoder, Opaque};

use crate::callback::believed;
use crate::compound::Compound;
use crate::state_context::owner_of;
use crate::stop::{Stop, refused};

pub(super) fn setclientid(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let args = args.value::<Setclientid4args<'_>>()?;
    let said = CallbackAddress {
        program: args.callback.cb_program,
        netid: args.callback.cb_location.netid.0.into(),
        address: args.callback.cb_location.addr.0.into(),
        ident: args.callback_ident,
    };
    let callback = believed(said, compound.visitor.peer().ip());
    let (owner, caller) = (owner_of(&args.client), compound.caller);
    let wanted = Setclientid { owner, caller, callback };
    match compound.engine().setclientid(compound.now(), wanted) {
        Ok(introduced) => {
            compound.note_address(introduced.clientid);
            let (clientid, confirm) = (introduced.clientid.0, introduced.confirm.0);
            reply.value(&SetclientidConfirm4 { clientid, confirm });
            Ok(())
        }
        Err(Error::ClidInuse) => {
            // The reply does not contain the address of the client that uses the name.
            let nowhere: Component4<'_> = Opaque(&[]);
            reply.value(&Netaddr4 { netid: nowhere, addr: nowhere });
            Err(Stop::Told(Nfsstat4::ClidInUse))
        }
        Err(error) => Err(refused(error)),
    }
}

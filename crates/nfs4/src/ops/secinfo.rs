//! SECINFO and SECINFO_NO_NAME (RFC 8881, 18.29, 18.45): the security flavors that an object
//! accepts. From 4.1 on they clear the current filehandle.

use comity_export::Export;
use comity_proto::nfs4::{Component4, SecinfoStyle4};
use comity_rpc::Flavor;
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::filehandle::{Finding, Object};
use crate::stop::Stop;

/// The flavors above the exports: AUTH_SYS, whose ids do not matter there.
const ABOVE: &[Flavor] = &[Flavor::SYS];

pub(super) fn secinfo(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let name = compound.component(args.value::<Component4<'_>>()?.0)?;
    let found = compound.find(name)?;
    say(compound, &found, reply);
    if compound.minor > 0 {
        compound.current = None;
    }
    Ok(())
}

pub(super) fn secinfo_no_name(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let object = match args.value()? {
        SecinfoStyle4::CurrentFh => compound.object()?.clone(),
        SecinfoStyle4::Parent => compound.above()?,
    };
    say(compound, &Finding::Object(object), reply);
    compound.current = None;
    Ok(())
}

fn say(compound: &Compound<'_>, found: &Finding<'_>, reply: &mut Encoder) {
    match found {
        Finding::Object(Object::In(view, _)) => list(reply, &view.rules().flavors),
        Finding::Object(Object::Pseudo(_)) => list(reply, ABOVE),
        Finding::Object(Object::Absent(absent)) => say_export(compound, absent.export(), reply),
        Finding::Export(export) => say_export(compound, export, reply),
    }
}

fn say_export(compound: &Compound<'_>, export: &Export, reply: &mut Encoder) {
    match export.rules(compound.visitor) {
        // No flavor is enough on a channel that the export does not take.
        Some(rules) if !rules.channels.take(compound.visitor.channel().kind()) => {
            list(reply, &[]);
        }
        Some(rules) => list(reply, &rules.flavors),
        None => list(reply, ABOVE),
    }
}

fn list(reply: &mut Encoder, flavors: &[Flavor]) {
    reply.value(&(flavors.len() as u32));
    flavors.iter().for_each(|flavor| reply.value(flavor));
}

//! WHOAMI, WHY and ID: the caller as the server knows it, the reasons of its rights, and the ids of
//! objects.

use comity_grants::Operation;
use comity_proto::grants::{Status, Text, WhyArgs};
use comity_rpc::Call;
use comity_xdr::{Encoder, Malformed};

use crate::answer::{CallFailure, answer, read, text};
use crate::request::Request;

pub(crate) fn whoami(
    request: &Request<'_>,
    call: &Call<'_>,
    reply: &mut Encoder,
) -> Result<u32, Malformed> {
    call.arguments::<()>()?;
    let account = request.grants.accounts().get(&request.key).map(|account| account.user.clone());
    let held = request.grants.held_by(&request.key).len();
    let acts = match account {
        Some(user) => format!("acts as user {user}"),
        None => format!("acts by {held} credentials"),
    };
    let (key, fingerprint) = (request.key, request.key.fingerprint());
    Ok(answer(reply, Ok(text(&format!("key {key} ({fingerprint})\n{acts}\n")))))
}

pub(crate) fn why(
    request: &Request<'_>,
    call: &Call<'_>,
    reply: &mut Encoder,
) -> Result<u32, Malformed> {
    let WhyArgs { path, operation } = call.arguments()?;
    let report = || -> Result<String, CallFailure> {
        let operation = operation_named(read(&operation)?)?;
        let (view, node) = request.enter(read(&path)?)?;
        view.why(&node, operation).map_err(CallFailure::of_path)
    };
    let report = report();
    Ok(answer(reply, report.as_ref().map(|report| text(report)).map_err(Clone::clone)))
}

pub(crate) fn id(
    request: &Request<'_>,
    call: &Call<'_>,
    reply: &mut Encoder,
) -> Result<u32, Malformed> {
    let path: Text<'_> = call.arguments()?;
    let id = || -> Result<String, CallFailure> {
        let (view, node) = request.enter(read(&path)?)?;
        Ok(view.object_id(&node))
    };
    let id = id();
    Ok(answer(reply, id.as_ref().map(|id| text(id)).map_err(Clone::clone)))
}

/// The operation of a name; `None` if the name is empty, for all of them.
fn operation_named(name: &str) -> Result<Option<Operation>, CallFailure> {
    let found = Operation::ALL.into_iter().find(|operation| operation.name() == name);
    let names = Operation::ALL.map(Operation::name).join(", ");
    let unknown = || CallFailure::new(Status::Invalid, format!("the operations are {names}"));
    if name.is_empty() { Ok(None) } else { found.map(Some).ok_or_else(unknown) }
}

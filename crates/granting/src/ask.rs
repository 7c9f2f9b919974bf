//! WHOAMI, WHY, ID and FETCH: the caller's identity at the server, the reasons for rights, the ids
//! of objects, and the credentials for objects that the caller made.

use comity_grants::{FetchError, Operation};
use comity_keys::PublicKey;
use comity_programs::{CallFailure, answer, text};
use comity_proto::grants::{Status, Text, WhyArgs};
use comity_rpc::Call;
use comity_xdr::{Encoder, Malformed};

use crate::answer::{of_path, read};
use crate::request::Request;

/// The message if a caller may not ask for the reasons of another key's rights.
const NOT_ABOVE: &str = "no credential here leads from this key to that one: the owner of a key, \
    everybody above it in a chain, and the administrator (`comity why --admin`) may ask";

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
    let WhyArgs { path, operation, key } = call.arguments()?;
    let report = || -> Result<String, CallFailure> {
        let operation = operation_named(read(&operation)?)?;
        let key = key_named(read(&key)?)?.filter(|key| *key != request.key);
        if key.is_some_and(|key| !request.grants.may_ask_about(&request.key, &key)) {
            return Err(CallFailure::new(Status::Denied, NOT_ABOVE));
        }
        let (view, node) = request.enter(read(&path)?)?;
        let told = match key {
            None => view.why(&node, operation),
            Some(key) => view.why_of(&key, &node, operation),
        };
        told.map_err(of_path)
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

pub(crate) fn fetch(
    request: &Request<'_>,
    call: &Call<'_>,
    reply: &mut Encoder,
) -> Result<u32, Malformed> {
    let path: Text<'_> = call.arguments()?;
    let credential = || -> Result<String, CallFailure> {
        let (view, node) = request.enter(read(&path)?)?;
        view.fetch(&node).map_err(|why| match why {
            FetchError::NotCreator => CallFailure::new(Status::NotFound, why),
            FetchError::NoKey | FetchError::Sign(_) => CallFailure::new(Status::Fault, why),
        })
    };
    let credential = credential();
    Ok(answer(reply, credential.as_ref().map(|one| text(one)).map_err(Clone::clone)))
}

/// The operation with a name; `None` for the empty name, which stands for all operations.
fn operation_named(name: &str) -> Result<Option<Operation>, CallFailure> {
    let found = Operation::ALL.into_iter().find(|operation| operation.name() == name);
    let names = Operation::ALL.map(Operation::name).join(", ");
    let unknown = || CallFailure::new(Status::Invalid, format!("the operations are {names}"));
    if name.is_empty() { Ok(None) } else { found.map(Some).ok_or_else(unknown) }
}

/// The key in a text; `None` if the text is empty.
fn key_named(text: &str) -> Result<Option<PublicKey>, CallFailure> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|why| CallFailure::new(Status::Invalid, format!("{why}")))
}

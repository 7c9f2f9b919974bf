use super::{are_unique, require};
use crate::limits::{CALLBACK_SECURITIES_MAX, MACHINE_BYTES_MAX, MACHINE_GROUPS_MAX};
use crate::migration::error::{ImportRefusal, Section};
use crate::{
    BackChannel, CallbackSecurity, ClientProtocol, Error, ExportedClient, ExportedReply,
    ExportedSession, Result, Settings,
};

/// Checks the sessions of a client.
pub(super) fn check(client: &ExportedClient, settings: &Settings) -> Result<(), ImportRefusal> {
    let limits = &settings.limits;
    let few = client.sessions.len() <= limits.sessions_per_client
        && client.sessions.iter().all(|it| it.slots.len() <= limits.slots_per_session as usize);
    if !few {
        return Err(ImportRefusal::Client(client.id, Error::Resource));
    }
    let has_sessions = client.protocol == ClientProtocol::ExchangeId;
    let holds = has_sessions || client.sessions.is_empty();
    require(holds, Section::Sessions, "a client without sessions has some")?;
    let ids = client.sessions.iter().map(|session| session.id);
    require(are_unique(ids), Section::Sessions, "two sessions have the same sessionid")?;
    client.sessions.iter().try_for_each(|session| check_session(session, settings))
}

fn check_session(session: &ExportedSession, settings: &Settings) -> Result<(), ImportRefusal> {
    let cached_max = session.fore.response_cached_bytes_max;
    // CREATE_SESSION grants these attributes to a client that asks for them.
    let holds = session.fore.fore(settings.message_bytes_max) == Ok(session.fore)
        && session.back.as_ref().is_none_or(is_granted);
    require(holds, Section::Sessions, "a channel has attributes that this server does not grant")?;
    let holds = !session.slots.is_empty() && session.slots_max <= settings.limits.slots_per_session;
    require(holds, Section::Sessions, "a session has no slots, or may have too many")?;
    let fits = |reply: &ExportedReply| match reply {
        ExportedReply::Whole(reply) => reply.len() <= cached_max as usize,
        ExportedReply::None | ExportedReply::Sequence(_) => true,
    };
    let holds = session.slots.iter().all(|slot| fits(&slot.reply));
    require(holds, Section::Sessions, "a reply is longer than its session allows")
}

fn is_granted(back: &BackChannel) -> bool {
    let fits = |security: &CallbackSecurity| match security {
        CallbackSecurity::None => true,
        CallbackSecurity::Sys { machine, gids, .. } => {
            machine.len() <= MACHINE_BYTES_MAX && gids.len() <= MACHINE_GROUPS_MAX
        }
    };
    back.attrs.back() == Ok(back.attrs)
        && back.security.len() <= CALLBACK_SECURITIES_MAX
        && back.security.iter().all(fits)
}

//! Reports on the clients of a running server and evicts one: the server's side of `comity clients`
//! and `comity evict`.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use comity_export::Plan;
use comity_nfs4::Memory;
use comity_state::{
    Awaited, ByteRange, Client, ClientId, ClientProtocol, ClientSummary, CopyUnderWay,
    DelegationKind, FileKey, HeldState, LockType, Session, Share, StateDetails, Waiting,
};
use serde_json::{Value, json};

use crate::limits::{CLIENTS_PAGE, STATES_PAGE, WAITS_SHOWN_MAX};

/// The state of clients, and the exports.
pub(crate) struct ClientAdmin<'a> {
    pub(crate) memory: &'a Memory,
    pub(crate) plan: &'a Plan,
}

impl ClientAdmin<'_> {
    /// Returns a page of clients after `after`; `next` is the argument for the next page.
    ///
    /// # Errors
    /// `after` is not the number of a client.
    pub(crate) fn clients(&self, after: Option<&str>) -> Result<Value> {
        let after = after.map_or(Ok(ClientId(0)), number)?;
        let page = self.memory.engine.clients_after(self.now(), after, CLIENTS_PAGE);
        let last = page.last().filter(|_| page.len() == CLIENTS_PAGE);
        let next = last.map(|summary| summary.client.id().to_string());
        let clients: Vec<Value> = page.iter().map(|summary| self.summary(summary)).collect();
        Ok(json!({ "clients": clients, "next": next }))
    }

    /// Returns a client with its sessions, copies and waits, and a page of its states after
    /// `after`.
    ///
    /// # Errors
    /// There is no such client.
    pub(crate) fn client(&self, name: &str, after: Option<u32>) -> Result<Value> {
        let client = self.find(name)?;
        let (engine, now) = (&self.memory.engine, self.now());
        let page = engine.states_after(now, &client, (after.unwrap_or(0), STATES_PAGE));
        let last = page.last().filter(|_| page.len() == STATES_PAGE);
        let next = last.map(|state| state.number);
        let states: Vec<Value> = page.iter().map(|state| self.state(state)).collect();
        if after.is_some() {
            return Ok(json!({ "states": states, "next": next }));
        }
        let sessions = client.sessions().into_iter().filter_map(|id| engine.session(&id));
        let sessions: Vec<Value> = sessions.map(|session| self.session(&session)).collect();
        let copies = engine.copies(now, &client);
        let copies: Vec<Value> = copies.iter().map(|copy| self.copy(copy)).collect();
        let summary = engine.summary(now, &client).map(|summary| self.summary(&summary));
        let (waits, count) = self.waiting(Some(client.id()));
        Ok(json!({
            "client": summary,
            "sessions": sessions,
            "copies": copies,
            "waits": waits,
            "waits_count": count,
            "states": states,
            "next": next,
        }))
    }

    /// Returns which clients wait for which.
    ///
    /// # Errors
    /// There is no such client.
    pub(crate) fn waits(&self, name: Option<&str>) -> Result<Value> {
        let client = name.map(|name| self.find(name)).transpose()?;
        let (waits, count) = self.waiting(client.map(|client| client.id()));
        Ok(json!({ "waits": waits, "waits_count": count }))
    }

    /// Evicts a client: all its state is released, and it cannot reclaim anything. Returns what it
    /// had.
    ///
    /// # Errors
    /// There is no such client, or the eviction cannot be stored.
    pub(crate) fn evict(&self, name: &str) -> Result<Value> {
        let client = self.find(name)?;
        let (memory, now) = (self.memory, self.now());
        let summary = memory.engine.summary(now, &client).map(|summary| self.summary(&summary));
        memory.engine.evict(now, &client);
        tracing::info!(client = name, "evicted");
        if let Some(callbacks) = &memory.callbacks {
            callbacks.pump(now);
        }
        let stored = memory.engine.is_settled(memory.settle.as_deref());
        let failed =
            || anyhow!("client {name} is gone, but may reclaim after a restart: see the log");
        stored.then_some(json!({ "client": summary })).ok_or_else(failed)
    }

    fn now(&self) -> Duration {
        self.memory.clock.now()
    }

    fn find(&self, name: &str) -> Result<Arc<Client>> {
        let unknown = || anyhow!("there is no client {name}; `comity clients` shows all");
        self.memory.engine.client_by_id(number(name)?).ok_or_else(unknown)
    }

    fn waiting(&self, client: Option<ClientId>) -> (Vec<Value>, usize) {
        let (waits, count) = self.memory.engine.waits(self.now(), client, WAITS_SHOWN_MAX);
        (waits.iter().map(|waiting| self.wait(waiting)).collect(), count)
    }

    fn summary(&self, summary: &ClientSummary) -> Value {
        let ClientSummary { client, counts, .. } = summary;
        let waits_for = summary.waits_for.iter().map(ToString::to_string);
        json!({
            "client": client.id().to_string(),
            "spoken": spoken(client.protocol()),
            "address": address(client),
            "name": client.owner().escape_ascii().to_string(),
            "channel": client.channel_text(),
            "confirmed": summary.confirmed,
            "expired": summary.expired,
            "callbacks": callbacks(client),
            "age_seconds": summary.age.as_secs(),
            "silent_seconds": summary.silent.as_secs(),
            "sessions": summary.sessions,
            "opens": counts.opens,
            "locks": counts.locks,
            "delegations": counts.delegations,
            "directories": counts.directories,
            "layouts": counts.layouts,
            "revoked": counts.revoked,
            "waits": summary.waits,
            "waits_for": waits_for.collect::<Vec<_>>(),
        })
    }

    fn session(&self, session: &Session) -> Value {
        let digits = session.id().0.map(|byte| format!("{byte:02x}"));
        json!({
            "session": digits.concat(),
            "age_seconds": self.now().saturating_sub(session.made()).as_secs(),
            "slots": session.slots_len(),
            "connections": session.connections(),
            "back_channel": session.back().is_some(),
        })
    }

    fn copy(&self, copy: &CopyUnderWay) -> Value {
        let mut told = json!({ "copied_bytes": copy.copied, "age_seconds": copy.age.as_secs() });
        self.add_file(&mut told, &copy.file);
        told
    }

    fn state(&self, state: &HeldState) -> Value {
        let mut told = match &state.details {
            StateDetails::Open { owner, share } => json!({
                "kind": "open",
                "owner": owner.escape_ascii().to_string(),
                "access": modes(share.access),
                "deny": modes(share.deny),
            }),
            StateDetails::Locks { owner, count, ranges } => {
                let ranges = ranges.iter().map(|(bytes, kind)| range(*bytes, *kind));
                json!({
                    "kind": "lock",
                    "owner": owner.escape_ascii().to_string(),
                    "ranges_count": count,
                    "ranges": ranges.collect::<Vec<_>>(),
                })
            }
            StateDetails::Delegation { kind, recalled } => json!({
                "kind": "delegation",
                "access": allowed(*kind),
                "recalled_seconds": recalled.map(|since| since.as_secs()),
            }),
            StateDetails::Layout { read, read_write } => json!({
                "kind": "layout",
                "read_ranges": read,
                "read_write_ranges": read_write,
            }),
            StateDetails::Revoked(_) => json!({ "kind": "revoked" }),
        };
        told["age_seconds"] = state.age.as_secs().into();
        self.add_file(&mut told, &state.file);
        told
    }

    fn wait(&self, waiting: &Waiting) -> Value {
        let mut told = match waiting.awaited {
            Awaited::Lock(bytes, kind) => json!({ "kind": "lock", "range": range(bytes, kind) }),
            Awaited::Return(kind) => json!({ "kind": "delegation", "access": allowed(kind) }),
        };
        let id = |client: Option<ClientId>| client.map(|client| client.to_string());
        told["client"] = id(waiting.client).into();
        told["waits_for"] = id(waiting.holder).into();
        told["age_seconds"] = waiting.age.as_secs().into();
        self.add_file(&mut told, &waiting.file);
        told
    }

    fn add_file(&self, told: &mut Value, file: &FileKey) {
        let found = self.plan.locate(file);
        told["export"] = found.map(|(path, _)| path.display().to_string()).into();
        told["fileid"] = found.and_then(|(_, fileid)| fileid).into();
    }
}

fn number(name: &str) -> Result<ClientId> {
    let wrong = |_| anyhow!("{name:?} is no client's number, as `comity clients` shows it");
    u64::from_str_radix(name, 16).map(ClientId).map_err(wrong)
}

const fn spoken(protocol: ClientProtocol) -> &'static str {
    match protocol {
        ClientProtocol::Setclientid => "4.0",
        ClientProtocol::ExchangeId => "4.1",
        ClientProtocol::Nlm => "3",
    }
}

/// The address of a client. For hosts of NFSv3 it is their name.
fn address(client: &Client) -> Option<String> {
    match client.protocol() {
        ClientProtocol::Nlm => Some(client.owner().escape_ascii().to_string()),
        _ => client.address().map(str::to_owned),
    }
}

fn callbacks(client: &Client) -> &'static str {
    match (client.has_callbacks(), client.lost_callbacks()) {
        (true, _) => "work",
        (false, true) => "lost",
        (false, false) => "none",
    }
}

const fn modes(bits: u32) -> &'static str {
    match (bits & Share::READ != 0, bits & Share::WRITE != 0) {
        (true, true) => "rw",
        (true, false) => "r",
        (false, true) => "w",
        (false, false) => "",
    }
}

const fn allowed(kind: DelegationKind) -> &'static str {
    match kind {
        DelegationKind::Directory => "directory",
        DelegationKind::Read => "r",
        DelegationKind::Write => "rw",
    }
}

/// A range as JSON; one that reaches to the end of the file has no last byte.
fn range(bytes: ByteRange, kind: LockType) -> Value {
    let last = (bytes.last != u64::MAX).then_some(bytes.last);
    let kind = if kind == LockType::Write { "w" } else { "r" };
    json!({ "first": bytes.first, "last": last, "access": kind })
}

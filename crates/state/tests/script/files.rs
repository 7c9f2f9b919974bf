//! Operations of clients on files.

use std::sync::Arc;
use std::time::Duration;

use comity_keys::{Algorithm, PublicKey};
use comity_state::{
    At, ByteRange, Claim, Client, Delegation, DelegationKind, DelegationWish, GrantedAccess,
    Grantee, Io, Lock, LockRefusal, LockType, Locker, Open, Share, Stateid,
};

use crate::world::{Told, World, file, file_name, said, text};

impl World {
    pub(super) fn files(&mut self, verb: &str, args: &[&str]) -> Told {
        match (verb, args) {
            ("open", [client, owner, name, mode, rest @ ..]) => {
                self.open(client, owner, (name, mode), rest)
            }
            ("read" | "write", [client, stateid, name]) => self.access(verb, client, stateid, name),
            ("break", [client, name]) => {
                let client = self.client(client);
                let share = Share::access(Share::BOTH);
                let (now, mine) = (self.now, client.as_deref());
                said(self.engine.break_delegations(now, mine, &file(name), share))
            }
            ("program", [name, seconds]) => {
                let until = self.now + Duration::from_secs(seconds.parse().unwrap());
                self.engine.program_waits(self.now, &file(name), until);
                Vec::new()
            }
            ("program-changes", [name]) => {
                self.engine.program_changed(self.now, &file(name));
                Vec::new()
            }
            ("delegated", [name]) => vec![format!("{:?}", self.engine.delegated(&file(name)))],
            ("given-back", []) => {
                let names = std::iter::from_fn(|| self.engine.poll_undelegated());
                vec![names.map(|key| file_name(&key)).collect::<Vec<_>>().join(" ")]
            }
            ("lock" | "wait", [client, by, owner, name, range, kind, rest @ ..]) => {
                let wish = (file(name), bytes(range), lock_type(kind));
                self.lock((verb == "wait", client), (by, owner), wish, rest)
            }
            ("unlock", [client, lock, name, range]) => {
                let range = bytes(range);
                self.with(client, lock, |world, (sender, _), stateid| {
                    world.engine.unlock(sender, stateid, (&file(name), range))
                })
            }
            ("test-lock", [client, owner, name, range, kind]) => {
                let client = self.client(client).unwrap();
                let (key, by) = (file(name), (self.now, self.caller));
                let wish = (&key, bytes(range), lock_type(kind));
                let tested = self.engine.test_lock(by, &client, owner.as_bytes(), wish);
                vec![tested.map_or_else(refusal, |()| "free".into())]
            }
            ("sent", [client, delegation]) => {
                let client = self.client(client).unwrap();
                self.engine.recall_sent(self.now, &client, &self.stateids[*delegation]);
                Vec::new()
            }
            ("given", [client, delegation, change]) => {
                let client = self.client(client).unwrap();
                let (stateid, change) = (&self.stateids[*delegation], change.parse().unwrap());
                self.engine.delegated_at(&client, stateid, change);
                Vec::new()
            }
            ("asks", [client, name, change]) => {
                let (client, change) = (self.client(client), change.parse().unwrap());
                let (now, mine, key) = (self.now, client.as_deref(), file(name));
                vec![format!("{:?}", self.engine.delegated_attributes(now, mine, &key, change))]
            }
            ("says", [client, name, said @ ..]) => {
                let client = self.client(client).unwrap();
                let numbers: Vec<u64> = said.iter().map(|word| word.parse().unwrap()).collect();
                let said = match numbers[..] {
                    [size, change] => Some((size, change)),
                    _ => None,
                };
                self.engine.writer_attributes(self.now, &client, &file(name), said);
                Vec::new()
            }
            _ => self.directories(verb, args),
        }
    }

    pub(super) fn rights(&mut self, verb: &str, args: &[&str]) -> Told {
        match (verb, args) {
            ("end", [client, name, key, left]) => {
                let client = self.client(client).unwrap();
                let (read, execute) = (left.contains('r'), left.contains('x'));
                let allowed = GrantedAccess { read, execute, write: left.contains('w') };
                let by = (&file(name), &*grantee(key));
                vec![format!("{} ended", self.engine.end_rights(self.now, &client, by, allowed))]
            }
            ("by-grants", []) => self.by_grants(),
            _ => self.states(verb, args),
        }
    }

    /// Lists which clients have state that rests on grants.
    fn by_grants(&self) -> Told {
        let clients = self.engine.grantee_clients();
        let of_one = |client: &Arc<Client>| {
            let files = self.engine.granted_files(client);
            let names: Vec<_> = files.map(|(file, _)| file_name(&file)).collect();
            format!("{}: {}", text(client.owner()), names.join(" "))
        };
        clients.iter().map(of_one).collect()
    }

    fn states(&mut self, verb: &str, args: &[&str]) -> Told {
        let [client, name, rest @ ..] = args else { panic!("{verb} {args:?}") };
        match verb {
            "confirm-open" => self.with(client, name, |w, at, id| w.engine.open_confirm(at, id)),
            "close" => self.with(client, name, |w, at, id| w.engine.close(at, id)),
            "downgrade" => {
                let share = share(rest[0], rest.get(1).copied());
                self.with(client, name, |w, at, id| w.engine.open_downgrade(at, id, share))
            }
            "test" | "free" | "return" => {
                let known = self.client(client);
                let (sender, stateid) = (self.sender(known.as_ref()), self.stateids[*name]);
                said(match verb {
                    "test" => self.engine.test_stateid(sender, &stateid),
                    "free" => self.engine.free_stateid(sender, &stateid),
                    _ => self.engine.delegreturn(self.at(known.as_ref(), name), &stateid),
                })
            }
            "release" => {
                let client = self.client(client).unwrap();
                let asked = (self.now, self.caller);
                said(self.engine.release_lockowner(asked, &client, name.as_bytes()))
            }
            _ => panic!("{verb} {args:?}"),
        }
    }

    /// Does an operation that changes state by its stateid.
    fn with(
        &mut self,
        client: &str,
        name: &str,
        act: impl FnOnce(&Self, At<'_>, &Stateid) -> comity_state::Result<Stateid>,
    ) -> Told {
        let client = if client == "-" { None } else { self.client(client) };
        let stateid = self.stateids[name];
        match act(self, self.at(client.as_ref(), name), &stateid) {
            Ok(Stateid::INVALID) => vec!["ok".into()],
            Ok(stateid) => {
                self.stateids.insert(name.into(), stateid);
                vec![format!("{name}.{}", stateid.seqid)]
            }
            Err(error) => vec![error.to_string()],
        }
    }

    /// `open CLIENT OWNER FILE MODE [deny MODE] [want KIND] [previous KIND] [under D] [by KEY]
    /// = NAME`
    fn open(&mut self, client: &str, owner: &str, on: (&str, &str), rest: &[&str]) -> Told {
        let Some(client) = self.client(client) else { return vec!["gone".into()] };
        let after = |word: &str| {
            let at = rest.iter().position(|other| *other == word);
            at.and_then(|at| rest.get(at + 1).copied())
        };
        let claim = match (after("previous"), after("under")) {
            (Some(kind), _) => Claim::Previous(delegation_kind(kind)),
            (_, Some(delegation)) => Claim::Delegated(self.stateids[delegation]),
            _ => Claim::New,
        };
        let wish = match after("want") {
            Some("read") => DelegationWish::Read,
            Some("write") => DelegationWish::Write,
            Some("any") => DelegationWish::Any,
            Some(_) => DelegationWish::None,
            None => DelegationWish::NoPreference,
        };
        let share = share(on.1, after("deny"));
        let owner = owner.as_bytes();
        let grantee = after("by").map(grantee);
        let open = Open {
            client: &client,
            caller: self.caller,
            owner,
            file: file(on.0),
            share,
            claim,
            wish,
            user: None,
            grantee: grantee.as_ref(),
            empties: false,
        };
        match self.engine.open(self.now, &open) {
            Ok(opened) => {
                let name = after("=").unwrap_or("opened");
                self.keep(name, opened.stateid, file(on.0));
                let confirm = if opened.confirm { ", to be confirmed" } else { "" };
                let mut told = vec![format!("{name}.{}{confirm}", opened.stateid.seqid)];
                if let Delegation::Granted { stateid, kind, .. } = opened.delegation {
                    self.keep(&format!("{name}-d"), stateid, file(on.0));
                    told.push(format!("{name}-d: delegated to {kind:?}"));
                }
                told
            }
            Err(error) => vec![error.to_string()],
        }
    }

    fn access(&mut self, verb: &str, client: &str, stateid: &str, name: &str) -> Told {
        let stateid = match stateid {
            "anonymous" => Stateid::ANONYMOUS,
            "bypass" => Stateid::READ_BYPASS,
            name => self.stateids[name],
        };
        let client = if client == "-" { None } else { self.client(client) };
        let access = if verb == "read" { Share::READ } else { Share::WRITE };
        let sender = self.sender(client.as_ref());
        let io = Io { file: &file(name), access, user: None };
        said(self.engine.check_io(sender, &stateid, &io).map(drop))
    }

    /// `lock CLIENT OPEN-OR-LOCK OWNER FILE RANGE KIND [reclaim] [seqid N] = NAME`. The owner `-`
    /// means that the stateid is that of a lock.
    fn lock(
        &mut self,
        (wait, client): (bool, &str),
        (by, owner): (&str, &str),
        (key, range, kind): (comity_state::FileKey, ByteRange, LockType),
        rest: &[&str],
    ) -> Told {
        let stateid = self.stateids[by];
        let locker = match owner {
            "-" => Locker::Known { lock: stateid },
            owner => Locker::New { open: stateid, owner: owner.as_bytes(), seqid: 1 },
        };
        let reclaim = rest.contains(&"reclaim");
        let args = Lock { file: key, range, kind, reclaim, wait, locker };
        let client = if client == "-" { None } else { self.client(client) };
        match self.engine.lock(self.sender(client.as_ref()), &args) {
            Ok(stateid) => {
                let at = rest.iter().position(|word| *word == "=");
                let name = at.map_or(by, |at| rest[at + 1]);
                self.keep(name, stateid, key);
                vec![format!("{name}.{}", stateid.seqid)]
            }
            Err(refused) => vec![refusal(refused)],
        }
    }
}

fn refusal(refused: LockRefusal) -> String {
    match refused {
        LockRefusal::Denied { range, kind, owner, .. } => {
            format!("denied: {} has {kind:?} {range}", text(&owner))
        }
        LockRefusal::Error(error) => error.to_string(),
    }
}

/// The grantee of a key, which is made of the first letter of its name, at one address.
fn grantee(name: &str) -> Arc<Grantee> {
    let mut bytes = [0; 32];
    bytes[0] = name.as_bytes()[0];
    let key = PublicKey::from_raw(Algorithm::Ed25519, &bytes).unwrap();
    Arc::new(Grantee { key, address: [10, 0, 0, 1].into(), export: 1, user: None })
}

/// Reads an access and a deny mode, each `r`, `w`, `rw` or `-`.
fn share(access: &str, deny: Option<&str>) -> Share {
    let bits = |text: &str| {
        let read = if text.contains('r') { Share::READ } else { 0 };
        read | if text.contains('w') { Share::WRITE } else { 0 }
    };
    Share { access: bits(access), deny: deny.map_or(0, bits) }
}

fn delegation_kind(name: &str) -> Option<DelegationKind> {
    match name {
        "read" => Some(DelegationKind::Read),
        "write" => Some(DelegationKind::Write),
        _ => None,
    }
}

fn lock_type(name: &str) -> LockType {
    if name == "w" { LockType::Write } else { LockType::Read }
}

/// Reads a range: `FIRST-LAST` or `all`.
fn bytes(text: &str) -> ByteRange {
    let Some((first, last)) = text.split_once('-') else { return ByteRange::ALL };
    ByteRange { first: first.parse().unwrap(), last: last.parse().unwrap() }
}

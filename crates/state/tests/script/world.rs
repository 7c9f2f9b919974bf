use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use comity_state::{
    At, Caller, Client, ClientId, Effect, Engine, Error, FileKey, NotedChange, Origin, OwnerAnswer,
    OwnerTurn, Principal, Record, Recovered, Sender, SessionId, Settings, Stateid, Ticket,
    Verifier,
};
use comity_vfs::Handle;

/// An engine, and the results that clients have got from it, by name.
pub(super) struct World {
    pub(super) engine: Engine,
    pub(super) now: Duration,
    /// The principal and the origin of the current command.
    pub(super) caller: Caller,
    boot: u32,
    store: Recovered,
    pub(super) clients: HashMap<String, (ClientId, Verifier)>,
    pub(super) sessions: HashMap<String, SessionId>,
    pub(super) stateids: HashMap<String, Stateid>,
    /// The file of each stateid.
    pub(super) files: HashMap<String, FileKey>,
    pub(super) tickets: HashMap<String, Ticket>,
    pub(super) turns: HashMap<String, OwnerTurn>,
    pub(super) unanswered: Option<OwnerAnswer>,
}

/// The results of a command.
pub(super) type Told = Vec<String>;

fn settings(boot: u32) -> Settings {
    let mut settings = Settings::new(boot, [7; 16]);
    settings.durable = true;
    settings.locals = true;
    settings.limits.clients = 8;
    settings.limits.sessions_per_client = 2;
    settings
}

impl World {
    pub(super) fn new() -> Self {
        let now = Duration::from_secs(1000);
        Self {
            engine: Engine::new(now, settings(1), Recovered::new()),
            now,
            caller: Caller::default(),
            boot: 1,
            store: Recovered::new(),
            clients: HashMap::new(),
            sessions: HashMap::new(),
            stateids: HashMap::new(),
            files: HashMap::new(),
            tickets: HashMap::new(),
            turns: HashMap::new(),
            unanswered: None,
        }
    }

    /// Does a command; returns its results and the effects. `as NAME` and `from PLACE` anywhere in
    /// the line set the principal and the address of the caller, which are otherwise the same for
    /// all.
    pub(super) fn say(&mut self, line: &str) -> Told {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        let principal = principal(take_option(&mut words, "as").unwrap_or("root"));
        let origin = place(take_option(&mut words, "from").unwrap_or("home"));
        self.caller = Caller { principal, origin };
        let [verb, args @ ..] = words.as_slice() else { return Vec::new() };
        let mut told = self.perform(verb, args);
        told.extend(self.records());
        while let Some(effect) = self.engine.poll_effect() {
            told.push(self.effect(&effect));
        }
        told
    }

    fn perform(&mut self, verb: &str, args: &[&str]) -> Told {
        match verb {
            "after" => self.after(args),
            "unseen" => self.unseen(args),
            "restart" => self.restart(),
            "lease" => self.begin(args[0].parse().unwrap()),
            "replies" | "delegations" | "states" if args.len() == 1 => {
                self.begin_small(verb, args[0].parse().unwrap())
            }
            "census" => vec![format!("{:?}", self.engine.census())],
            "clients" | "states" | "waits" | "totals" => self.inventory(verb, args),
            "setclientid" | "confirm" | "renew" | "exchange" | "complete" | "destroy-client"
            | "callbacks" | "evict" => self.people(verb, args),
            "session" | "destroy-session" | "sequence" | "answer" | "bind" | "disconnect"
            | "turn" | "turn-of" | "do" | "true" | "untrue" | "done" | "slots" => {
                self.requests(verb, args)
            }
            _ => self.files(verb, args),
        }
    }

    /// Lets time pass.
    fn after(&mut self, args: &[&str]) -> Told {
        self.unseen(args);
        self.engine.tick(self.now);
        Vec::new()
    }

    /// Lets time pass; the engine does not learn of it before the next request.
    fn unseen(&mut self, args: &[&str]) -> Told {
        self.now += Duration::from_secs(args[0].parse().unwrap());
        Vec::new()
    }

    /// Kills the server and starts it again with the stored records.
    fn restart(&mut self) -> Told {
        self.boot += 1;
        let recovered = self.store.clone();
        self.engine = Engine::new(self.now, settings(self.boot), recovered);
        let grace = self.engine.is_in_grace();
        vec![format!("in grace: {grace}")]
    }

    /// Starts a new server with this lease time.
    fn begin(&mut self, lease_seconds: u64) -> Told {
        let lease = Duration::from_secs(lease_seconds);
        let settings = Settings { lease, grace: lease, ..settings(self.boot) };
        self.engine = Engine::new(self.now, settings, Recovered::new());
        Vec::new()
    }

    /// Starts a new server with this low limit.
    fn begin_small(&mut self, what: &str, most: usize) -> Told {
        let mut settings = settings(self.boot);
        let limits = &mut settings.limits;
        match what {
            "replies" => limits.reply_cache_bytes = most,
            "delegations" => limits.delegations = most,
            _ => limits.states_per_client = most,
        }
        self.engine = Engine::new(self.now, settings, Recovered::new());
        self.sessions.clear();
        Vec::new()
    }

    fn records(&mut self) -> Told {
        let mut records = Vec::new();
        let waits = self.engine.unstored().is_some();
        let mark = self.engine.poll_records(&mut records);
        self.engine.stored(mark);
        assert!(self.engine.unstored().is_none());
        assert_eq!(waits, !records.is_empty());
        let told = records.iter().map(|record| match record {
            Record::Client(client, _) | Record::Arrived(client, _) => {
                format!("stored: {}", text(&client.id))
            }
            Record::Forget(client) => format!("stored: {} forgotten", text(&client.id)),
            Record::Revoked(client, file) => {
                format!("stored: {} revoked {}", text(&client.id), file_name(file))
            }
            Record::RevocationsKnown(client) => {
                format!("stored: {} knows its revocations", text(&client.id))
            }
            Record::Unrevoked(client, file) => {
                format!("stored: {} no more revoked {}", text(&client.id), file_name(file))
            }
            Record::SizeOpen(file) => format!("stored: size of {} open", file_name(file)),
            Record::SizeKnown(file) => format!("stored: size of {} known", file_name(file)),
        });
        let told = told.collect();
        records.into_iter().for_each(|record| self.store.apply(record));
        told
    }

    fn effect(&self, effect: &Effect) -> String {
        match effect {
            Effect::Notify { client, stateid, directory, batch, .. } => {
                let (name, stateid) = (text(client.owner()), self.name(stateid));
                let (count, directory) = (batch.len(), file_name(directory));
                let children = batch.iter().filter_map(|notice| match &notice.change {
                    NotedChange::Child { name, key, .. } => {
                        Some(format!(" {}={}", text(name), file_name(key)))
                    }
                    _ => None,
                });
                let children: String = children.collect();
                format!("out: {name}, {count} changes of {directory} under {stateid}{children}")
            }
            Effect::Recall { client, stateid, file, .. } => {
                let (name, stateid) = (text(client.owner()), self.name(stateid));
                format!("out: {name}, give back {stateid} of {}", file_name(file))
            }
            Effect::RecallLayout { client, stateid, file } => {
                let (name, stateid) = (text(client.owner()), self.name(stateid));
                format!("out: {name}, give back the layout {stateid} of {}", file_name(file))
            }
            Effect::NotifyLock { client, owner, file, .. } => {
                let (name, owner) = (text(client.owner()), text(owner));
                format!("out: {name}, {owner} may lock {}", file_name(file))
            }
            Effect::GetAttr { client, file } => {
                format!("out: {}, what of {}?", text(client.owner()), file_name(file))
            }
            Effect::RecallAny { client, keep, directories } => {
                let kinds = if *directories { ", directories among them" } else { "" };
                format!("out: {}, keep {keep} delegations{kinds}", text(client.owner()))
            }
            Effect::RecallSlot { client, session, target } => {
                let named = self.sessions.iter().find(|(_, known)| *known == session);
                let (owner, name) = (text(client.owner()), named.unwrap().0);
                format!("out: {owner}, use slots 0..={target} of {name}")
            }
            Effect::Offload { client, stateid, copied, end, .. } => {
                let (name, stateid) = (text(client.owner()), self.name(stateid));
                format!("out: {name}, {copied} bytes of {stateid} are copied: {}", end.status)
            }
            Effect::Probe { client } => format!("out: {}, are you there?", text(client.owner())),
        }
    }

    /// Returns the name of a stateid in the transcript.
    pub(super) fn name(&self, stateid: &Stateid) -> String {
        let same = |known: &&Stateid| known.other == stateid.other;
        let found = self.stateids.iter().filter(|(_, known)| same(known));
        let name = found.map(|(name, _)| name.as_str()).min().unwrap_or("something new");
        format!("{name}.{}", stateid.seqid)
    }

    pub(super) fn client(&self, name: &str) -> Option<Arc<Client>> {
        let (id, _) = self.clients.get(name)?;
        self.engine.client_by_id(*id)
    }

    pub(super) fn sender<'c>(&self, client: Option<&'c Arc<Client>>) -> Sender<'c> {
        Sender { now: self.now, client, caller: self.caller }
    }

    /// Returns the sender of a stateid with the handle of its file.
    pub(super) fn at<'c>(&'c self, client: Option<&'c Arc<Client>>, stateid: &str) -> At<'c> {
        (self.sender(client), &self.files[stateid])
    }

    /// Stores the name of a stateid that a client was given for a file.
    pub(super) fn keep(&mut self, name: &str, stateid: Stateid, file: FileKey) {
        self.stateids.insert(name.into(), stateid);
        self.files.insert(name.into(), file);
    }
}

/// Removes a word and the next one from a line; returns the latter.
fn take_option<'l>(words: &mut Vec<&'l str>, word: &str) -> Option<&'l str> {
    let at = words.iter().position(|other| *other == word)?;
    words.drain(at..at + 2).nth(1)
}

/// Makes a principal of a name of up to eight letters.
fn principal(name: &str) -> Principal {
    Principal(name.bytes().fold(0, |number, byte| number << 8 | u64::from(byte)))
}

/// Makes an origin of a name of up to sixteen letters.
fn place(name: &str) -> Origin {
    let mut bytes = [0; 16];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    Origin::from_bytes(bytes)
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(super) fn said(result: Result<(), Error>) -> Told {
    vec![result.map_or_else(|error| error.to_string(), |()| "ok".into())]
}

/// The key of a file, whose handle is its name of one letter.
pub(super) fn file(name: &str) -> FileKey {
    FileKey { volume: 1, export: 1, handle: Handle::new(name.as_bytes()).unwrap() }
}

pub(super) fn file_name(key: &FileKey) -> String {
    text(key.handle.bytes())
}

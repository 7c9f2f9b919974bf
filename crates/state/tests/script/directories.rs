//! Delegations of directories, and the changes of which their holders are notified.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use comity_state::{
    Adaptive, Always, Client, DirectoryNotice, DirectoryPolicy, DirectoryRequest, Never,
    NotedChange, NoticeWishes, SecondAsk, Share,
};
use comity_vfs::{Cred, FileType, Gid, NamedObject, ObjectChange, Uid};

use crate::world::{Told, World, file};

impl World {
    pub(super) fn directories(&mut self, verb: &str, args: &[&str]) -> Told {
        match (verb, args) {
            ("directory", [client, name, policy, rest @ ..]) => {
                self.directory(client, (name, policy), rest)
            }
            ("adds" | "removes" | "renames", [client, directory, name]) => {
                self.change(verb, client, (directory, name))
            }
            ("applied" | "not-applied", [client, delegation]) => {
                let client = self.client(client).unwrap();
                let held = (&self.files[*delegation], &self.stateids[*delegation]);
                self.engine.notices_answered(self.now, &client, held, verb == "applied");
                Vec::new()
            }
            ("sees", [client, directory, name, object, since @ ..]) => {
                let client = self.client(client).unwrap();
                let now = self.engine.changed_objects().moment();
                let since = since.first().map_or(now, |since| since.parse().unwrap());
                let place = (&file(directory), name.as_bytes());
                self.engine.watch_child(self.now, &client, place, (&file(object), since));
                Vec::new()
            }
            ("sees-many", [client, directory, count]) => {
                let client = self.client(client).unwrap();
                for number in 0..count.parse::<u32>().unwrap() {
                    let name = number.to_string();
                    let child = file(&format!("{directory}/{name}"));
                    let place = (&file(directory), name.as_bytes());
                    self.engine.watch_child(self.now, &client, place, (&child, u64::MAX));
                }
                Vec::new()
            }
            ("sets", [client, object]) => {
                let client = if *client == "-" { None } else { self.client(client) };
                let objects = self.engine.changed_objects();
                if objects.are_watched() {
                    let client = client.map(|client| client.id().0);
                    objects.note(ObjectChange { object: file(object), client });
                    self.engine.notify_children(self.now);
                }
                Vec::new()
            }
            ("changing", [name]) => {
                self.engine.changes_under_way(&file(name)).fetch_add(1, Ordering::SeqCst);
                Vec::new()
            }
            ("changed", [name]) => {
                self.engine.changes_under_way(&file(name)).fetch_sub(1, Ordering::SeqCst);
                Vec::new()
            }
            ("recall-directories", []) => {
                self.engine.recall_directories(self.now);
                Vec::new()
            }
            _ => self.rights(verb, args),
        }
    }

    /// `directory CLIENT NAME POLICY [told KINDS] [= NAME]`: asks for the delegation of a directory
    /// in `top`. Kinds are `+`, `-`, `>`, `d` for attributes of the directory, and the delay of
    /// attributes of children in seconds.
    fn directory(&mut self, client: &str, (name, policy): (&str, &str), rest: &[&str]) -> Told {
        let Some(client) = self.client(client) else { return vec!["gone".into()] };
        let after = |word: &str| {
            let at = rest.iter().position(|other| *other == word);
            at.and_then(|at| rest.get(at + 1).copied())
        };
        let kept = after("=");
        let user = Arc::new(Cred::new(Uid::new(1), Gid::new(1)));
        let policy: &dyn DirectoryPolicy = match policy {
            "never" => &Never,
            "always" => &Always,
            "adaptive" => &Adaptive,
            _ => &SecondAsk,
        };
        let request = DirectoryRequest {
            client: &client,
            caller: self.caller,
            directory: file(name),
            parent: file("top"),
            user: &user,
            policy,
            notices: after("told").map(wishes),
        };
        match self.engine.delegate_directory(self.now, &request) {
            Ok(stateid) => {
                self.keep(kept.unwrap_or("directory"), stateid, file(name));
                vec![format!("{}.{}", kept.unwrap_or("directory"), stateid.seqid)]
            }
            Err(why) => vec![format!("refused: {}", why.name())],
        }
    }

    /// A client changes a name in a directory, unless a recall is awaited first.
    fn change(&mut self, verb: &str, client: &str, (directory, name): (&str, &str)) -> Told {
        let client = if client == "-" { None } else { self.client(client) };
        let (mine, name): (_, Box<[u8]>) = (client.as_deref(), name.as_bytes().into());
        let object = NamedObject { key: file("new"), fileid: 1, file_type: FileType::Regular };
        let (bit, change) = match verb {
            "adds" => (Share::ADDED, NotedChange::Added { name, object, replaces: false }),
            "removes" => (Share::REMOVED, NotedChange::Removed { name }),
            _ => {
                let from = b"old"[..].into();
                (Share::RENAMED, NotedChange::Renamed { from, name, object, replaces: false })
            }
        };
        let (key, share) = (file(directory), Share::access(Share::BOTH | bit));
        if let Err(error) = self.engine.break_delegations(self.now, mine, &key, share) {
            return vec![error.to_string()];
        }
        let notice = DirectoryNotice { change, after: None };
        let notified = self.engine.note_change(self.now, mine.map(Client::id), &key, notice);
        let is_over = notified.is_none_or(|notified| self.engine.is_acknowledged(&notified));
        vec![if is_over { "ok" } else { "ok, holders are told" }.into()]
    }
}

/// The notifications of these kinds, of which two may be unacknowledged.
fn wishes(kinds: &str) -> NoticeWishes {
    let digits: String = kinds.chars().filter(char::is_ascii_digit).collect();
    let delay = digits.parse();
    let bits = [('+', Share::ADDED), ('-', Share::REMOVED), ('>', Share::RENAMED)];
    NoticeWishes {
        kinds: bits.iter().filter(|(kind, _)| kinds.contains(*kind)).fold(0, |all, it| all | it.1),
        handles: true,
        fileids: true,
        types: true,
        directory: if kinds.contains('d') { NoticeWishes::CHANGE } else { 0 },
        children: if delay.is_ok() { NoticeWishes::CHANGE } else { 0 },
        child_delay: Duration::from_secs(delay.unwrap_or_default()),
        bytes_max: 4096,
        unacknowledged_max: 2,
    }
}

//! Traces of NFS calls as nfsdump writes them (Ellard and Seltzer, LISA 2003).

use std::collections::HashMap;

use super::Imported;
use crate::dirsim::event::{Action, Actor, Event};
use crate::dirsim::text::microseconds;

/// Reads a line for each call and each reply:
///
/// ```text
/// 0.10 31.0320 30.0801 T C3 b7a1f0f2 3 lookup fh 6189ae6e name "foo" con = 130 len = 123
/// 0.11 30.0801 31.0320 T R3 b7a1f0f2 3 lookup OK ftype 1 mode 1a4
/// ```
///
/// Each client address becomes a client. A directory has the name of its filehandle.
pub(super) fn read(text: &str) -> Imported {
    let mut reader = NfsdumpReader::default();
    let mut imported = Imported::default();
    for line in text.lines() {
        match reader.line(line) {
            Some(event) => imported.events.extend(event),
            None => imported.skipped += 1,
        }
    }
    imported
}

#[derive(Default)]
struct NfsdumpReader {
    clients: HashMap<String, u32>,
    /// Calls that wait for their reply, by the client and the xid.
    waiting: HashMap<(u32, String), Event>,
}

impl NfsdumpReader {
    /// Reads a line. Returns `None` if it does not concern directories, and `Some(None)` if it is a
    /// call that waits for its reply.
    fn line(&mut self, line: &str) -> Option<Option<Event>> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [time, from, to, _, kind, xid, _, procedure, rest @ ..] = words.as_slice() else {
            return None;
        };
        let at_microseconds = microseconds(time)?;
        if kind.starts_with('C') {
            let client = self.client(from);
            let event = Event {
                at_microseconds,
                actor: Actor::Client(client),
                action: action(procedure, rest)?,
            };
            self.waiting.insert((client, (*xid).to_owned()), event);
            return Some(None);
        }
        let client = self.client(to);
        let event = self.waiting.remove(&(client, (*xid).to_owned()))?;
        Some(outcome(event, rest.first() == Some(&"OK")))
    }

    fn client(&mut self, address: &str) -> u32 {
        let next = self.clients.len() as u32 + 1;
        *self.clients.entry(address.to_owned()).or_insert(next)
    }
}

/// The event of a call and its reply; none for a change that failed.
fn outcome(event: Event, is_ok: bool) -> Option<Event> {
    let action = match event.action {
        Action::Lookup { directory, name, .. } => Action::Lookup { directory, name, found: is_ok },
        action if is_ok => action,
        _ => return None,
    };
    Some(Event { action, ..event })
}

fn action(procedure: &str, words: &[&str]) -> Option<Action> {
    let after = |key: &str| {
        let at = words.iter().position(|word| *word == key)?;
        words.get(at + 1).map(|word| word.trim_matches('"').to_owned())
    };
    let (directory, name) = (after("fh")?, after("name"));
    match procedure {
        "lookup" => Some(Action::Lookup { directory, name: name?, found: true }),
        "readdir" | "readdirp" | "readdirplus" => Some(Action::List(directory)),
        "create" | "mkdir" | "mknod" | "symlink" => Some(Action::Create { directory, name: name? }),
        "link" => Some(Action::Create { directory: after("fh2")?, name: name? }),
        "remove" | "rmdir" => Some(Action::Remove { directory, name: name? }),
        "rename" => {
            Some(Action::Rename { from: (directory, name?), to: (after("fh2")?, after("name2")?) })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dirsim::text::write;

    #[test]
    fn calls_and_replies_become_events() {
        let text = r#"
100.10 31.1 30.1 T C3 a1 3 lookup fh 61ae name "foo" con = 130 len = 123
100.11 30.1 31.1 T R3 a1 3 lookup OK ftype 1 mode 1a4
100.20 31.2 30.1 T C3 a1 3 lookup fh 61ae name "bar" con = 130 len = 123
100.21 30.1 31.2 T R3 a1 3 lookup 2 status = 2
100.30 31.2 30.1 T C3 a2 14 rename fh 61ae name "foo" fh2 61af name2 "new" con = 1 len = 2
100.31 30.1 31.2 T R3 a2 14 rename OK
100.40 31.2 30.1 T C3 a3 12 remove fh 61ae name "gone"
100.41 30.1 31.2 T R3 a3 12 remove 2 status = 2
100.50 31.2 30.1 T C3 a4 6 read fh 61ae off 0 count 8192
"#;
        let imported = super::super::foreign(super::super::Format::Nfsdump, text, Actor::Local);
        let expected = "\
# comity directory trace 1
0.000000 1 lookup 61ae foo found
0.100000 2 lookup 61ae bar missing
0.200000 2 rename 61ae foo 61af new
";
        assert_eq!(write(&imported.events), expected);
        assert_eq!(imported.skipped, 2, "an empty line and READ");
    }
}

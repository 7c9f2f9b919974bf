//! Reads the output of strace(1).

use std::collections::{HashMap, HashSet};

use super::Imported;
use super::paths::{absolute, looked_up, split, way};
use crate::dirsim::event::{Action, Actor, Event};
use crate::dirsim::text::microseconds;

/// Calls that look up their only path.
const LOOK_UPS: [&str; 13] = [
    "open",
    "openat",
    "openat2",
    "stat",
    "lstat",
    "newfstatat",
    "statx",
    "access",
    "faccessat",
    "faccessat2",
    "readlink",
    "readlinkat",
    "execve",
];

/// Calls that create their last path.
const MAKERS: [&str; 9] =
    ["mkdir", "mkdirat", "mknod", "mknodat", "symlink", "symlinkat", "link", "linkat", "creat"];

/// Reads the lines of `strace -f -ttt -y -e trace=%file`. Relative paths begin at the folder shown
/// by `-y`, or else at the folder of the last chdir(2).
pub(super) fn read(text: &str, actor: Actor) -> Imported {
    let mut reader = StraceReader { actor, folders: HashMap::new(), present: HashSet::new() };
    let mut imported = Imported::default();
    for line in text.lines() {
        let actions = SystemCall::parse(line).and_then(|call| {
            let at = call.at_microseconds;
            Some((at, reader.actions(&call)?))
        });
        let Some((at_microseconds, actions)) = actions else {
            imported.skipped += 1;
            continue;
        };
        let event = |action| Event { at_microseconds, actor: reader.actor, action };
        imported.events.extend(actions.into_iter().map(event));
    }
    imported
}

/// A system call.
struct SystemCall<'a> {
    process: &'a str,
    at_microseconds: u64,
    name: &'a str,
    arguments: &'a str,
    /// Each path with the directory that it is relative to, if `-y` shows it.
    paths: Vec<(Option<&'a str>, String)>,
    result: &'a str,
}

impl<'a> SystemCall<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let line = line.trim_start_matches("[pid").trim_start();
        let (first, rest) = line.split_once(' ')?;
        let (process, time, rest) = match microseconds(first).filter(|_| first.contains('.')) {
            Some(time) => ("", time, rest),
            None => {
                let (time, rest) = rest.trim_start().split_once(' ')?;
                (first.trim_end_matches(']'), microseconds(time)?, rest)
            }
        };
        let (name, rest) = rest.split_once('(')?;
        let (arguments, result) = rest.rsplit_once(" = ")?;
        let paths = paths(arguments);
        Some(Self { process, at_microseconds: time, name, arguments, paths, result })
    }

    fn is_done(&self) -> bool {
        !self.result.starts_with('-')
    }

    /// Returns whether the object exists, even if the call failed for another reason.
    fn is_there(&self) -> bool {
        !self.result.contains("ENOENT") && !self.result.contains("ENOTDIR")
    }
}

/// The paths among arguments.
fn paths(arguments: &str) -> Vec<(Option<&str>, String)> {
    let mut found = Vec::new();
    let mut rest = arguments;
    while let Some(at) = rest.find('"') {
        let (before, quoted) = rest.split_at(at);
        let base = before.rsplit_once('<').and_then(|(_, base)| base.split_once('>'));
        let base = base.filter(|(_, behind)| behind.trim() == ",").map(|(base, _)| base);
        let Some((path, behind)) = unquoted(quoted) else { break };
        found.push((base, path));
        rest = behind;
    }
    found
}

/// The content of a string that begins with a quotation mark, and what follows it.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let (mut content, mut is_escaped) = (String::new(), false);
    for (at, sign) in text.char_indices().skip(1) {
        match (is_escaped, sign) {
            (false, '\\') => is_escaped = true,
            (false, '"') => return Some((content, text.get(at + 1..)?)),
            (_, sign) => {
                is_escaped = false;
                content.push(sign);
            }
        }
    }
    None
}

struct StraceReader {
    actor: Actor,
    /// The current folder of each process.
    folders: HashMap<String, String>,
    /// Objects that are known to exist.
    present: HashSet<String>,
}

impl StraceReader {
    fn actions(&mut self, call: &SystemCall<'_>) -> Option<Vec<Action>> {
        let path = |reader: &Self, number: usize| {
            let (base, path) = call.paths.get(number)?;
            let here = reader.folders.get(call.process).map_or("/", String::as_str);
            Some(absolute(base.unwrap_or(here), path))
        };
        let last = path(self, call.paths.len().checked_sub(1)?)?;
        match call.name {
            "chdir" => {
                if call.is_done() {
                    self.folders.insert(call.process.to_owned(), last.clone());
                }
                Some(looked_up(&last, call.is_there()))
            }
            "rename" | "renameat" | "renameat2" if call.is_done() => {
                let first = path(self, 0)?;
                self.present.remove(&first);
                self.present.insert(last.clone());
                let mut actions = way(&first);
                actions.extend(way(&last));
                actions.push(Action::Rename { from: split(&first)?, to: split(&last)? });
                Some(actions)
            }
            "unlink" | "rmdir" | "unlinkat" if call.is_done() => {
                self.present.remove(&last);
                let (directory, name) = split(&last)?;
                Some(with_way(&last, Action::Remove { directory, name }))
            }
            name if MAKERS.contains(&name) && call.is_done() => self.made(&last),
            // execve(2) has more strings after its path.
            name if LOOK_UPS.contains(&name) => self.opened(call, &path(self, 0)?),
            _ => None,
        }
    }

    /// The events of an open. It creates the file if O_CREAT is set and the file was not known to
    /// exist.
    fn opened(&mut self, call: &SystemCall<'_>, path: &str) -> Option<Vec<Action>> {
        let says = |flag: &str| call.arguments.contains(flag);
        let is_new = says("O_EXCL") || !self.present.contains(path);
        if says("O_CREAT") && call.is_done() && is_new {
            return self.made(path);
        }
        if call.is_there() {
            self.present.insert(path.to_owned());
        }
        let mut actions = looked_up(path, call.is_there());
        if says("O_DIRECTORY") && call.is_done() {
            actions.push(Action::List(path.to_owned()));
        }
        Some(actions)
    }

    fn made(&mut self, path: &str) -> Option<Vec<Action>> {
        self.present.insert(path.to_owned());
        let (directory, name) = split(path)?;
        Some(with_way(path, Action::Create { directory, name }))
    }
}

fn with_way(path: &str, action: Action) -> Vec<Action> {
    let mut actions = way(path);
    actions.push(action);
    actions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dirsim::text::write;

    const TEXT: &str = r#"
12 1700000000.000001 execve("/bin/sh", ["sh"], 0x7ffd /* 3 vars */) = 0
12 1700000000.000002 openat(AT_FDCWD</home>, "no\"te", O_RDONLY|O_CLOEXEC) = -1 ENOENT (None)
12 1700000000.000003 openat(AT_FDCWD</home>, "new", O_WRONLY|O_CREAT, 0666) = 3</home/new>
12 1700000000.000004 openat(AT_FDCWD</home>, "new", O_WRONLY|O_CREAT, 0666) = 4</home/new>
[pid 13] 1700000000.000005 chdir("/srv") = 0
[pid 13] 1700000000.000006 rename("a", "b") = 0
[pid 13] 1700000000.000007 openat(AT_FDCWD, ".", O_RDONLY|O_DIRECTORY) = 3
[pid 13] 1700000000.000008 getpid() = 13
12 1700000000.000009 access("/bin/x", X_OK <unfinished ...>
"#;

    #[test]
    fn the_calls_of_programs_become_events() {
        let imported = super::super::foreign(super::super::Format::Strace, TEXT, Actor::Client(7));
        let expected = "\
# comity directory trace 1
0.000000 7 lookup / bin found
0.000000 7 lookup /bin sh found
0.000001 7 lookup / home found
0.000001 7 lookup /home no\"te missing
0.000002 7 lookup / home found
0.000002 7 create /home new
0.000003 7 lookup / home found
0.000003 7 lookup /home new found
0.000004 7 lookup / srv found
0.000005 7 lookup / srv found
0.000005 7 lookup / srv found
0.000005 7 rename /srv a /srv b
0.000006 7 lookup / srv found
0.000006 7 list /srv
";
        assert_eq!(write(&imported.events), expected);
        assert_eq!(imported.skipped, 3, "an empty line, getpid and an unfinished call");
    }
}

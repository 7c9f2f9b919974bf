//! Generates traces of classic patterns.

use super::event::{Action, Actor, Event};
use crate::rng::Rng;

/// The patterns by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Pattern {
    /// Commands are searched in the directories of PATH
    Path,
    /// Programs search their libraries in the directories of LD_LIBRARY_PATH
    Libraries,
    /// A compiler searches headers in 40 include directories
    Includes,
    /// A working copy is compared with its repository, and a part of it is updated
    Update,
    /// One client delivers mail to folders that another one reads
    Mail,
    /// Objects are made in the directories of a source tree that is read
    Build,
}

/// A trace that is being written.
struct TraceDraft {
    rng: Rng,
    at: u64,
    events: Vec<Event>,
}

impl TraceDraft {
    /// Appends an event after a random pause of at most `pause` microseconds.
    fn add(&mut self, client: u32, pause: u64, action: Action) {
        self.at += self.rng.below(pause) + 1;
        self.events.push(Event { at_microseconds: self.at, actor: Actor::Client(client), action });
    }

    /// Looks a name up in one directory after the other until it is found in the last of them.
    fn search(&mut self, client: u32, directories: &[String], name: &str) {
        for (number, directory) in (1..).zip(directories) {
            let (directory, name, found) =
                (directory.clone(), name.to_owned(), number == directories.len());
            self.add(client, 200, Action::Lookup { directory, name, found });
        }
    }
}

/// Numbered names.
fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}{number}")).collect()
}

impl Pattern {
    /// Generates a trace of `clients` clients; the same seed gives the same trace.
    #[must_use]
    pub fn trace(self, seed: u64, clients: u32, rounds: u32) -> Vec<Event> {
        let mut draft = TraceDraft { rng: Rng::new(seed), at: 0, events: Vec::new() };
        for round in 0..rounds {
            for client in 1..=clients {
                match self {
                    Self::Path => searches(&mut draft, client, ("/path", 8, "command", 50)),
                    Self::Libraries => searches(&mut draft, client, ("/lib", 6, "lib", 20)),
                    Self::Includes => searches(&mut draft, client, ("/include", 40, "header", 30)),
                    Self::Update => update(&mut draft, client, round),
                    Self::Mail => mail(&mut draft, (client, clients), round),
                    Self::Build => build(&mut draft, client, round),
                }
            }
        }
        draft.events
    }
}

/// Searches for names, each of which is in one of the directories, through the directories before
/// it.
fn searches(
    draft: &mut TraceDraft,
    client: u32,
    (prefix, directories, name, count): (&str, usize, &str, usize),
) {
    let directories = names(prefix, directories);
    for number in 0..count {
        let found_in = 1 + number % directories.len();
        let searched = directories.get(..found_in).unwrap_or(&directories);
        draft.search(client, searched, &format!("{name}{number}"));
        draft.add(client, 100_000, Action::Stat("/".to_owned()));
    }
}

fn update(draft: &mut TraceDraft, client: u32, round: u32) {
    for directory in names("/tree/", 30) {
        draft.add(client, 2_000, Action::List(directory.clone()));
        for name in names("file", 20) {
            let (directory, found) = (directory.clone(), true);
            draft.add(client, 500, Action::Lookup { directory, name, found });
        }
        if draft.rng.below(10) == 0 {
            let (from, to) = (format!(".new{round}"), format!("file{}", draft.rng.below(20)));
            draft.add(
                client,
                500,
                Action::Create { directory: directory.clone(), name: from.clone() },
            );
            let (from, to) = ((directory.clone(), from), (directory, to));
            draft.add(client, 500, Action::Rename { from, to });
        }
    }
}

fn mail(draft: &mut TraceDraft, (client, clients): (u32, u32), round: u32) {
    let folder = |number: u64| format!("/mail/folder{number}/new");
    // The first client delivers to some of the folders that the others read.
    if client == 1 && clients > 1 {
        let (directory, name) = (folder(draft.rng.below(10)), format!("message{round}"));
        draft.add(client, 1_000_000, Action::Create { directory, name });
        return;
    }
    for number in 0..10 {
        draft.add(client, 50_000, Action::Stat(folder(number)));
        draft.add(client, 5_000, Action::List(folder(number)));
    }
    draft.at += 5_000_000;
}

fn build(draft: &mut TraceDraft, client: u32, round: u32) {
    for (part, directory) in names("/source/", 20).into_iter().enumerate() {
        for number in 0..10 {
            let (source, object) = (format!("unit{number}.c"), format!("unit{part}-{number}.o"));
            let found = true;
            let lookup = Action::Lookup { directory: directory.clone(), name: source, found };
            draft.add(client, 1_000, lookup);
            draft.search(client, &names("/include", 12), &format!("header{number}"));
            if round == 0 {
                let directory = format!("/objects{client}");
                draft.add(client, 20_000, Action::Create { directory, name: object });
            }
        }
    }
}

//! Reads traces of other programs.

mod fatrace;
mod nfsdump;
mod paths;
mod strace;

use super::event::{Actor, Event};

/// The formats of traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// The project's own, as docs/bench.md describes it
    Comity,
    /// The output of `strace -f -ttt -y -e trace=%file -o FILE`
    Strace,
    /// The output of `fatrace -t` (fanotify)
    Fatrace,
    /// A line a call and a line a reply, as nfsdump writes them (Ellard and Seltzer 2003)
    Nfsdump,
}

/// A trace that was read, with the number of lines that do not concern directories.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    /// The events in the order of their times.
    pub events: Vec<Event>,
    /// Lines that were left out.
    pub skipped: usize,
}

/// Reads the trace of another program. `actor` is the actor of all events if the format names none.
#[must_use]
pub fn foreign(format: Format, text: &str, actor: Actor) -> Imported {
    let mut imported = match format {
        Format::Comity => Imported::default(),
        Format::Strace => strace::read(text, actor),
        Format::Fatrace => fatrace::read(text, actor),
        Format::Nfsdump => nfsdump::read(text),
    };
    imported.events.truncate(crate::limits::TRACE_EVENTS_MAX);
    imported.events.sort_by_key(|event| event.at_microseconds);
    let first = imported.events.first().map_or(0, |event| event.at_microseconds);
    imported.events.iter_mut().for_each(|event| event.at_microseconds -= first);
    imported
}

//! The text format of traces. A line is an event:
//!
//! ```text
//! # comity directory trace 1
//! 0.000000 1 lookup /usr/bin ls found
//! 0.000210 1 lookup /usr/local/bin ls missing
//! 0.5 1 list /srv/mail
//! 0.6 1 stat /srv/mail
//! 0.7 2 create /srv/mail new
//! 0.8 2 rename /srv/mail new /srv/mail cur
//! 0.9 local remove /srv/mail cur
//! ```
//!
//! The columns are the seconds since the trace began, the number of the client or `local` for a
//! program on the server, the action, and its directories and names. A space in a name is written
//! `%20`, a percent sign `%25`. Empty lines and lines that begin with `#` are skipped.

use std::fmt::Write as _;

use super::event::{Action, Actor, Event};
use super::trace_error::TraceError;
use crate::limits::TRACE_EVENTS_MAX;

/// The first line of a trace that is written.
const HEADING: &str = "# comity directory trace 1\n";

/// Reads a trace.
///
/// # Errors
/// [`TraceError`] with the number of the line.
pub fn read(text: &str) -> Result<Vec<Event>, TraceError> {
    let mut events = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if events.len() == TRACE_EVENTS_MAX {
            return Err(TraceError::too_long(number));
        }
        let event = event(line).map_err(|wanted| TraceError::new(number, wanted))?;
        events.push(event);
    }
    events.sort_by_key(|event: &Event| event.at_microseconds);
    Ok(events)
}

fn event(line: &str) -> Result<Event, &'static str> {
    let mut words = line.split_whitespace();
    let at_microseconds = words.next().and_then(microseconds).ok_or("seconds, as 12.000345")?;
    let actor = match words.next() {
        Some("local") => Actor::Local,
        word => {
            let number = word.and_then(|word| word.parse().ok());
            Actor::Client(number.ok_or("the number of a client, or `local`")?)
        }
    };
    let verb = words.next().ok_or("an action: lookup, list, stat, create, remove or rename")?;
    let arguments: Option<Vec<String>> = words.map(unescaped).collect();
    let arguments = arguments.ok_or("names in which a percent sign is %25 and a space %20")?;
    let action = action(verb, arguments)?;
    Ok(Event { at_microseconds, actor, action })
}

fn action(verb: &str, arguments: Vec<String>) -> Result<Action, &'static str> {
    let count = arguments.len();
    let mut words = arguments.into_iter();
    let mut next = || words.next().unwrap_or_default();
    match (verb, count) {
        ("lookup", 3) => {
            let (directory, name, outcome) = (next(), next(), next());
            let found = match outcome.as_str() {
                "found" => true,
                "missing" => false,
                _ => return Err("`found` or `missing` behind the name"),
            };
            Ok(Action::Lookup { directory, name, found })
        }
        ("list", 1) => Ok(Action::List(next())),
        ("stat", 1) => Ok(Action::Stat(next())),
        ("create", 2) => Ok(Action::Create { directory: next(), name: next() }),
        ("remove", 2) => Ok(Action::Remove { directory: next(), name: next() }),
        ("rename", 4) => Ok(Action::Rename { from: (next(), next()), to: (next(), next()) }),
        ("lookup", _) => Err("a directory, a name, and `found` or `missing`"),
        ("list" | "stat", _) => Err("a directory"),
        ("create" | "remove", _) => Err("a directory and a name"),
        ("rename", _) => Err("a directory and a name, twice"),
        _ => Err("an action: lookup, list, stat, create, remove or rename"),
    }
}

/// Reads seconds with up to six digits after the point.
pub(super) fn microseconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if seconds.is_empty() || fraction.len() > 6 || !digits(seconds) || !digits(fraction) {
        return None;
    }
    let fraction: u64 = format!("{fraction:0<6}").parse().ok()?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(fraction)
}

/// Writes a trace.
#[must_use]
pub fn write(events: &[Event]) -> String {
    let mut text = HEADING.to_owned();
    for event in events {
        let (at, actor) = (event.at_microseconds, event.actor);
        // Writing to a String does not fail.
        let _ = write!(text, "{}.{:06} ", at / 1_000_000, at % 1_000_000);
        let _ = match actor {
            Actor::Client(number) => write!(text, "{number}"),
            Actor::Local => write!(text, "local"),
        };
        let _ = writeln!(text, " {}", said(&event.action));
    }
    text
}

fn said(action: &Action) -> String {
    match action {
        Action::Lookup { directory, name, found } => {
            let outcome = if *found { "found" } else { "missing" };
            format!("lookup {} {} {outcome}", escaped(directory), escaped(name))
        }
        Action::List(directory) => format!("list {}", escaped(directory)),
        Action::Stat(directory) => format!("stat {}", escaped(directory)),
        Action::Create { directory, name } => {
            format!("create {} {}", escaped(directory), escaped(name))
        }
        Action::Remove { directory, name } => {
            format!("remove {} {}", escaped(directory), escaped(name))
        }
        Action::Rename { from, to } => {
            let [from, to] =
                [from, to].map(|(directory, name)| escaped(directory) + " " + &escaped(name));
            format!("rename {from} {to}")
        }
    }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for sign in text.chars() {
        if sign == '%' || sign.is_whitespace() || sign.is_control() {
            let mut bytes = [0; 4];
            for byte in sign.encode_utf8(&mut bytes).bytes() {
                let _ = write!(escaped, "%{byte:02X}");
            }
        } else {
            escaped.push(sign);
        }
    }
    escaped
}

fn unescaped(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(rest.next())?, digit(rest.next())?);
        bytes.push((high * 16 + low) as u8);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_error_names_the_line_and_what_was_expected() {
        for (line, expected) in [
            ("x 1 list /a", "seconds"),
            ("1.0000000 1 list /a", "seconds"),
            ("1 one list /a", "number of a client"),
            ("1 1 walk /a", "an action"),
            ("1 1 lookup /a b", "`found` or `missing`"),
            ("1 1 lookup /a b there", "`found` or `missing`"),
            ("1 1 list /a%2", "%25"),
            ("1 1 rename /a b /c", "twice"),
            ("99999999999999999999 1 list /a", "seconds"),
        ] {
            let error = read(&format!("# heading\n\n{line}\n")).unwrap_err().to_string();
            assert!(error.starts_with("line 3: ") && error.contains(expected), "{line}: {error}");
        }
    }

    fn action() -> impl Strategy<Value = Action> {
        let word = || "[ a-z%/\u{e4}\t]{1,8}";
        let lookup = (word(), word(), any::<bool>())
            .prop_map(|(directory, name, found)| Action::Lookup { directory, name, found });
        let rename = (word(), word(), word(), word())
            .prop_map(|(a, b, c, d)| Action::Rename { from: (a, b), to: (c, d) });
        let create =
            (word(), word()).prop_map(|(directory, name)| Action::Create { directory, name });
        let remove =
            (word(), word()).prop_map(|(directory, name)| Action::Remove { directory, name });
        prop_oneof![
            lookup,
            word().prop_map(Action::List),
            word().prop_map(Action::Stat),
            create,
            remove,
            rename
        ]
    }

    proptest! {
        #[test]
        fn a_trace_is_read_as_it_was_written(
            steps in vec((0_u64..1 << 40, prop::option::of(0_u32..9), action()), 0..20),
        ) {
            let mut events: Vec<Event> = steps
                .into_iter()
                .map(|(at_microseconds, client, action)| {
                    let actor = client.map_or(Actor::Local, Actor::Client);
                    Event { at_microseconds, actor, action }
                })
                .collect();
            events.sort_by_key(|event| event.at_microseconds);
            prop_assert_eq!(read(&write(&events)).unwrap(), events);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,80}") {
            let _ = read(&text);
        }
    }
}

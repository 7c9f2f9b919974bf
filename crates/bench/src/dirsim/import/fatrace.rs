//! Reads the output of fatrace(8), which shows the events of fanotify(7).

use super::Imported;
use super::paths::{absolute, looked_up, split};
use crate::dirsim::event::{Action, Actor, Event};
use crate::dirsim::text::microseconds;

/// Reads lines as `10:15:03.123456 sh(17): RO /etc/passwd`: an optional time, the program, letters
/// for what happened, and the path.
pub(super) fn read(text: &str, actor: Actor) -> Imported {
    let (mut imported, mut now) = (Imported::default(), 0);
    for line in text.lines() {
        let Some((time, letters, path)) = parts(line) else {
            imported.skipped += 1;
            continue;
        };
        let at_microseconds = time.unwrap_or(now);
        now = at_microseconds;
        let actions = actions(letters, &absolute("/", path));
        imported.skipped += usize::from(actions.is_empty());
        let event = |action| Event { at_microseconds, actor, action };
        imported.events.extend(actions.into_iter().map(event));
    }
    imported
}

fn parts(line: &str) -> Option<(Option<u64>, &str, &str)> {
    let (head, tail) = line.split_once("): ")?;
    let time = head.split_once(' ').and_then(|(time, _)| clock(time));
    let (letters, path) = tail.trim_start().split_once(' ')?;
    Some((time, letters, path.trim_start()))
}

/// The time of day, or seconds since 1970.
fn clock(text: &str) -> Option<u64> {
    let mut total = 0_u64;
    let mut fields = text.rsplit(':');
    let seconds = microseconds(fields.next()?)?;
    for field in text.split(':').rev().skip(1).collect::<Vec<_>>().into_iter().rev() {
        total = total.checked_mul(60)?.checked_add(field.parse().ok()?)?;
    }
    total.checked_mul(60_000_000)?.checked_add(seconds)
}

fn actions(letters: &str, path: &str) -> Vec<Action> {
    let Some((directory, name)) = split(path) else { return Vec::new() };
    if letters.contains(['+', '>']) {
        vec![Action::Create { directory, name }]
    } else if letters.contains(['D', '<']) {
        vec![Action::Remove { directory, name }]
    } else if letters.contains(['O', 'R']) {
        looked_up(path, true)
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dirsim::text::write;

    #[test]
    fn events_of_fanotify_become_events() {
        let text = "00:00:01.000000 sh(17): O /etc/motd\n00:01:01.500000 sh(17): + /tmp/a b\n\
                    00:01:02.000000 sh(17): D /tmp/a b\n00:01:03.000000 a(1): W /etc/a\nnoise\n";
        let imported = super::super::foreign(super::super::Format::Fatrace, text, Actor::Local);
        let expected = "\
# comity directory trace 1
0.000000 local lookup / etc found
0.000000 local lookup /etc motd found
60.500000 local create /tmp a%20b
61.000000 local remove /tmp a%20b
";
        assert_eq!(write(&imported.events), expected);
        assert_eq!(imported.skipped, 2);
    }
}

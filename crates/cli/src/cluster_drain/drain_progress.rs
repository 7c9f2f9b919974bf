//! The progress of a drain, as the answers about the cluster show it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::cache_status::counted;
use crate::clients::text;

/// The way in which a drain has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DrainEnd {
    /// The head serves no export.
    Drained,
    /// The head was not up.
    Absent,
    /// The head ended while it had exports.
    Failed,
    /// Another command has taken the mark away.
    Undrained,
    /// Exports are still there.
    Staying,
}

impl DrainEnd {
    /// Returns whether the head has no exports, and no client has to reclaim its state.
    pub(super) const fn is_good(self) -> bool {
        matches!(self, Self::Drained | Self::Absent)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Drained => "drained",
            Self::Absent => "absent",
            Self::Failed => "failed",
            Self::Undrained => "undrained",
            Self::Staying => "staying",
        }
    }
}

/// The exports that a drained head has had since the command began.
pub(super) struct DrainProgress {
    head: String,
    /// The run of the head when it was first seen drained.
    run: Option<Value>,
    /// All exports that it has had since.
    known: BTreeSet<String>,
    /// The exports that are at the head, and why.
    here: BTreeMap<String, Option<String>>,
    /// The exports that have left, and where they are.
    moved: BTreeMap<String, String>,
}

impl DrainProgress {
    pub(super) fn new(head: &str) -> Self {
        let (run, known, here, moved) = Default::default();
        Self { head: head.to_owned(), run, known, here, moved }
    }

    /// Returns the number of exports that have moved.
    pub(super) fn moved(&self) -> usize {
        self.moved.len()
    }

    /// Notes an answer; returns what is new in it, and whether the drain has ended. An answer from
    /// before the mark says nothing.
    pub(super) fn note(&mut self, answer: &Value) -> (Vec<String>, Option<DrainEnd>) {
        if !rows(&answer["drained"]).any(|name| *name == *self.head) {
            return (Vec::new(), self.run.as_ref().map(|_| DrainEnd::Undrained));
        }
        let up = rows(&answer["heads"]).find(|head| head["head"] == *self.head);
        let run = up.map_or(Value::Null, |head| head["run"].clone());
        let begun = self.run.get_or_insert_with(|| run.clone());
        if *begun != run {
            return (Vec::new(), Some(DrainEnd::Failed));
        }
        let Some(up) = up else { return (Vec::new(), Some(DrainEnd::Absent)) };
        let lines = self.note_exports(&answer["exports"]);
        // The head may have exports that the configuration of the head that answers does not have.
        (lines, (up["exports"] == 0).then_some(DrainEnd::Drained))
    }

    fn note_exports(&mut self, exports: &Value) -> Vec<String> {
        let is_here = |export: &&Value| export["head"] == *self.head;
        let row = |export: &Value| {
            let why = export["stays_because"].as_str().map(str::to_owned);
            (text(&export["export"]).to_owned(), why)
        };
        let here: BTreeMap<_, _> = rows(exports).filter(is_here).map(row).collect();
        self.known.extend(here.keys().cloned());
        let before = std::mem::replace(&mut self.here, here);
        let mut lines = Vec::new();
        for export in rows(exports) {
            let (path, at) = (text(&export["export"]), text(&export["head"]));
            match self.here.get(path) {
                Some(why) if before.get(path) != Some(why) => {
                    self.moved.remove(path);
                    let stays = |why| format!("{path}: stays at {}: {why}", self.head);
                    lines.extend(why.as_ref().map(stays));
                }
                None if before.contains_key(path) && !at.is_empty() => {
                    self.moved.insert(path.to_owned(), at.to_owned());
                    let (moved, all) = (self.moved.len(), self.known.len());
                    lines.push(format!("{path}: moved to {at} ({moved} of {all})"));
                }
                _ => {}
            }
        }
        lines
    }

    /// Returns the end in words.
    pub(super) fn told(&self, end: DrainEnd) -> String {
        let head = &self.head;
        match end {
            DrainEnd::Drained => format!(
                "{head} is drained: it serves no export and takes none, until `comity cluster \
                 undrain {head}`"
            ),
            DrainEnd::Absent => format!(
                "{head} is not up; when it starts, it takes no export, until `comity cluster \
                 undrain {head}`"
            ),
            DrainEnd::Failed => format!(
                "{head} has ended before all of its exports had moved: other heads take them \
                 over, and clients reclaim their state"
            ),
            DrainEnd::Undrained => {
                format!("{head} was undrained by another command; exports that moved stay away")
            }
            DrainEnd::Staying => self.told_staying(),
        }
    }

    fn told_staying(&self) -> String {
        let (head, left) = (&self.head, self.here.len() as u64);
        let left = match left {
            0 => "exports that the head that was asked does not have".to_owned(),
            left => counted(left, "export"),
        };
        format!(
            "{left} could not move from {head}, which tries again until `comity cluster undrain \
             {head}`. Remove the reasons, which `comity cluster status` shows, and repeat the \
             command; if {head} is stopped as it is, clients reclaim their state in a grace period"
        )
    }

    /// Returns the end for programs.
    pub(super) fn json(&self, end: DrainEnd) -> Value {
        let moved = self.moved.iter().map(|(path, at)| json!({ "export": path, "head": at }));
        let staying =
            self.here.iter().map(|(path, why)| json!({ "export": path, "stays_because": why }));
        json!({
            "head": self.head,
            "state": end.name(),
            "moved": moved.collect::<Vec<_>>(),
            "staying": staying.collect::<Vec<_>>(),
        })
    }
}

fn rows(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer in which the head `a` runs, with exports at these heads.
    fn answer(exports: &[(&str, Option<&str>, Option<&str>)]) -> Value {
        let rows = exports
            .iter()
            .map(|(path, at, why)| json!({ "export": path, "head": at, "stays_because": why }));
        let here = exports.iter().filter(|(_, at, _)| *at == Some("a")).count();
        json!({
            "heads": [{ "head": "a", "run": "01", "exports": here }, { "head": "b", "run": "02" }],
            "drained": ["a"],
            "exports": rows.collect::<Vec<_>>(),
        })
    }

    #[test]
    fn each_move_and_each_reason_is_shown_once_until_the_head_is_empty() {
        let mut progress = DrainProgress::new("a");
        let before = json!({ "drained": [], "heads": [], "exports": [] });
        assert_eq!(progress.note(&before), (vec![], None), "this answer is older than the mark");
        let paths = ["/w", "/x", "/y"];
        let all = answer(&paths.map(|path| (path, Some("a"), None)));
        assert_eq!(progress.note(&all), (vec![], None));
        let gone = ["/w", "/x"].map(|path| (path, Some("b"), None));
        let one = answer(&[gone[0], gone[1], ("/y", Some("a"), Some("it has locks"))]);
        let expected =
            ["/w: moved to b (1 of 3)", "/x: moved to b (2 of 3)", "/y: stays at a: it has locks"];
        assert_eq!(progress.note(&one), (expected.map(str::to_owned).to_vec(), None));
        assert_eq!(progress.note(&one), (vec![], None));
        let json = progress.json(DrainEnd::Staying);
        assert_eq!(json["staying"][0]["stays_because"], "it has locks");
        let none = answer(&[gone[0], gone[1], ("/y", Some("b"), None)]);
        let line = "/y: moved to b (3 of 3)".to_owned();
        assert_eq!(progress.note(&none), (vec![line], Some(DrainEnd::Drained)));
        assert_eq!(progress.json(DrainEnd::Drained)["moved"][2]["head"], "b");
    }

    #[test]
    fn a_head_that_ends_or_is_undrained_meanwhile_is_told_from_one_that_was_not_up() {
        let full = answer(&[("/x", Some("a"), None)]);
        let gone = json!({ "drained": ["a"], "heads": [], "exports": [] });
        let undrained = json!({ "drained": [], "heads": [], "exports": [] });
        for (answers, end) in [
            (vec![&gone], DrainEnd::Absent),
            (vec![&full, &gone], DrainEnd::Failed),
            (vec![&full, &undrained], DrainEnd::Undrained),
        ] {
            let mut progress = DrainProgress::new("a");
            let ends: Vec<_> = answers.iter().map(|it| progress.note(it).1).collect();
            assert_eq!(ends.last(), Some(&Some(end)));
            assert_eq!(end.is_good(), end == DrainEnd::Absent);
        }
    }

    /// The head that answers may have another configuration.
    #[test]
    fn an_export_that_is_not_in_the_answer_keeps_the_head_from_being_empty() {
        let mut progress = DrainProgress::new("a");
        let mut answer = answer(&[]);
        answer["heads"][0]["exports"] = 1.into();
        assert_eq!(progress.note(&answer), (vec![], None));
    }
}

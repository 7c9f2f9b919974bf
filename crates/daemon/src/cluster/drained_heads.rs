//! Heads that are drained: each has a mark in etcd, which stays when the head ends. Such a head
//! moves its exports to other heads and takes none.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use comity_export::{Export, Plan};
use comity_store::etcd::{Compare, KeyValue, Op};
use serde_json::{Value, json};

use super::export_watch::{ClusterParts, ClusterView};
use super::head::Head;
use super::keys::{self, HeadRun};

/// The drained heads, as etcd has them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DrainedHeads {
    /// Their names. They need not be up.
    pub(super) heads: BTreeSet<String>,
    /// The exports that have not moved yet from heads that are up, and why.
    staying: BTreeMap<(String, PathBuf), String>,
}

impl DrainedHeads {
    /// Reads the keys under [`keys::DRAINED`].
    pub(super) fn read(entries: &[KeyValue]) -> Self {
        let mut read = Self::default();
        for entry in entries {
            match keys::read_drained(entry) {
                Some((head, None)) => {
                    read.heads.insert(head);
                }
                Some((head, Some(path))) => {
                    let reason = String::from_utf8_lossy(&entry.value).into_owned();
                    read.staying.insert((head, path), reason);
                }
                None => {}
            }
        }
        read
    }

    /// Returns whether a head is drained.
    pub(super) fn contains(&self, head: &str) -> bool {
        self.heads.contains(head)
    }

    /// Returns why an export has not moved yet from the head that serves it.
    pub(super) fn reason(&self, head: &HeadRun, path: &Path) -> Option<&str> {
        let key = (head.name.clone(), path.to_owned());
        self.staying.get(&key).filter(|_| self.contains(&head.name)).map(String::as_str)
    }

    /// Returns the changes after which etcd has these reasons for exports of a head and no others.
    pub(super) fn telling(&self, head: &Head, reasons: &BTreeMap<&Path, &str>) -> Vec<Op> {
        let name = &head.run.name;
        let told = |path: &Path| self.staying.get(&(name.clone(), path.to_owned()));
        let untold = reasons.iter().filter(|(path, why)| told(path).map(|it| &**it) != Some(**why));
        let puts = untold.map(|(path, why)| Op::Put {
            key: keys::staying(name, path),
            value: why.as_bytes().to_vec(),
            lease: head.lease.id,
        });
        let of_this = self.staying.keys().filter(|(head, _)| head == name);
        let over = of_this.filter(|(_, path)| !reasons.contains_key(&**path));
        puts.chain(over.map(|(_, path)| Op::Delete(keys::staying(name, path)))).collect()
    }
}

/// The reason against a move to a drained head.
pub(super) fn refusal(head: &str) -> String {
    format!("the head {head} is drained: name another one, or say `comity cluster undrain {head}`")
}

impl Head {
    /// The condition of a change that this head is not drained.
    pub(super) fn is_undrained(&self) -> Compare {
        Compare::Created(keys::drained(&self.run.name), 0)
    }
}

impl ClusterView {
    /// Returns the heads that are up and not drained.
    pub(super) fn undrained(&self) -> impl Iterator<Item = &HeadRun> {
        self.heads.iter().filter(|head| !self.drained.contains(&head.name))
    }

    /// Returns the number of exports that a head serves.
    pub(super) fn exports_of(&self, head: &HeadRun) -> usize {
        self.served.values().filter(|at| *at == head).count()
    }

    /// Returns the heads that could take exports of the drained head `own`, the best first: the
    /// home of the exports, then those with the fewest exports.
    pub(super) fn takers(&self, own: &HeadRun, home: Option<&str>) -> Vec<&HeadRun> {
        let mut takers: Vec<_> = self.undrained().filter(|head| head.name != own.name).collect();
        takers.sort_by_key(|head| {
            (home != Some(&*head.name), self.exports_of(head), head.name.as_str())
        });
        takers
    }

    /// Returns whether a head serves other exports with the address of this one.
    pub(super) fn has_others_here(&self, own: &HeadRun, (plan, export): (&Plan, &Export)) -> bool {
        let address = export.settings().address;
        let has_it = |other: &Export| address.is_some() && other.settings().address == address;
        plan.exports().iter().any(|it| has_it(it) && self.served.get(it.path()) == Some(own))
    }

    /// Checks that a head exists, or may be started: the name may be mistyped.
    fn check_known(&self, plan: &Plan, name: &str) -> Result<()> {
        let is_home = |export: &Export| export.settings().home.as_deref() == Some(name);
        let is_known = self.is_up(name)
            || self.drained.contains(name)
            || plan.exports().iter().any(|it| is_home(it));
        let up: Vec<_> = self.heads.iter().map(|head| &*head.name).collect();
        ensure!(
            is_known,
            "no head {name} is up, and no export has home={name}; heads that are up: {}",
            up.join(", ")
        );
        Ok(())
    }
}

impl ClusterParts {
    /// Marks a head as drained. It sees the mark and moves its exports.
    ///
    /// # Errors
    /// There is no such head, no other head could take its exports, or etcd does not answer.
    pub(crate) fn drain(&self, name: &str) -> Result<Value> {
        let view = ClusterView::read(&self.head.etcd)?;
        view.check_known(&self.exports.current(), name)?;
        if !view.drained.contains(name) {
            let other = view.undrained().find(|head| head.name != name);
            let other = other.with_context(|| {
                format!(
                    "no head could take the exports of {name}, since no other one is up that is \
                     not drained: start another head, or undrain one"
                )
            })?;
            // Two commands at the same time must not drain both of the last two heads.
            let condition = Compare::Created(keys::drained(&other.name), 0);
            let mark = Op::put(keys::drained(name), Vec::new());
            let marked = self.head.change_cluster_if(vec![condition], &[mark])?;
            ensure!(marked, "the head {} has been drained meanwhile: try again", other.name);
            tracing::info!(head = name, "a head is drained");
        }
        self.look_again();
        Ok(json!({ "head": name }))
    }

    /// Takes the mark of a drained head away. Exports that have moved stay where they are.
    ///
    /// # Errors
    /// The head is not drained, or etcd does not answer.
    pub(crate) fn undrain(&self, name: &str) -> Result<Value> {
        let key = keys::drained(name);
        let stored = self.head.etcd.get(&key)?;
        ensure!(stored.is_some(), "the head {name} is not drained");
        let taken = self.head.change_cluster_if(Vec::new(), &[Op::Delete(key)])?;
        ensure!(taken, "this head has lost its lease, and ends: ask another one");
        tracing::info!(head = name, "a head is not drained any more");
        self.look_again();
        Ok(json!({ "head": name }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(name: &str) -> HeadRun {
        HeadRun { name: name.to_owned(), run: format!("run of {name}") }
    }

    fn view(heads: &[&str], served: &[(&str, &str)], drained: &[&str]) -> ClusterView {
        let entry = |key| KeyValue { key, value: b"busy".to_vec(), created: 1, changed: 1 };
        let marks: Vec<_> = drained.iter().map(|name| entry(keys::drained(name))).collect();
        ClusterView {
            heads: heads.iter().map(|name| head(name)).collect(),
            served: served.iter().map(|(path, at)| (path.into(), head(at))).collect(),
            drained: DrainedHeads::read(&marks),
            ..ClusterView::default()
        }
    }

    #[test]
    fn exports_of_a_drained_head_go_home_or_to_the_head_with_the_fewest() {
        let served = [("/1", "a"), ("/2", "b"), ("/3", "b"), ("/4", "d")];
        let view = view(&["a", "b", "c", "d", "e"], &served, &["a", "e"]);
        let names = |home| view.takers(&head("a"), home).iter().map(|it| &*it.name).collect();
        let found: Vec<Vec<&str>> = [None, Some("b"), Some("e"), Some("a")].map(names).into();
        assert_eq!(found, [["c", "d", "b"], ["b", "c", "d"], ["c", "d", "b"], ["c", "d", "b"]]);
    }

    #[test]
    fn the_reason_of_an_export_belongs_to_a_head_that_is_drained() {
        let entry = |key| KeyValue { key, value: b"busy".to_vec(), created: 1, changed: 1 };
        let path = Path::new("/srv/x");
        let reason = entry(keys::staying("a", path));
        let read = DrainedHeads::read(&[entry(keys::drained("a")), reason.clone()]);
        assert_eq!(read.reason(&head("a"), path), Some("busy"));
        assert_eq!(read.reason(&head("b"), path), None);
        assert_eq!(read.reason(&head("a"), Path::new("/srv")), None);
        let undrained = DrainedHeads::read(&[reason]);
        assert!(!undrained.contains("a") && undrained.reason(&head("a"), path).is_none());
    }
}

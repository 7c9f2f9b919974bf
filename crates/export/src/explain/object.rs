use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use comity_cloak::Verdict;
use comity_vfs::{Access, Attr, Disk, FileType, Listed, ReadInto, Result, Status};

use super::ids::called;
use super::{Chain, Operation};
use crate::limits::EXPLAINED_ENTRIES_MAX;
use crate::{Node, RuleSource, View};

impl Chain {
    /// Looks up an object as a client would, and tries the operation on it.
    pub(super) fn object(
        &mut self,
        view: &View<'_>,
        origin: Option<&RuleSource>,
        path: &Path,
        operation: Operation,
    ) -> Result<()> {
        let mut node = view.root();
        for component in path.components() {
            node = match component {
                Component::Normal(name) => self.step(view, origin, &node, name.as_bytes())?,
                Component::RootDir | Component::CurDir => node,
                _ => return Err(Status::Inval),
            };
        }
        let attr = view.getattr(&node)?;
        let text = format!(
            "{} of uid {} and gid {}, mode {:03o}",
            kind(attr.file_type),
            called(attr.uid.number(), view.owner_out(attr.uid)),
            called(attr.gid.number(), view.owner_group_out(attr.gid)),
            attr.mode.bits()
        );
        self.add("shown to the client", text, None);
        self.operation(view, origin, &node, operation)
    }

    fn step(
        &mut self,
        view: &View<'_>,
        origin: Option<&RuleSource>,
        dir: &Node,
        name: &[u8],
    ) -> Result<Node> {
        let shown = String::from_utf8_lossy(name).into_owned();
        if let Ok((attr, verdict)) = view.behind(dir, name) {
            self.verdict(&shown, &attr, verdict, origin);
        }
        match view.lookup(dir, name) {
            Ok((seen, _)) => Ok(seen.node),
            Err(status) => {
                self.add("lookup", format!("{shown}: {status}"), None);
                Err(status)
            }
        }
    }

    fn verdict(
        &mut self,
        name: &str,
        attr: &Attr<Disk>,
        verdict: Verdict,
        origin: Option<&RuleSource>,
    ) {
        let place = |entry: u32| origin.and_then(|origin| origin.cloaks.get(entry as usize));
        let (what, place) = match verdict {
            Verdict::Root => ("seen, as everything is by the server's root", None),
            Verdict::Uncovered => ("seen: no cloak covers it", None),
            Verdict::Owner => ("seen by its owner", None),
            Verdict::Shown(entry) => ("seen: its mode is let through by the cloak", place(entry)),
            Verdict::Hidden(entry) => ("hidden by the cloak", place(entry)),
        };
        let mode = attr.mode.bits();
        let text = format!(
            "{name} (server uid {}, gid {}, mode {mode:03o}) is {what}",
            attr.uid, attr.gid
        );
        self.add("cloak", text, place);
    }

    fn operation(
        &mut self,
        view: &View<'_>,
        origin: Option<&RuleSource>,
        node: &Node,
        operation: Operation,
    ) -> Result<()> {
        match operation {
            Operation::Stat => Ok(()),
            Operation::Read => {
                let mut bytes = Vec::new();
                let mut into = ReadInto::new(&mut bytes);
                self.judged("read", view.read(node, 0, 1, &mut into).map(drop))
            }
            Operation::List => self.list(view, node),
            Operation::Execute => {
                self.right(view, node, "execute", Access::EXECUTE | Access::LOOKUP)
            }
            Operation::Write if view.rules().read_only => {
                let place = origin.and_then(|origin| origin.option("access"));
                self.add("write", "the export is read-only for this client", place);
                Err(Status::RoFs)
            }
            Operation::Write => self.right(view, node, "write", Access::MODIFY | Access::EXTEND),
        }
    }

    /// Returns whether the caller has any of these rights. ACCESS reports each right only for types
    /// of objects to which it applies.
    fn right(
        &mut self,
        view: &View<'_>,
        node: &Node,
        about: &'static str,
        rights: Access,
    ) -> Result<()> {
        let granted = view.access(node, rights).and_then(|(granted, _)| {
            if granted.intersects(rights) { Ok(()) } else { Err(Status::Acces) }
        });
        self.judged(about, granted)
    }

    fn judged(&mut self, about: &'static str, result: Result<()>) -> Result<()> {
        let text = match result {
            Ok(()) => "the file system allows it".to_owned(),
            Err(status) => format!("the file system says: {status}"),
        };
        self.add(about, text, None);
        result
    }

    fn list(&mut self, view: &View<'_>, node: &Node) -> Result<()> {
        let counted = count(view, node);
        if let Ok(count) = counted {
            self.add("entries", format!("{count} are shown"), None);
        }
        self.judged("list", counted.map(drop))
    }
}

/// Counts the visible entries of a directory.
fn count(view: &View<'_>, node: &Node) -> Result<usize> {
    let (mut count, mut next) = (0_usize, Some(0));
    while let Some(cookie) = next {
        let part = view.readdir(node, cookie, Listed::Names, &mut |_, _| {
            count += 1;
            match count {
                EXPLAINED_ENTRIES_MAX.. => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        });
        next = part?.rest;
    }
    Ok(count)
}

const fn kind(file_type: FileType) -> &'static str {
    match file_type {
        FileType::Regular => "a file",
        FileType::Directory => "a directory",
        FileType::Symlink => "a symbolic link, which clients follow themselves,",
        FileType::Block | FileType::Character => "a device",
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
    }
}

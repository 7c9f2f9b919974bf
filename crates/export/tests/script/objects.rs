//! Commands of a transcript that look at objects and change them, through a view.

use std::ops::ControlFlow;

use comity_export::{Node, Plan, Refusal, View};
use comity_vfs::{
    Access, Attr, Create, FileType, Gid, Listed, Mode, ReadInto, SetAttr, Special, Uid, Wire,
};

use crate::caller::Caller;

/// No client holds state in these tests.
const CLEAR: comity_export::Clearance = comity_export::Clearance::given();
const NAMES: comity_export::DirectoryClearance<'static> =
    comity_export::DirectoryClearance::given();

type Results = Result<Vec<String>, Refusal>;

/// Does one command as `caller`; `None` if there is no such command.
pub(crate) fn run(plan: &Plan, caller: &Caller, words: &[&str]) -> Option<Results> {
    let place = || parent(plan, caller, words[1]);
    let object = || caller.enter(plan, words[1]);
    Some(match words[0] {
        "stat" => object().and_then(|(view, node)| Ok(vec![shown(&view.getattr(&node)?)])),
        "list" => object().and_then(|(view, node)| list(&view, &node)),
        "access" => object().and_then(|(view, node)| access(&view, &node)),
        "read" => object().and_then(|(view, node)| read(&view, &node)),
        "write" => object().and_then(|(view, node)| {
            let text = words[2].as_bytes();
            Ok(vec![format!("{} bytes", view.write(CLEAR, &node, 0, text)?.value)])
        }),
        "chown" | "chgrp" | "chmod" => object().and_then(|(view, node)| {
            let changed = view.setattr(CLEAR, &node, &change(words[0], words[2]), None);
            Ok(changed.map(|_| Vec::new())?)
        }),
        "lookup" => place().and_then(|(view, dir, name)| {
            Ok(vec![shown(&view.lookup(&dir, name.as_bytes())?.0.attr)])
        }),
        "create" | "mkdir" | "symlink" | "fifo" => {
            place().and_then(|(view, dir, name)| make(words[0], &view, &dir, name.as_bytes()))
        }
        "remove" => place().and_then(|(view, dir, name)| {
            Ok(view.remove(NAMES, &dir, name.as_bytes()).map(|_| Vec::new())?)
        }),
        "rmdir" => place().and_then(|(view, dir, name)| {
            Ok(view.rmdir(NAMES, &dir, name.as_bytes()).map(|_| Vec::new())?)
        }),
        "rename" | "link" => move_to(plan, caller, words),
        _ => return None,
    })
}

/// The directory of a path as the caller sees it, and the last name of the path.
fn parent<'p, 'n>(
    plan: &'p Plan,
    caller: &Caller,
    path: &'n str,
) -> Result<(View<'p>, Node, &'n str), Refusal> {
    let (dir, name) = path.rsplit_once('/').unwrap();
    caller.enter(plan, dir).map(|(view, node)| (view, node, name))
}

fn shown(attr: &Attr<Wire>) -> String {
    let kind = match attr.file_type {
        FileType::Directory => "directory",
        FileType::Regular => "file",
        FileType::Symlink => "symlink",
        _ => "special",
    };
    format!("{kind} {:o} of uid {} gid {}", attr.mode.bits(), attr.uid, attr.gid)
}

fn list(view: &View<'_>, dir: &Node) -> Results {
    let mut found = Vec::new();
    view.readdir(dir, 0, Listed::Names, &mut |listing, _| {
        found.push(String::from_utf8(listing.name.bytes().to_vec()).unwrap());
        ControlFlow::Continue(())
    })?;
    found.sort();
    Ok(vec![if found.is_empty() { "nothing".into() } else { found.join(" ") }])
}

fn access(view: &View<'_>, node: &Node) -> Results {
    let (granted, _) = view.access(node, Access::ALL)?;
    let rights = [
        (Access::READ, "read"),
        (Access::LOOKUP, "lookup"),
        (Access::MODIFY, "modify"),
        (Access::EXTEND, "extend"),
        (Access::DELETE, "delete"),
        (Access::EXECUTE, "execute"),
    ];
    let held = rights.iter().filter(|(right, _)| granted.contains(*right));
    Ok(vec![held.map(|(_, name)| *name).collect::<Vec<_>>().join(" ")])
}

fn read(view: &View<'_>, node: &Node) -> Results {
    let mut bytes = Vec::new();
    let mut into = ReadInto::new(&mut bytes);
    view.read(node, 0, 100, &mut into)?;
    Ok(vec![format!("{:?}", String::from_utf8_lossy(&bytes))])
}

fn change(command: &str, value: &str) -> SetAttr<Wire> {
    let mut set = SetAttr::default();
    match command {
        "chown" => set.uid = Some(Uid::new(value.parse().unwrap())),
        "chgrp" => set.gid = Some(Gid::new(value.parse().unwrap())),
        _ => set.mode = Some(Mode::new(u32::from_str_radix(value, 8).unwrap())),
    }
    set
}

fn make(command: &str, view: &View<'_>, dir: &Node, name: &[u8]) -> Results {
    let set = change("chmod", if command == "mkdir" { "755" } else { "644" });
    let made = match command {
        "create" => view.create(NAMES, dir, name, &Create::Guarded(set))?,
        "mkdir" => view.mkdir(NAMES, dir, name, &set)?,
        "symlink" => view.symlink(NAMES, dir, name, b"target", &set)?,
        _ => view.mknod(NAMES, dir, name, Special::Fifo, &set)?,
    };
    Ok(vec![shown(&made.value.attr)])
}

fn move_to(plan: &Plan, caller: &Caller, words: &[&str]) -> Results {
    let (_, to_dir, to) = parent(plan, caller, words[2])?;
    if words[0] == "link" {
        let (view, node) = caller.enter(plan, words[1])?;
        return Ok(view.link(NAMES, &node, &to_dir, to.as_bytes()).map(|_| Vec::new())?);
    }
    let (view, dir, name) = parent(plan, caller, words[1])?;
    let (from, to) = ((&dir, name.as_bytes()), (&to_dir, to.as_bytes()));
    Ok(view.rename(NAMES, from, to).map(|_| Vec::new())?)
}

use std::ops::ControlFlow;

use comity_vfs::permission::Permissions;
use comity_vfs::{Attr, Cred, Disk, Handle, Listed, Listing, Name, Node, Result};

use super::Memory;
use super::attributes::{accessed, attr_of_living};
use super::directory::Entry;
use super::limits::LISTING_ENTRIES_MAX;

pub(super) fn readdir(
    memory: &Memory,
    cred: &Cred<Disk>,
    (dir, mut cookie): (&Handle, u64),
    wanted: Listed,
    visit: &mut dyn FnMut(&Listing<'_, Disk>) -> ControlFlow<()>,
) -> Result<Attr<Disk>> {
    let dir = memory.table.find(dir)?;
    loop {
        let state = dir.read();
        let attr = attr_of_living(&state)?;
        let directory = state.directory()?;
        state.object(&attr).check(cred, Permissions::READ)?;
        let batch = directory.behind(cookie, LISTING_ENTRIES_MAX)?;
        drop(state);
        let Some(last) = batch.last().map(|(cookie, _)| *cookie) else {
            return Ok(Attr { atime: accessed(memory, &dir, &attr), ..attr });
        };
        cookie = last;
        for (cookie, entry) in &batch {
            if show(memory, (*cookie, entry), wanted, visit)?.is_break() {
                return Ok(Attr { atime: accessed(memory, &dir, &attr), ..attr });
            }
        }
    }
}

fn show(
    memory: &Memory,
    (cookie, entry): (u64, &Entry),
    wanted: Listed,
    visit: &mut dyn FnMut(&Listing<'_, Disk>) -> ControlFlow<()>,
) -> Result<ControlFlow<()>> {
    let node = match wanted {
        Listed::Names => None,
        Listed::Nodes => node(memory, entry.fileid),
    };
    let name = Name::new(&entry.name)?;
    Ok(visit(&Listing { name, fileid: entry.fileid, cookie, node }))
}

/// Returns an object; `None` if it was removed after its name was read.
fn node(memory: &Memory, fileid: u64) -> Option<Node<Disk>> {
    let node = memory.table.get(fileid).ok()?;
    let attr = attr_of_living(&node.read()).ok()?;
    Some(Node { handle: node.handle, attr })
}

//! The comparison of a file's mirrors, as JSON.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use comity_export::Export;
use comity_nfs4::Memory;
use comity_vfs::{ComparedRange, DifferingRange, Handle, Placement, Status};
use serde_json::{Value, json};

/// Compares a range (offset, length) of the good mirrors of a file.
///
/// # Errors
/// The file cannot be used.
pub(crate) fn compare(
    (export, placement): (&Arc<Export>, &dyn Placement),
    memory: &Memory,
    (file, range): (&Handle, (u64, u64)),
) -> Result<Value> {
    match placement.compare(file, range) {
        Ok(Some(compared)) => {
            // Layouts that were given out meanwhile count, too.
            let is_written = memory.engine.may_be_written_by_layouts(&export.key(file));
            Ok(shown(&compared, is_written))
        }
        // The file is gone, or has no two good mirrors.
        Ok(None) | Err(Status::Stale | Status::NoEnt) => Ok(json!({ "state": "none" })),
        Err(Status::Delay) => Ok(json!({ "state": "moving" })),
        Err(status) => Err(anyhow!("the mirrors were not compared: {status}")),
    }
}

fn shown(compared: &ComparedRange, is_written: bool) -> Value {
    let differing = |it: &DifferingRange| {
        let DifferingRange { offset, length, groups } = it;
        json!({ "offset": offset, "length": length, "groups": groups })
    };
    let unread = |(server, status): &(Box<str>, Status)| {
        let text = status.to_string();
        json!({ "server": server, "text": text })
    };
    json!({
        "state": "compared",
        "differing": compared.differing.iter().map(differing).collect::<Vec<_>>(),
        "unread": compared.unread.iter().map(unread).collect::<Vec<_>>(),
        "bytes": compared.bytes,
        "next": compared.next,
        "change": compared.change,
        "is_written": is_written,
    })
}

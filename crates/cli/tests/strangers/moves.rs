//! Attempts to move the victim's files to where an attacker has rights, and to replace them.

use comity_proto::nfs3;
use comity_proto::nfs4::operation as op;
use comity_xdr::Opaque;

use crate::victim::Known;
use crate::wire::{Call, Operation, bytes, putfh};

/// The names of the victim's files.
const NAMES: [&[u8]; 4] = [b"three", b"zero", b"one", b"two"];
/// The name that an attacker gives to a file that it moves or links.
pub(crate) const TAKEN: &[u8] = b"taken";

/// Calls of NFSv3 and COMPOUNDs between the victim's directory and the attacker's own one; an
/// attacker without a directory uses the root of the export.
pub(crate) fn all(known: &Known, home: Option<&[u8]>) -> (Vec<Call>, Vec<Vec<Operation>>) {
    let [root, private] = known.directories.as_slice() else { return Default::default() };
    let home = home.unwrap_or(root);
    let mut calls = Vec::new();
    let mut compounds = Vec::new();
    for file in &known.files {
        calls.push(link_three(file, home));
        compounds.push(at(file, home, (op::LINK, name(TAKEN))));
        compounds.push(at(file, home, (op::CLONE, vec![0; 56])));
        compounds.push(at(home, file, (op::COPY, vec![0; 64])));
    }
    for victim in NAMES {
        calls.push(rename_three((private, victim), (home, TAKEN)));
        calls.push(rename_three((home, b"own"), (private, victim)));
        compounds.push(at(private, home, rename(victim, TAKEN)));
        compounds.push(at(home, private, rename(b"own", victim)));
    }
    (calls, compounds)
}

fn name(name: &[u8]) -> Vec<u8> {
    bytes(&Opaque::<255>(name))
}

fn handle(handle: &[u8]) -> Vec<u8> {
    bytes(&Opaque::<64>(handle))
}

/// An operation that has a saved and a current filehandle.
fn at(saved: &[u8], current: &[u8], operation: Operation) -> Vec<Operation> {
    vec![putfh(saved), (op::SAVEFH, Vec::new()), putfh(current), operation]
}

fn rename(from: &[u8], to: &[u8]) -> Operation {
    (op::RENAME, [name(from), name(to)].concat())
}

fn link_three(file: &[u8], dir: &[u8]) -> Call {
    let arguments = [handle(file), handle(dir), name(TAKEN)].concat();
    ((nfs3::PROGRAM, 3, nfs3::procedure::LINK), arguments)
}

fn rename_three(from: (&[u8], &[u8]), to: (&[u8], &[u8])) -> Call {
    let arguments = [handle(from.0), name(from.1), handle(to.0), name(to.1)];
    ((nfs3::PROGRAM, 3, nfs3::procedure::RENAME), arguments.concat())
}

//! The one file-system interface of the project, and the types that all crates share.
//!
//! **Answers:** which operations a file system has ([`Fs`]), with which types ([`Handle`],
//! [`Name`], [`Attr`], [`Cred`], [`Acl`]) and with which errors ([`Status`]).
//!
//! Ids, credentials, attributes and ACLs have the side to which they belong as a type parameter,
//! [`Wire`] or [`Disk`]. [`Fs`] uses [`Disk`] only, protocol code uses [`Wire`] only; the view in
//! between converts, and a forgotten conversion does not compile.
//!
//! **May not know:** protocols, exports, callers' addresses, the kind of backend.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod access;
mod acl;
mod as_server;
mod attr;
mod blocking;
mod change;
mod changed_objects;
mod create;
mod cred;
mod delegation_number;
mod directory_notice;
mod distribution;
mod file_key;
mod fs;
mod handle;
mod handle_table;
mod id_domain;
mod interrupt;
pub mod layers;
pub mod limits;
mod local_locks;
mod mount_table;
mod name;
mod named_object;
mod node;
mod open_files;
pub mod permission;
mod placement;
mod placement_check;
mod placement_compare;
mod placement_rebuild;
mod read;
mod space;
mod split_mix;
mod status;
mod waiting_threads;

pub use access::Access;
pub use acl::{Acl, AclEntry, AclKind, AclTag};
pub use as_server::AsServer;
pub use attr::{Attr, Device, FileType, Mode, SetAttr, SetTime, Time};
pub use blocking::{BlockingHook, run_through};
pub use change::{Change, Changed};
pub use changed_objects::{ChangedObjects, ObjectChange};
pub use create::Create;
pub use cred::Cred;
pub use delegation_number::DelegationNumber;
pub use directory_notice::{DirectoryNotice, NoticedAttributes, NoticedChange, NoticedObject};
pub use distribution::{DeviceId, Distribution, LayoutKind, MirrorFile, Striping};
pub use file_key::FileKey;
pub use fs::{
    Entry, Fs, Listed, Listing, Made, Properties, Seek, Special, Stability, Target, Written,
    XattrMode,
};
pub use handle::Handle;
pub use handle_table::{HandleTable, LongName};
pub use id_domain::{Disk, Gid, IdDomain, Uid, Wire};
pub use interrupt::{Interrupt, Interruptible};
pub use local_locks::{DirectoryHold, FileHold, LocalLocks, LocalUse, RangeLock};
pub use mount_table::{MOUNT_TABLE, MountEntry, MountTable};
pub use name::Name;
pub use named_object::NamedObject;
pub use node::Node;
pub use open_files::{
    DelegationKind, HeldLock, LockOutcome, LockOwner, LockRequest, OpenAccess, OpenEvent,
    OpenFiles, OpenId, OpenedFile,
};
pub use placement::{DataServerState, LinkState, MovedFile, Placement, Threshold};
pub use placement_check::{CheckedFile, CheckedPage, StoredPage, StripeFault};
pub use placement_compare::{ComparedRange, DifferingRange};
pub use placement_rebuild::{
    LabelledPage, NotRebuilt, Rebuild, RebuildOutcome, RebuiltFile, RebuiltPage,
};
pub use read::{Data, Read, ReadInto};
pub use space::Space;
pub use split_mix::SplitMix64;
pub use status::{Result, Status};
pub use waiting_threads::WaitingThreads;

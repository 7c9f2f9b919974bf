//! Notifications of changed attributes of objects in delegated directories.

use comity_proto::nfs4::callback::operation as cb;
use comity_proto::nfs4::{
    Bitmap4, CbNotify4args, Component4, Copy4args, Createhow4, Createtype4, Fattr4,
    GetDirDelegation4resok, NfsFh4, Nfsstat4, Nfstime4, NotifyAttr4, Range4args, Readdir4args,
    Setattr4args, Setxattr4args, SetxattrOption4, StableHow4, Stateid4, Write4args, attribute,
    notify_type as kind, operation as op,
};
use comity_vfs::{Attr, Create, Cred, Disk, Handle, Name, SetAttr, Time};
use comity_xdr::{Counted, Decoder, Encoder, Opaque};

use crate::callbacks::{go_to, opened, perform, reply};
use crate::directories::{
    Change, INNER, ServerAndClients, TOP, ask_with, calls, change, make, none, open, remove,
    rename, steps,
};
use crate::notifications::only;
use crate::world::encoded;

const FILE: &[&[u8]] = &[b"srv", b"pub", b"file"];

/// Attributes of a child of whose changes a client can be notified.
const TOLD: Bitmap4 = Bitmap4::of(&[
    attribute::TYPE,
    attribute::CHANGE,
    attribute::SIZE,
    attribute::FILEHANDLE,
    attribute::FILEID,
    attribute::NUMLINKS,
    attribute::SPACE_USED,
    attribute::TIME_METADATA,
    attribute::TIME_MODIFY,
]);

fn asked() -> (Bitmap4, Bitmap4, Bitmap4) {
    let more = Bitmap4::of(&[attribute::MODE, attribute::OWNER, attribute::TIME_ACCESS]);
    (only(kind::CHANGE_CHILD_ATTRS), TOLD.or(&more), Bitmap4::EMPTY)
}

impl ServerAndClients {
    /// A server whose holder has the top directory, and is notified of attributes of children.
    fn watching() -> (Self, GetDirDelegation4resok) {
        let mut site = Self::new();
        let granted = ask_with(&site.world, &mut site.holder, TOP, asked()).unwrap().unwrap();
        (site, granted)
    }

    /// The holder looks up an object.
    fn look_up(&mut self, path: &[&[u8]]) {
        let call = |call: &mut Encoder| go_to(call, path);
        assert_eq!(perform(&self.world, 2, &mut self.holder, steps(path), call).0, Nfsstat4::Ok);
    }

    /// Another client does something.
    fn other_does(&mut self, operations: u32, say: impl FnOnce(&mut Encoder)) {
        assert_eq!(perform(&self.world, 2, &mut self.other, operations, say).0, Nfsstat4::Ok);
    }

    fn other_writes(&mut self, data: &'static [u8]) {
        self.other_does(5, |call| write(call, data));
    }

    /// Answers all callbacks, which must be notifications of children; returns their names, with
    /// the change attributes.
    fn heard(&self, stateid: &Stateid4) -> Vec<(String, u64)> {
        let mut found = Vec::new();
        for call in self.world.calls() {
            let (_, _, cb::CB_NOTIFY, mut arguments) = opened(&call) else {
                panic!("no CB_NOTIFY")
            };
            let args: CbNotify4args<'_> = arguments.value().unwrap();
            assert_eq!(args.stateid, *stateid);
            for notify in &args.changes.0 {
                assert_eq!(notify.mask, Bitmap4::of(&[kind::CHANGE_CHILD_ATTRS]));
                let mut values = Decoder::new(notify.vals.0);
                let NotifyAttr4 { changed_entry } = values.value().unwrap();
                values.finish().unwrap();
                let name = changed_entry.file.0;
                let attr = self.attr(name);
                is_told(&changed_entry.attrs, &attr);
                found.push((String::from_utf8(name.to_vec()).unwrap(), attr.change));
            }
            reply(&self.world, &call, (Nfsstat4::Ok, &[]));
        }
        found
    }

    fn attr(&self, name: &[u8]) -> Attr<Disk> {
        self.fs.getattr(&self.node(name)).unwrap()
    }

    fn node(&self, name: &[u8]) -> Handle {
        let found = self.fs.lookup(&Cred::root(), &self.fs.root(), Name::new(name).unwrap());
        found.unwrap().node.handle
    }
}

/// Asserts that a notification has the present attributes.
fn is_told(told: &Fattr4<'_>, attr: &Attr<Disk>) {
    assert_eq!(told.attrmask, TOLD);
    let mut values = Decoder::new(told.attr_vals.0);
    let time = |Time { seconds, nanoseconds }| Nfstime4 { seconds, nseconds: nanoseconds };
    let _: u32 = values.value().unwrap();
    assert_eq!([(); 2].map(|()| values.value::<u64>().unwrap()), [attr.change, attr.size]);
    let _: NfsFh4<'_> = values.value().unwrap();
    assert_eq!(values.value::<u64>().unwrap(), attr.fileid);
    assert_eq!(values.value::<u32>().unwrap(), attr.links);
    assert_eq!(values.value::<u64>().unwrap(), attr.used);
    let times = [(); 2].map(|()| values.value::<Nfstime4>().unwrap());
    assert_eq!(times, [time(attr.ctime), time(attr.mtime)]);
    values.finish().unwrap();
}

fn write(call: &mut Encoder, data: &[u8]) {
    go_to(call, FILE);
    call.value(&op::WRITE);
    let (stateid, stable, data) = (Stateid4::ANONYMOUS, StableHow4::Unstable, Opaque(data));
    call.value(&Write4args { stateid, offset: 0, stable, data });
}

fn set(call: &mut Encoder, number: u32, value: &[u8]) {
    go_to(call, FILE);
    call.value(&op::SETATTR);
    let obj_attributes = Fattr4 { attrmask: Bitmap4::of(&[number]), attr_vals: Opaque(value) };
    call.value(&Setattr4args { stateid: Stateid4::ANONYMOUS, obj_attributes });
}

fn range(call: &mut Encoder, operation: u32) {
    go_to(call, FILE);
    call.value(&operation);
    call.value(&Range4args { stateid: Stateid4::ANONYMOUS, offset: 2, length: 4096 });
}

/// All changes of attributes of the file that change no name in its directory.
fn changes_of_the_file() -> Vec<Change> {
    vec![
        change("WRITE", 5, |call| write(call, b"some bytes")),
        change("SETATTR of the size", 5, |call| set(call, attribute::SIZE, &encoded(&3_u64))),
        change("SETATTR of the mode", 5, |call| set(call, attribute::MODE, &encoded(&0o640_u32))),
        change("OPEN that truncates", 4, |call| {
            let (attrmask, attr_vals) = (Bitmap4::of(&[attribute::SIZE]), Opaque(&[0; 8][..]));
            open(call, b"file", Createhow4::Unchecked(Fattr4 { attrmask, attr_vals }));
        }),
        change("SETXATTR", 5, |call| {
            go_to(call, FILE);
            call.value(&op::SETXATTR);
            let (option, key, value) =
                (SetxattrOption4::Either, Opaque(&b"k"[..]), Opaque(&b"v"[..]));
            call.value(&Setxattr4args { option, key, value });
        }),
        change("ALLOCATE", 5, |call| range(call, op::ALLOCATE)),
        change("DEALLOCATE", 5, |call| range(call, op::DEALLOCATE)),
        change("COPY", 11, |call| {
            go_to(call, &[b"srv", b"pub", b"inner", b"source"]);
            call.value(&op::SAVEFH);
            go_to(call, FILE);
            call.value(&op::COPY);
            call.value(&Copy4args {
                src_stateid: Stateid4::ANONYMOUS,
                dst_stateid: Stateid4::ANONYMOUS,
                src_offset: 0,
                dst_offset: 0,
                count: 0,
                consecutive: true,
                synchronous: true,
                source_server: Counted(Vec::new()),
            });
        }),
        change("LINK elsewhere", 10, |call| {
            go_to(call, FILE);
            call.value(&op::SAVEFH);
            go_to(call, INNER);
            call.value(&op::LINK);
            call.value::<Component4<'_>>(&Opaque(b"second"));
        }),
        change("RENAME of another link", 10, |call| {
            rename(call, (INNER, b"second"), (INNER, b"third"));
        }),
        change("RENAME over another link", 10, |call| {
            rename(call, (INNER, b"source"), (INNER, b"third"));
        }),
        change("LINK again", 10, |call| {
            go_to(call, FILE);
            call.value(&op::SAVEFH);
            go_to(call, INNER);
            call.value(&op::LINK);
            call.value::<Component4<'_>>(&Opaque(b"second"));
        }),
        change("REMOVE of another link", 5, |call| remove(call, INNER, b"second")),
    ]
}

#[test]
fn every_change_of_attributes_of_a_child_is_notified_with_the_values_after_it() {
    let (mut site, granted) = ServerAndClients::watching();
    assert_eq!(granted.notification, only(kind::CHANGE_CHILD_ATTRS));
    assert_eq!(granted.child_attributes, TOLD);
    let (server, inner) = (Cred::root(), site.node(b"inner"));
    let (name, how) = (Name::new(b"source").unwrap(), Create::Guarded(SetAttr::default()));
    let source = site.fs.create(&server, &inner, name, &how).unwrap().value.handle;
    site.fs.write(&server, &source, 0, b"source").unwrap();
    site.look_up(FILE);
    for Change { name, operations, say } in changes_of_the_file() {
        let before = site.attr(b"file").change;
        site.other_does(operations, |call| say(call));
        let after = site.attr(b"file").change;
        assert_ne!(after, before, "{name} changes the file");
        assert_eq!(site.heard(&granted.stateid), [("file".into(), after)], "{name}");
    }
}

#[test]
fn changes_of_names_in_a_directory_are_changes_of_its_attributes_as_a_child() {
    let (mut site, granted) = ServerAndClients::watching();
    site.look_up(INNER);
    site.other_does(5, |call| make(call, INNER, b"new", Createtype4::Fifo));
    assert_eq!(site.heard(&granted.stateid), [("inner".into(), site.attr(b"inner").change)]);
    site.other_does(10, |call| rename(call, (INNER, b"new"), (INNER, b"newer")));
    assert_eq!(site.heard(&granted.stateid).len(), 1);
    site.other_does(5, |call| remove(call, INNER, b"newer"));
    assert_eq!(site.heard(&granted.stateid).len(), 1);
}

#[test]
fn several_changes_before_the_notification_are_one() {
    let (mut site, granted) = ServerAndClients::watching();
    site.look_up(FILE);
    let writes: [&[u8]; 3] = [b"one", b"two", b"a longer one"];
    writes.into_iter().for_each(|data| site.other_writes(data));
    assert_eq!(site.heard(&granted.stateid), [("file".into(), site.attr(b"file").change)]);
}

#[test]
fn only_objects_that_the_holder_has_seen_are_notified() {
    let readdir = |attr_request: Bitmap4| {
        move |call: &mut Encoder| {
            go_to(call, TOP);
            call.value(&op::READDIR);
            let (cookie, cookieverf, dircount, maxcount) = (0, [0; 8], 0, 4096);
            call.value(&Readdir4args { cookie, cookieverf, dircount, maxcount, attr_request });
        }
    };
    let attributes = |numbers: &[u32]| change("READDIR", 4, readdir(Bitmap4::of(numbers)));
    for (is_told, Change { operations, say, .. }) in [
        (false, change("nothing", 3, |call| go_to(call, TOP))),
        (true, change("LOOKUP", 4, |call| go_to(call, FILE))),
        (true, change("OPEN", 4, |call| open(call, b"file", Createhow4::Unchecked(none())))),
        (true, attributes(&[attribute::FILEID, attribute::SIZE])),
        (false, attributes(&[attribute::FILEID, attribute::TYPE])),
        (false, attributes(&[])),
    ] {
        let (mut site, granted) = ServerAndClients::watching();
        let (status, _) = perform(&site.world, 2, &mut site.holder, operations, |call| say(call));
        assert_eq!(status, Nfsstat4::Ok);
        site.other_writes(b"other bytes");
        assert_eq!(site.heard(&granted.stateid).len(), usize::from(is_told));
    }
}

#[test]
fn the_holder_is_not_told_of_its_own_changes_nor_of_any_after_it_has_returned_the_directory() {
    let (mut site, granted) = ServerAndClients::watching();
    site.look_up(FILE);
    let say = |call: &mut Encoder| write(call, b"own bytes");
    assert_eq!(perform(&site.world, 2, &mut site.holder, 5, say).0, Nfsstat4::Ok);
    assert_eq!(site.heard(&granted.stateid), []);
    assert!(site.world.engine.changed_objects().are_watched());
    site.give_back(TOP, &granted.stateid);
    assert!(!site.world.engine.changed_objects().are_watched());
    site.other_writes(b"other bytes");
    assert_eq!(site.heard(&granted.stateid), []);
}

/// There is nothing to tell of it, and the next change is notified.
#[test]
fn an_object_that_is_gone_before_the_notification_is_left_out() {
    let (mut site, granted) = ServerAndClients::watching();
    site.look_up(FILE);
    site.look_up(INNER);
    site.other_writes(b"bytes");
    let server = Cred::root();
    site.fs.remove(&server, &site.fs.root(), Name::new(b"file").unwrap()).unwrap();
    assert!(site.world.calls().is_empty());
    site.other_does(5, |call| make(call, INNER, b"new", Createtype4::Fifo));
    assert_eq!(site.heard(&granted.stateid).len(), 1);
}

#[test]
fn notifications_of_children_are_granted_only_where_all_changes_are_seen_and_handles_wanted() {
    let (kinds, attributes, none) = asked();
    let unnamed: Vec<u32> =
        attributes.iter().filter(|number| *number != attribute::FILEHANDLE).collect();
    let mode = Bitmap4::of(&[attribute::MODE, attribute::FILEHANDLE]);
    for (options, attributes, is_granted) in [
        (",dir_delegations=always:sole-writer:delay=3", attributes, true),
        (",dir_delegations=always:sole-writer:delay=3", Bitmap4::of(&unnamed), false),
        (",dir_delegations=always:sole-writer:delay=3", mode, false),
        (",dir_delegations=always:sole-writer", attributes, false),
        (",dir_delegations=always:sole-writer:recall-only", attributes, false),
    ] {
        let mut site = ServerAndClients::of(options);
        let asked = (kinds, attributes, none);
        let granted = ask_with(&site.world, &mut site.holder, TOP, asked).unwrap().unwrap();
        let has_kind = granted.notification.contains(kind::CHANGE_CHILD_ATTRS);
        assert_eq!(has_kind, is_granted, "{options}");
        assert_eq!(site.world.engine.changed_objects().are_watched(), is_granted, "{options}");
    }
}

#[test]
fn without_a_holder_that_wants_it_no_change_is_noted() {
    let mut site = ServerAndClients::new();
    site.hold(TOP);
    site.other_writes(b"bytes");
    assert!(site.world.engine.changed_objects().is_empty());
    assert_eq!(calls(&site.world), [0; 0]);
}

//! Notifications of changes in delegated directories (CB_NOTIFY).

use std::sync::Arc;

use comity_export::{ExportRequest, HandleKey, Source, Sources, load};
use comity_proto::nfs4::callback::operation as cb;
use comity_proto::nfs4::{
    Bitmap4, CbNotify4args, Component4, Createtype4, Fattr4, NfsFh4, Nfsstat4, Nfstime4, Notify4,
    NotifyAdd4, NotifyAttr4, NotifyRemove4, NotifyRename4, Readdir4args, Setattr4args, Settime4,
    Stateid4, attribute, notify_type as kind, operation as op,
};
use comity_state::Effect;
use comity_vfs::{Cred, Mode, SetAttr, Time};
use comity_xdr::{Decoder, Encoder, Opaque};

use crate::callbacks::{client, go_to, opened, perform, reply};
use crate::directories::{
    Change, INNER, ServerAndClients, TOP, ask_with, calls, changes, make, rename, steps,
};
use crate::world::{World, furnish, memory};

pub(crate) const NAMES: Bitmap4 =
    Bitmap4::of(&[kind::REMOVE_ENTRY, kind::ADD_ENTRY, kind::RENAME_ENTRY, kind::GFLAG_EXTEND]);
pub(crate) const CHILD: Bitmap4 =
    Bitmap4::of(&[attribute::TYPE, attribute::FILEHANDLE, attribute::FILEID]);
pub(crate) const DIR: Bitmap4 = Bitmap4::of(&[attribute::CHANGE, attribute::TIME_MODIFY]);

fn all_kinds() -> Bitmap4 {
    NAMES.or(&Bitmap4::of(&[kind::CHANGE_DIR_ATTRS]))
}

/// The text of a notification: a change of a name, or of the attributes of the directory.
fn told(notify: &Notify4<'_>) -> String {
    let (mut values, mut text) = (Decoder::new(notify.vals.0), String::new());
    let name = |name: Component4<'_>| String::from_utf8(name.0.to_vec()).unwrap();
    let added = |added: NotifyAdd4<'_>| {
        assert_eq!(added.new_entry.attrs.attrmask, CHILD);
        let old = if added.old_entry.0.is_empty() { "" } else { " over another" };
        format!("{}{old}", name(added.new_entry.file))
    };
    for number in notify.mask.iter() {
        text += &match number {
            kind::CHANGE_DIR_ATTRS => {
                let changed: NotifyAttr4<'_> = values.value().unwrap();
                assert_eq!(changed.changed_entry.file.0, b"");
                assert!(!changed.changed_entry.attrs.attrmask.is_empty());
                "changed".into()
            }
            kind::REMOVE_ENTRY => {
                format!("-{}", name(values.value::<NotifyRemove4<'_>>().unwrap().entry.file))
            }
            kind::ADD_ENTRY => format!("+{}", added(values.value().unwrap())),
            kind::RENAME_ENTRY => {
                let renamed: NotifyRename4<'_> = values.value().unwrap();
                format!("{}>{}", name(renamed.old_entry.entry.file), added(renamed.new_entry))
            }
            number => panic!("{number} was not asked for"),
        };
    }
    values.finish().unwrap();
    text
}

/// Answers all callbacks that have been sent; returns the notifications as text.
fn notifications(site: &ServerAndClients, stateid: &Stateid4) -> Vec<String> {
    let (world, mut found) = (&site.world, Vec::new());
    for call in world.calls() {
        match opened(&call) {
            (_, _, cb::CB_NOTIFY, mut arguments) => {
                let args: CbNotify4args<'_> = arguments.value().unwrap();
                arguments.finish().unwrap();
                assert_eq!(args.stateid, *stateid);
                found.extend(args.changes.0.iter().map(told));
            }
            (_, _, cb::CB_RECALL, _) => found.push("recall".into()),
            (_, _, other, _) => panic!("{other}"),
        }
        reply(world, &call, (Nfsstat4::Ok, &[]));
    }
    found
}

/// This server cannot wait for its clients, so that each change recalls the delegation after the
/// notification.
#[test]
fn changes_of_names_are_made_at_once_and_notified_before_they_are_acknowledged() {
    let mut site = ServerAndClients::new();
    for (Change { name, operations, say }, (_, told)) in changes().into_iter().zip(KINDS) {
        let wishes = (all_kinds(), CHILD.or(&DIR), DIR.or(&CHILD));
        let granted = ask_with(&site.world, &mut site.holder, TOP, wishes).unwrap().unwrap();
        assert_eq!(granted.notification, NAMES.or(&Bitmap4::of(&[kind::CHANGE_DIR_ATTRS])));
        assert_eq!((granted.child_attributes, granted.dir_attributes), (CHILD, DIR));
        let (status, _) = perform(&site.world, 2, &mut site.other, operations, |call| say(call));
        assert_eq!(status, Nfsstat4::Ok, "{name}");
        let heard = notifications(&site, &granted.stateid);
        assert_eq!(heard, [told, "changed", "recall"], "{name}");
        site.give_back(TOP, &granted.stateid);
    }
    let totals = site.world.engine.totals();
    assert_eq!((totals.directory_notices, totals.directory_notice_calls), (12, 12));
    assert_eq!(totals.directory_calls_caused, 12 * (1 + 4), "a notification and a recall each");
}

#[test]
fn an_export_says_how_many_notifications_a_holder_may_leave_unacknowledged() {
    for (more, expected) in [("", 64), (":notifications=7", 7)] {
        let mut site = ServerAndClients::of(&format!(",dir_delegations=always:sole-writer{more}"));
        ask_with(&site.world, &mut site.holder, TOP, (NAMES, CHILD, DIR)).unwrap().unwrap();
        let first = changes().into_iter().next().unwrap();
        let say = |call: &mut Encoder| (first.say)(call);
        let (status, _) = perform(&site.world, 2, &mut site.other, first.operations, say);
        assert_eq!(status, Nfsstat4::Ok);
        let effects = std::iter::from_fn(|| site.world.engine.poll_effect());
        let bounds = effects.filter_map(|effect| match effect {
            Effect::Notify { wishes, .. } => Some(wishes.unacknowledged_max),
            _ => None,
        });
        assert_eq!(bounds.collect::<Vec<_>>(), [expected], "{more}");
    }
}

#[test]
fn changes_of_the_attributes_of_a_directory_recall_it_from_a_client_that_is_notified_of_names() {
    let mut site = ServerAndClients::new();
    let wishes = (NAMES, Bitmap4::EMPTY, Bitmap4::EMPTY);
    let granted = ask_with(&site.world, &mut site.holder, TOP, wishes).unwrap().unwrap();
    assert_eq!(granted.notification, NAMES);
    let last = changes().into_iter().nth(12).unwrap();
    let say = |call: &mut Encoder| (last.say)(call);
    let (status, _) = perform(&site.world, 2, &mut site.other, last.operations, say);
    assert_eq!((last.name, status), ("SETATTR", Nfsstat4::Delay));
    assert_eq!(calls(&site.world), [cb::CB_RECALL]);
}

/// The kind of each of the changes of names, and its notification.
const KINDS: [(u32, &str); 12] = [
    (kind::ADD_ENTRY, "+a"),
    (kind::ADD_ENTRY, "+b"),
    (kind::ADD_ENTRY, "+c"),
    (kind::ADD_ENTRY, "+d"),
    (kind::ADD_ENTRY, "+l"),
    (kind::ADD_ENTRY, "+f"),
    (kind::ADD_ENTRY, "+second"),
    (kind::RENAME_ENTRY, "b>e"),
    (kind::REMOVE_ENTRY, "-e"),
    (kind::ADD_ENTRY, "+g"),
    (kind::REMOVE_ENTRY, "-g"),
    (kind::REMOVE_ENTRY, "-d"),
];

/// A request for one kind, by a client that needs no cookies.
pub(crate) const fn only(wanted: u32) -> Bitmap4 {
    Bitmap4::of(&[wanted, kind::GFLAG_EXTEND])
}

#[test]
fn a_change_of_a_kind_that_a_client_does_not_want_recalls_its_directory() {
    for wanted in [kind::ADD_ENTRY, kind::REMOVE_ENTRY, kind::RENAME_ENTRY] {
        let (mut site, only) = (ServerAndClients::new(), only(wanted));
        let kinds = KINDS.into_iter().map(Some).chain([None, None]);
        for (Change { name, operations, say }, told) in changes().into_iter().zip(kinds) {
            let wishes = (only, CHILD, DIR);
            let granted = ask_with(&site.world, &mut site.holder, TOP, wishes).unwrap().unwrap();
            assert_eq!(granted.notification, only);
            assert!(granted.dir_attributes.is_empty(), "its kind was not asked for");
            let other = |site: &mut ServerAndClients| {
                perform(&site.world, 2, &mut site.other, operations, |call| say(call)).0
            };
            let status = other(&mut site);
            let heard = notifications(&site, &granted.stateid);
            site.give_back(TOP, &granted.stateid);
            match told.filter(|(kind, _)| *kind == wanted) {
                Some((_, told)) => {
                    assert_eq!((status, heard), (Nfsstat4::Ok, vec![told.into(), "recall".into()]));
                }
                None => {
                    assert_eq!((status, heard), (Nfsstat4::Delay, vec!["recall".into()]), "{name}");
                    assert_eq!(other(&mut site), Nfsstat4::Ok, "{name} is done after the return");
                }
            }
        }
    }
}

#[test]
fn a_rename_between_directories_is_a_removal_in_one_and_an_addition_in_the_other() {
    for (held, wanted, told) in
        [(INNER, kind::REMOVE_ENTRY, "-own"), (TOP, kind::ADD_ENTRY, "+file over another")]
    {
        let mut site = ServerAndClients::new();
        let wishes = (only(wanted), CHILD, DIR);
        let granted = ask_with(&site.world, &mut site.holder, held, wishes).unwrap().unwrap();
        let say = |call: &mut Encoder| match wanted {
            kind::ADD_ENTRY => rename(call, (INNER, b"other"), (TOP, b"file")),
            _ => rename(call, (INNER, b"own"), (TOP, b"own")),
        };
        if wanted == kind::ADD_ENTRY {
            let call = |call: &mut Encoder| make(call, INNER, b"other", Createtype4::Fifo);
            assert_eq!(perform(&site.world, 2, &mut site.other, 5, call).0, Nfsstat4::Ok);
        }
        assert_eq!(perform(&site.world, 2, &mut site.other, 9, say).0, Nfsstat4::Ok);
        assert_eq!(notifications(&site, &granted.stateid), [told, "recall"]);
    }
}

#[test]
fn a_client_that_needs_the_order_of_entries_gets_no_notification() {
    let names = [kind::REMOVE_ENTRY, kind::ADD_ENTRY, kind::RENAME_ENTRY];
    let orders = NAMES.or(&Bitmap4::of(&[kind::CFLAG_ORDER]));
    for wanted in [Bitmap4::of(&names), Bitmap4::of(&[kind::ADD_ENTRY]), orders] {
        let mut site = ServerAndClients::new();
        let granted = ask_with(&site.world, &mut site.holder, TOP, (wanted, CHILD, DIR));
        assert!(granted.unwrap().unwrap().notification.is_empty(), "{wanted:?}");
    }
}

#[test]
fn an_export_whose_directories_are_only_recalled_grants_no_notification() {
    let mut site = ServerAndClients::of(",dir_delegations=always:sole-writer:recall-only");
    let wishes = (NAMES, CHILD, DIR);
    let granted = ask_with(&site.world, &mut site.holder, TOP, wishes).unwrap().unwrap();
    assert!(
        granted.notification.is_empty(),
        "notifications are granted although the export wants recalls"
    );
}

const TIMES: Bitmap4 = Bitmap4::of(&[
    attribute::CHANGE,
    attribute::TIME_ACCESS,
    attribute::TIME_METADATA,
    attribute::TIME_MODIFY,
]);

const LATER: Nfstime4 = Nfstime4 { seconds: 4_000_000_000, nseconds: 5 };

/// SETATTR of the top directory: these times, and the mode on request.
fn set(call: &mut Encoder, times: &[u32], with_mode: bool) {
    let mut values = Encoder::new();
    let mut attrmask = Bitmap4::of(times);
    if with_mode {
        attrmask.insert(attribute::MODE);
        values.value(&0o755_u32);
    }
    times.iter().for_each(|_| values.value(&Settime4::SetToClientTime(LATER)));
    go_to(call, TOP);
    call.value(&op::SETATTR);
    let obj_attributes = Fattr4 { attrmask, attr_vals: Opaque(values.bytes()) };
    call.value(&Setattr4args { stateid: Stateid4::ANONYMOUS, obj_attributes });
}

#[test]
fn a_setting_of_times_is_notified_to_a_client_that_can_be_told_all_that_it_changes() {
    let (accessed, modified) = (attribute::TIME_ACCESS_SET, attribute::TIME_MODIFY_SET);
    let without = |number: u32| {
        let numbers: Vec<u32> = TIMES.iter().filter(|other| *other != number).collect();
        Bitmap4::of(&numbers)
    };
    for (wanted, times, with_mode, is_told) in [
        (TIMES, &[modified][..], false, true),
        (TIMES, &[accessed], false, true),
        (TIMES, &[accessed, modified], false, true),
        (TIMES, &[modified], true, false),
        (without(attribute::TIME_ACCESS), &[modified], false, true),
        (without(attribute::TIME_ACCESS), &[accessed, modified], false, false),
        (without(attribute::TIME_MODIFY), &[modified], false, false),
        (without(attribute::TIME_METADATA), &[modified], false, false),
        (without(attribute::CHANGE), &[modified], false, false),
    ] {
        let (mut site, kinds) = (ServerAndClients::new(), only(kind::CHANGE_DIR_ATTRS));
        let asked = (kinds, CHILD, wanted.or(&Bitmap4::of(&[attribute::MODE, attribute::OWNER])));
        let granted = ask_with(&site.world, &mut site.holder, TOP, asked).unwrap().unwrap();
        assert_eq!((granted.notification, granted.dir_attributes), (kinds, wanted));
        let say = |call: &mut Encoder| set(call, times, with_mode);
        let (status, _) = perform(&site.world, 2, &mut site.other, 4, say);
        let heard = notifications(&site, &granted.stateid);
        let told = (Nfsstat4::Ok, vec!["changed".to_owned(), "recall".into()]);
        let recalled = (Nfsstat4::Delay, vec!["recall".into()]);
        assert_eq!((status, heard), if is_told { told } else { recalled }, "{times:?} {wanted:?}");
    }
}

#[test]
fn a_notification_of_attributes_has_the_values_after_the_change() {
    let mut site = ServerAndClients::new();
    let asked = (only(kind::CHANGE_DIR_ATTRS), CHILD, TIMES);
    ask_with(&site.world, &mut site.holder, TOP, asked).unwrap().unwrap();
    let say = |call: &mut Encoder| set(call, &[attribute::TIME_MODIFY_SET], false);
    assert_eq!(perform(&site.world, 2, &mut site.other, 4, say).0, Nfsstat4::Ok);
    let calls = site.world.calls();
    let (_, _, cb::CB_NOTIFY, mut arguments) = opened(&calls[0]) else { panic!("no CB_NOTIFY") };
    let args: CbNotify4args<'_> = arguments.value().unwrap();
    let changed: NotifyAttr4<'_> = Decoder::new(args.changes.0[0].vals.0).value().unwrap();
    let attrs = changed.changed_entry.attrs;
    let attr = site.fs.getattr(&site.fs.root()).unwrap();
    let time = |Time { seconds, nanoseconds }| Nfstime4 { seconds, nseconds: nanoseconds };
    assert_eq!(attrs.attrmask, TIMES);
    let mut values = Decoder::new(attrs.attr_vals.0);
    assert_eq!(values.value::<u64>().unwrap(), attr.change);
    let times = [(); 3].map(|()| values.value::<Nfstime4>().unwrap());
    assert_eq!(times, [time(attr.atime), time(attr.ctime), LATER]);
    values.finish().unwrap();
}

/// Cookies stay valid when a directory changes, so that nothing has to be sent.
#[test]
fn notifications_of_the_verifier_of_cookies_are_granted_because_it_never_changes() {
    let mut site = ServerAndClients::new();
    let verifier = |site: &mut ServerAndClients| {
        let (status, told) = perform(&site.world, 2, &mut site.other, steps(TOP) + 1, |call| {
            go_to(call, TOP);
            call.value(&op::READDIR);
            let (cookie, cookieverf) = (0, [0; 8]);
            let (dircount, maxcount, attr_request) = (0, 4096, Bitmap4::EMPTY);
            call.value(&Readdir4args { cookie, cookieverf, dircount, maxcount, attr_request });
        });
        assert_eq!(status, Nfsstat4::Ok);
        Decoder::new(&told[8 * (TOP.len() + 2)..]).value::<[u8; 8]>().unwrap()
    };
    let kinds = only(kind::CHANGE_COOKIE_VERIFIER);
    for Change { name, operations, say } in changes() {
        let asked = (kinds, CHILD, DIR);
        let granted = ask_with(&site.world, &mut site.holder, TOP, asked).unwrap().unwrap();
        assert_eq!((granted.notification, granted.cookieverf), (kinds, verifier(&mut site)));
        let (status, _) = perform(&site.world, 2, &mut site.other, operations, |call| say(call));
        assert_eq!(status, Nfsstat4::Delay, "{name} is not notified");
        assert_eq!(calls(&site.world), [cb::CB_RECALL]);
        site.give_back(TOP, &granted.stateid);
        let (status, _) = perform(&site.world, 2, &mut site.other, operations, |call| say(call));
        assert_eq!((status, verifier(&mut site)), (Nfsstat4::Ok, granted.cookieverf));
    }
}

/// A user that may list a directory and not search it would get handles, and one that may search it
/// and not list it names.
#[test]
fn notifications_are_granted_only_to_users_who_may_list_and_search_the_directory() {
    for (mode, has_delegation, has_notices) in
        [(0o700, false, false), (0o701, true, false), (0o704, true, false), (0o705, true, true)]
    {
        let mut site = ServerAndClients::new();
        let set = SetAttr { mode: Some(Mode::new(mode)), ..SetAttr::default() };
        site.fs.setattr(&Cred::root(), &site.fs.root(), &set, None).unwrap();
        site.world.act_as(9, 9, &[]);
        let granted = ask_with(&site.world, &mut site.holder, TOP, (NAMES, CHILD, DIR)).unwrap();
        assert_eq!(granted.is_some(), has_delegation, "{mode:o}");
        let notices = granted.is_some_and(|granted| !granted.notification.is_empty());
        assert_eq!(notices, has_notices, "{mode:o}");
    }
}

/// The caller that changes the directory sees other times and uses other handles.
#[test]
fn a_change_through_another_export_is_told_as_the_holder_s_export_shows_it() {
    let fs = memory();
    furnish(&*fs);
    let text =
        b"/srv/pub *(rw,insecure,no_root_squash,fsid=1,dir_delegations=always:sole-writer)\n\
        /srv/two *(rw,insecure,no_root_squash,fsid=2,no_client_cache)\n";
    let sources = Sources::new(vec![Source::Text { name: "exports".into(), text: text.to_vec() }]);
    let open = |_: &ExportRequest<'_>| Ok(Arc::clone(&fs));
    let world = World::of(load(&sources, &open, HandleKey::new([7; 16]), None).unwrap().0);
    let (mut holder, mut other) = (client(&world, 2, b"holder"), client(&world, 2, b"other"));
    let kinds = NAMES.or(&only(kind::CHANGE_DIR_ATTRS));
    let wishes = (kinds, Bitmap4::of(&[attribute::FILEHANDLE]), DIR);
    ask_with(&world, &mut holder, TOP, wishes).unwrap().unwrap();
    let say = |call: &mut Encoder| make(call, &[b"srv", b"two"], b"new", Createtype4::Fifo);
    assert_eq!(perform(&world, 2, &mut other, 4, say).0, Nfsstat4::Ok);
    let calls = world.calls();
    let (_, _, cb::CB_NOTIFY, mut arguments) = opened(&calls[0]) else { panic!("no CB_NOTIFY") };
    let args: CbNotify4args<'_> = arguments.value().unwrap();
    let added: NotifyAdd4<'_> = Decoder::new(args.changes.0[0].vals.0).value().unwrap();
    let handle: NfsFh4<'_> = Decoder::new(added.new_entry.attrs.attr_vals.0).value().unwrap();
    let plan = world.exports.current();
    let [directory, object] = [args.fh.0, handle.0].map(|fh| plan.unseal(fh).unwrap().0);
    assert_eq!(object, directory, "the export of the handle");
    let changed: NotifyAttr4<'_> = Decoder::new(args.changes.0[1].vals.0).value().unwrap();
    let mut values = Decoder::new(changed.changed_entry.attrs.attr_vals.0);
    let attr = fs.getattr(&fs.root()).unwrap();
    assert_eq!(values.value::<u64>().unwrap(), attr.change);
    let Time { seconds, nanoseconds: nseconds } = attr.mtime;
    assert_eq!(values.value::<Nfstime4>().unwrap(), Nfstime4 { seconds, nseconds });
}

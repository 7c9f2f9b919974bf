//! Directory delegations: each change of a directory by another client is notified, or the
//! delegation is recalled before it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use comity_export::{
    Client, DirectoryDelegations, DirectoryGrants, DirectoryWriters, Export, ExportId,
    ExportRequest, Exports, HandleKey, KeyUse, Plan, Rules, Source, Sources, load,
};
use comity_proto::nfs4::callback::operation as cb;
use comity_proto::nfs4::{
    Bitmap4, Component4, Create4args, Createhow4, Createtype4, Fattr4, GetDirDelegation4args,
    GetDirDelegation4res, GetDirDelegation4resok, Nfsstat4, Nfstime4, Open4args, OpenClaim4,
    Openflag4, Rename4args, Setattr4args, Setxattr4args, SetxattrOption4, StateOwner4, Stateid4,
    attribute, operation as op, share,
};
use comity_state::NoDirectory;
use comity_vfs::layers::{Hook, Layer, Verb};
use comity_vfs::{Cred, Fs, Gid, Handle, Mode, SetAttr, Uid};
use comity_xdr::{Decoder, Encoder, Opaque};

use crate::callbacks::{client, go_to, opened, perform, reply};
use crate::session::Session;
use crate::world::{World, encoded, furnish, memory};

const ALWAYS: &str = ",dir_delegations=always:sole-writer:delay=3";
pub(crate) const TOP: &[&[u8]] = &[b"srv", b"pub"];
pub(crate) const INNER: &[&[u8]] = &[b"srv", b"pub", b"inner"];

pub(crate) fn plan(fs: &Arc<dyn Fs>, options: &str) -> Plan {
    let text = format!("/srv/pub *(rw,insecure,no_root_squash,fsid=1{options})\n").into_bytes();
    let sources = Sources::new(vec![Source::Text { name: "exports".into(), text }]);
    let open = |_: &ExportRequest<'_>| Ok(Arc::clone(fs));
    load(&sources, &open, HandleKey::new([7; 16]), None).unwrap().0
}

/// A server and two of its clients.
pub(crate) struct ServerAndClients {
    pub(crate) world: World,
    pub(crate) fs: Arc<dyn Fs>,
    pub(crate) holder: Session,
    pub(crate) other: Session,
}

impl ServerAndClients {
    pub(crate) fn new() -> Self {
        Self::of(ALWAYS)
    }

    pub(crate) fn of(options: &str) -> Self {
        let fs = memory();
        furnish(&*fs);
        let world = World::of(plan(&fs, options));
        let (holder, other) = (client(&world, 2, b"holder"), client(&world, 2, b"other"));
        Self { world, fs, holder, other }
    }

    /// The holder asks for the delegation of a directory.
    fn ask(&mut self, path: &[&[u8]]) -> Result<Option<Stateid4>, Nfsstat4> {
        ask(&self.world, &mut self.holder, path)
    }

    pub(crate) fn hold(&mut self, path: &[&[u8]]) -> Stateid4 {
        self.ask(path).unwrap().expect("it is granted")
    }

    pub(crate) fn give_back(&mut self, path: &[&[u8]], stateid: &Stateid4) {
        let (status, _) = perform(&self.world, 2, &mut self.holder, steps(path) + 1, |call| {
            go_to(call, path);
            call.value(&op::DELEGRETURN);
            call.value(stateid);
        });
        assert_eq!(status, Nfsstat4::Ok);
    }

    fn is_refused(&mut self, why: NoDirectory) {
        assert_eq!(self.ask(TOP), Ok(None));
        let refused = self.world.engine.totals().directories_refused;
        let reasons = NoDirectory::ALL.iter().zip(refused).filter(|(_, count)| *count > 0);
        let reasons: Vec<_> = reasons.map(|(why, _)| *why).collect();
        assert_eq!(reasons, [why]);
    }
}

pub(crate) fn steps(path: &[&[u8]]) -> u32 {
    path.len() as u32 + 1
}

pub(crate) fn ask(
    world: &World,
    session: &mut Session,
    path: &[&[u8]],
) -> Result<Option<Stateid4>, Nfsstat4> {
    let none = (Bitmap4::EMPTY, Bitmap4::EMPTY, Bitmap4::EMPTY);
    let granted = ask_with(world, session, path, none)?;
    Ok(granted.map(|granted| {
        assert!(granted.notification.is_empty(), "nothing was asked for");
        granted.stateid
    }))
}

/// Asks for a directory with notifications of these kinds, with these attributes of entries and of
/// the directory.
pub(crate) fn ask_with(
    world: &World,
    session: &mut Session,
    path: &[&[u8]],
    (notification_types, child_attributes, dir_attributes): (Bitmap4, Bitmap4, Bitmap4),
) -> Result<Option<GetDirDelegation4resok>, Nfsstat4> {
    let (status, told) = perform(world, 2, session, steps(path) + 1, |call| {
        go_to(call, path);
        call.value(&op::GET_DIR_DELEGATION);
        let delay = Nfstime4 { seconds: 0, nseconds: 0 };
        call.value(&GetDirDelegation4args {
            signal_deleg_avail: false,
            notification_types,
            child_attr_delay: delay,
            dir_attr_delay: delay,
            child_attributes,
            dir_attributes,
        });
    });
    if status != Nfsstat4::Ok {
        return Err(status);
    }
    let mut answer = Decoder::new(&told[8 * (path.len() + 2)..]);
    Ok(match answer.value().unwrap() {
        GetDirDelegation4res::Ok(granted) => Some(granted),
        GetDirDelegation4res::Unavail { .. } => None,
    })
}

/// Answers all callbacks that have been sent; returns the operation of each.
pub(crate) fn calls(world: &World) -> Vec<u32> {
    let calls = world.calls();
    calls.iter().for_each(|call| reply(world, call, (Nfsstat4::Ok, &[])));
    calls.iter().map(|call| opened(call).2).collect()
}

/// An operation that changes a directory, with the operations before it in its COMPOUND.
pub(crate) struct Change {
    pub(crate) name: &'static str,
    pub(crate) operations: u32,
    pub(crate) say: Box<dyn Fn(&mut Encoder)>,
}

pub(crate) fn change(
    name: &'static str,
    operations: u32,
    say: impl Fn(&mut Encoder) + 'static,
) -> Change {
    Change { name, operations, say: Box::new(say) }
}

pub(crate) fn none() -> Fattr4<'static> {
    Fattr4 { attrmask: Bitmap4::EMPTY, attr_vals: Opaque(b"") }
}

pub(crate) fn open(call: &mut Encoder, name: &'static [u8], how: Createhow4<'static>) {
    go_to(call, TOP);
    call.value(&op::OPEN);
    call.value(&Open4args {
        seqid: 0,
        share_access: share::READ | share::WANT_NO_DELEG,
        share_deny: 0,
        owner: StateOwner4 { clientid: 0, owner: Opaque(b"process") },
        openhow: Openflag4::Create(how),
        claim: OpenClaim4::Null(Opaque(name)),
    });
}

pub(crate) fn make(
    call: &mut Encoder,
    path: &[&[u8]],
    name: &'static [u8],
    objtype: Createtype4<'static>,
) {
    go_to(call, path);
    call.value(&op::CREATE);
    call.value(&Create4args { objtype, objname: Opaque(name), createattrs: none() });
}

pub(crate) fn rename(
    call: &mut Encoder,
    (from, oldname): (&[&[u8]], &[u8]),
    (to, newname): (&[&[u8]], &[u8]),
) {
    go_to(call, from);
    call.value(&op::SAVEFH);
    go_to(call, to);
    call.value(&op::RENAME);
    call.value(&Rename4args { oldname: Opaque(oldname), newname: Opaque(newname) });
}

pub(crate) fn remove(call: &mut Encoder, path: &[&[u8]], name: &[u8]) {
    go_to(call, path);
    call.value(&op::REMOVE);
    call.value::<Component4<'_>>(&Opaque(name));
}

/// All changes of the root directory of the export. Each uses the names that the earlier ones left.
pub(crate) fn changes() -> Vec<Change> {
    vec![
        change("OPEN, guarded", 4, |call| open(call, b"a", Createhow4::Guarded(none()))),
        change("OPEN, unchecked", 4, |call| open(call, b"b", Createhow4::Unchecked(none()))),
        change("OPEN, exclusive", 4, |call| open(call, b"c", Createhow4::Exclusive([1; 8]))),
        change("CREATE of a directory", 4, |call| make(call, TOP, b"d", Createtype4::Dir)),
        change("CREATE of a link", 4, |call| {
            make(call, TOP, b"l", Createtype4::Lnk(Opaque(b"to")));
        }),
        change("CREATE of a FIFO", 4, |call| make(call, TOP, b"f", Createtype4::Fifo)),
        change("LINK", 9, |call| {
            go_to(call, &[b"srv", b"pub", b"a"]);
            call.value(&op::SAVEFH);
            go_to(call, TOP);
            call.value(&op::LINK);
            call.value::<Component4<'_>>(&Opaque(b"second"));
        }),
        change("RENAME within", 8, |call| rename(call, (TOP, b"b"), (TOP, b"e"))),
        change("RENAME out", 9, |call| rename(call, (TOP, b"e"), (INNER, b"e"))),
        change("RENAME in", 9, |call| rename(call, (INNER, b"e"), (TOP, b"g"))),
        change("REMOVE of a file", 4, |call| remove(call, TOP, b"g")),
        change("REMOVE of a directory", 4, |call| remove(call, TOP, b"d")),
        change("SETATTR", 4, |call| {
            go_to(call, TOP);
            call.value(&op::SETATTR);
            let (attrmask, mode) = (Bitmap4::of(&[attribute::MODE]), encoded(&0o755_u32));
            let obj_attributes = Fattr4 { attrmask, attr_vals: Opaque(&mode) };
            call.value(&Setattr4args { stateid: Stateid4::ANONYMOUS, obj_attributes });
        }),
        change("SETXATTR", 4, |call| {
            go_to(call, TOP);
            call.value(&op::SETXATTR);
            let (option, key, value) =
                (SetxattrOption4::Either, Opaque(&b"k"[..]), Opaque(&b"v"[..]));
            call.value(&Setxattr4args { option, key, value });
        }),
    ]
}

#[test]
fn every_change_by_another_client_waits_for_the_recall() {
    let mut site = ServerAndClients::new();
    for Change { name, operations, say } in changes() {
        let stateid = site.hold(TOP);
        let other = |site: &mut ServerAndClients| {
            perform(&site.world, 2, &mut site.other, operations, |call| say(call)).0
        };
        assert_eq!(other(&mut site), Nfsstat4::Delay, "{name}");
        assert_eq!(calls(&site.world), [cb::CB_RECALL], "{name}");
        assert_eq!(other(&mut site), Nfsstat4::Delay, "{name} is not done before the return");
        assert_eq!(calls(&site.world), [0; 0], "{name} recalls once");
        site.give_back(TOP, &stateid);
        assert_eq!(other(&mut site), Nfsstat4::Ok, "{name} is done after the return");
    }
}

#[test]
fn the_holder_s_own_changes_recall_nothing() {
    let mut site = ServerAndClients::new();
    let stateid = site.hold(TOP);
    for Change { name, operations, say } in changes() {
        let (status, _) = perform(&site.world, 2, &mut site.holder, operations, |call| say(call));
        assert_eq!(status, Nfsstat4::Ok, "{name}");
        assert_eq!(calls(&site.world), [0; 0], "{name}");
    }
    site.give_back(TOP, &stateid);
}

#[test]
fn a_rename_waits_for_the_holder_of_either_directory_and_of_the_moved_one() {
    let moved: &[&[u8]] = &[b"srv", b"pub", b"inner", b"own"];
    for held in [TOP, INNER, moved] {
        let mut site = ServerAndClients::new();
        let stateid = site.hold(held);
        let other = |site: &mut ServerAndClients| {
            let say = |call: &mut Encoder| rename(call, (INNER, b"own"), (TOP, b"own"));
            perform(&site.world, 2, &mut site.other, 9, say).0
        };
        assert_eq!(other(&mut site), Nfsstat4::Delay);
        assert_eq!(calls(&site.world), [cb::CB_RECALL]);
        site.give_back(held, &stateid);
        assert_eq!(other(&mut site), Nfsstat4::Ok);
    }
}

#[test]
fn a_removed_directory_is_recalled_too() {
    let own: &[&[u8]] = &[b"srv", b"pub", b"inner", b"own"];
    let mut site = ServerAndClients::new();
    let stateid = site.hold(own);
    let other = |site: &mut ServerAndClients| {
        perform(&site.world, 2, &mut site.other, 5, |call| remove(call, INNER, b"own")).0
    };
    assert_eq!(other(&mut site), Nfsstat4::Delay);
    assert_eq!(calls(&site.world), [cb::CB_RECALL]);
    site.give_back(own, &stateid);
    assert_eq!(other(&mut site), Nfsstat4::Ok);
}

#[test]
fn reading_and_writing_files_recalls_no_directory() {
    let mut site = ServerAndClients::new();
    site.hold(TOP);
    let (status, _) = perform(&site.world, 2, &mut site.other, 4, |call| {
        open(call, b"file", Createhow4::Unchecked(none()));
    });
    assert_eq!(status, Nfsstat4::Ok, "an existing file is opened");
    assert_eq!(calls(&site.world), [0; 0]);
}

#[test]
fn a_caller_without_the_right_to_change_a_directory_recalls_nothing() {
    let mut site = ServerAndClients::new();
    site.hold(TOP);
    site.world.act_as(9, 9, &[]);
    for Change { name, operations, say } in changes().into_iter().take(6) {
        let (status, _) = perform(&site.world, 2, &mut site.other, operations, |call| say(call));
        assert_eq!(status, Nfsstat4::Access, "{name}");
    }
    let (status, _) =
        perform(&site.world, 2, &mut site.other, 4, |call| remove(call, TOP, b"file"));
    assert_eq!(status, Nfsstat4::Access);
    assert_eq!(calls(&site.world), [0; 0]);
}

#[test]
fn a_directory_is_delegated_to_several_clients_and_recalled_from_all_others() {
    let mut site = ServerAndClients::new();
    let mut third = client(&site.world, 2, b"third");
    site.hold(TOP);
    assert!(ask(&site.world, &mut third, TOP).unwrap().is_some());
    let (status, _) = perform(&site.world, 2, &mut site.holder, 4, |call| {
        make(call, TOP, b"d", Createtype4::Dir)
    });
    assert_eq!(status, Nfsstat4::Delay);
    assert_eq!(calls(&site.world), [cb::CB_RECALL], "the third client's alone");
}

#[test]
fn files_are_not_delegated_as_directories() {
    let mut site = ServerAndClients::new();
    assert_eq!(site.ask(&[b"srv", b"pub", b"file"]), Err(Nfsstat4::NotDir));
    assert_eq!(site.ask(&[b"srv"]), Ok(None), "nor are directories above the exports");
}

#[test]
fn no_directory_is_delegated_where_others_may_write_or_users_may_see_different_names() {
    for options in [
        "",
        ",dir_delegations=never",
        ",dir_delegations=always:sole-writer,no_client_cache",
        ",dir_delegations=always:sole-writer,cloak_uid=1-2:+000",
    ] {
        ServerAndClients::of(options).is_refused(NoDirectory::Export);
    }
}

#[test]
fn no_directory_is_delegated_where_keys_hold_rights() {
    let fs = memory();
    let dir_delegations = DirectoryDelegations {
        grants: DirectoryGrants::Always,
        writers: Some(DirectoryWriters::ServerOnly),
        recall_only: false,
        ..DirectoryDelegations::default()
    };
    for (key_use, granted) in [(KeyUse::AccountsOnly, true), (KeyUse::Preferred, false)] {
        let rules = Rules { secure: false, key_use, dir_delegations, ..Rules::default() };
        let clients = vec![(Client::Everybody, Arc::new(rules))];
        let export = Export::new(ExportId(1), "/srv/pub".into(), Arc::clone(&fs), clients);
        let world = World::of(Plan::new(HandleKey::new([7; 16]), vec![Arc::new(export)]));
        let mut holder = client(&world, 2, b"holder");
        assert_eq!(ask(&world, &mut holder, TOP).unwrap().is_some(), granted, "{key_use:?}");
    }
}

/// Linux asks once, after it has used the directory.
#[test]
fn a_client_that_has_used_a_directory_gets_its_delegation_at_the_first_request() {
    for look in [None, Some(op::ACCESS), Some(op::LOOKUP)] {
        let mut site = ServerAndClients::of(",dir_delegations=sole-writer");
        if let Some(look) = look {
            let (status, _) = perform(&site.world, 2, &mut site.holder, 4, |call| {
                go_to(call, TOP);
                call.value(&look);
                match look {
                    op::ACCESS => call.value(&1_u32),
                    _ => call.value::<Component4<'_>>(&Opaque(b"file")),
                }
            });
            assert_eq!(status, Nfsstat4::Ok);
        }
        // Requests within a tenth of a second count as one use.
        std::thread::sleep(Duration::from_millis(120));
        assert_eq!(site.ask(TOP).unwrap().is_some(), look.is_some(), "{look:?}");
    }
}

#[test]
fn a_user_who_may_not_use_a_directory_gets_no_delegation_of_it() {
    let mut site = ServerAndClients::new();
    let set = SetAttr { mode: Some(Mode::new(0o700)), ..SetAttr::default() };
    let server = Cred::new(Uid::new(0), Gid::new(0));
    site.fs.setattr(&server, &site.fs.root(), &set, None).unwrap();
    site.world.act_as(9, 9, &[]);
    site.is_refused(NoDirectory::Export);
}

#[test]
fn a_reload_recalls_directories_that_were_granted_under_earlier_rules() {
    let mut site = ServerAndClients::new();
    let stateid = site.hold(TOP);
    site.world.exports.replace(plan(&site.fs, ",dir_delegations=never"));
    site.world.engine.recall_directories(site.world.now());
    assert_eq!(calls(&site.world), [cb::CB_RECALL]);
    site.give_back(TOP, &stateid);
    site.is_refused(NoDirectory::Export);
}

/// Replaces the rules of the exports while the rights to a directory are checked.
#[derive(Clone, Default)]
struct Reload(Arc<Mutex<NextPlan>>);

type NextPlan = Option<(Arc<Exports>, Plan)>;

impl Hook for Reload {
    fn around<T>(
        &self,
        verb: Verb,
        _: &Handle,
        work: impl FnOnce() -> comity_vfs::Result<T>,
    ) -> comity_vfs::Result<T> {
        if verb == Verb::Access
            && let Some((exports, plan)) = self.0.lock().unwrap().take()
        {
            exports.replace(plan);
        }
        work()
    }
}

#[test]
fn a_directory_granted_under_rules_that_were_replaced_meanwhile_is_recalled() {
    let (reload, inner) = (Reload::default(), memory());
    furnish(&*inner);
    let fs: Arc<dyn Fs> = Arc::new(Layer::new(inner, reload.clone()));
    let world = World::of(plan(&fs, ALWAYS));
    let mut holder = client(&world, 2, b"holder");
    let other = plan(&fs, ",dir_delegations=never");
    *reload.0.lock().unwrap() = Some((Arc::clone(&world.exports), other));
    assert_eq!(ask(&world, &mut holder, TOP), Ok(None));
    assert!(reload.0.lock().unwrap().is_none(), "the rules changed during the request");
    assert_eq!(world.engine.totals().directories_granted, 1, "it was granted first");
    assert!(!world.engine.has_delegations());
}

//! Calls of NFSv3 that change a directory wait until NFSv4 clients have returned its delegation.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use comity_coherence::Hosts;
use comity_proto::nfs3::{
    Createhow3, Diropargs3, Link3args, Mkdir3args, Mknod3args, Mknoddata3, Rename3args, Sattr3,
    SetTime3, Setattr3args, StableHow, Symlink3args, Write3args, procedure,
};
use comity_state::{
    Always, Client, DirectoryRequest, Effect, Engine, FileKey, NotedChange, NoticeWishes,
    Recovered, Sender, Settings, Stateid,
};
use comity_vfs::{Cred, Gid, Uid};
use comity_xdr::Opaque;

use crate::recalls::{JUKEBOX, NOW, client, create, place};
use crate::world::{Ground, World, encoded};

/// A server of NFSv3, and a client of NFSv4 that asks for delegations of directories.
struct ServerAndHolder {
    engine: Arc<Engine>,
    client: Arc<Client>,
    world: World,
}

impl ServerAndHolder {
    fn new() -> Self {
        Self::beside(|engine| Hosts::new(engine, || NOW))
    }

    fn beside(knows: impl FnOnce(Arc<Engine>) -> Hosts) -> Self {
        let engine = Arc::new(Engine::new(NOW, Settings::new(7, [7; 16]), Recovered::new()));
        let client = client(&engine);
        let world = World::new(Ground::default()).recalling(knows(Arc::clone(&engine)));
        Self { engine, client, world }
    }

    fn hold(&self, directory: &[u8]) -> Stateid {
        self.hold_with(directory, None)
    }

    fn hold_with(&self, directory: &[u8], notices: Option<NoticeWishes>) -> Stateid {
        let directory = self.key(directory);
        let parent = self.key(&self.world.root);
        let user = Arc::new(Cred::new(Uid::new(1), Gid::new(1)));
        let (client, caller) = (&self.client, self.client.caller());
        let policy = &Always;
        let request =
            DirectoryRequest { client, caller, directory, parent, user: &user, policy, notices };
        self.engine.delegate_directory(NOW, &request).unwrap()
    }

    fn key(&self, handle: &[u8]) -> FileKey {
        self.world.exports.current().unseal_key(handle).unwrap()
    }

    fn status(&self, procedure: u32, arguments: &[u8]) -> u32 {
        let body = self.world.ask(procedure, arguments);
        u32::from_be_bytes(body[..4].try_into().unwrap())
    }

    /// Asserts that the call recalls the delegation of the directory and succeeds once it is
    /// returned.
    fn is_recalled_by(&self, directory: &[u8], (procedure, arguments): (u32, &[u8])) {
        let stateid = self.hold(directory);
        assert_eq!(self.status(procedure, arguments), JUKEBOX, "procedure {procedure}");
        let effect = self.engine.poll_effect();
        assert!(matches!(effect, Some(Effect::Recall { stateid: it, .. }) if it == stateid));
        let shown = (Sender::of(NOW, &self.client), &self.key(directory));
        self.engine.delegreturn(shown, &stateid).unwrap();
        assert_eq!(self.status(procedure, arguments), 0, "procedure {procedure}");
    }
}

#[test]
fn every_procedure_that_changes_a_directory_waits_for_the_recall() {
    let site = ServerAndHolder::new();
    let (world, root) = (&site.world, site.world.root.clone());
    let attributes = Sattr3::default();
    let exclusive = comity_proto::nfs3::Create3args {
        place: place(world, "b"),
        how: Createhow3::Exclusive([1; 8]),
    };
    let mkdir = Mkdir3args { place: place(world, "d"), attributes };
    let symlink = Symlink3args { place: place(world, "l"), attributes, target: Opaque(b"to") };
    let mknod = Mknod3args { place: place(world, "f"), what: Mknoddata3::Fifo(attributes) };
    let rename = Rename3args { from: place(world, "b"), to: place(world, "c") };
    let mode = Sattr3 { mode: Some(0o777), ..attributes };
    let setattr = Setattr3args { object: Opaque(&root), new_attributes: mode, guard: None };
    for call in [
        (procedure::CREATE, encoded(&create(world, "a"))),
        (procedure::CREATE, encoded(&exclusive)),
        (procedure::MKDIR, encoded(&mkdir)),
        (procedure::SYMLINK, encoded(&symlink)),
        (procedure::MKNOD, encoded(&mknod)),
        (procedure::RENAME, encoded(&rename)),
        (procedure::REMOVE, encoded(&place(world, "c"))),
        (procedure::RMDIR, encoded(&place(world, "d"))),
        (procedure::SETATTR, encoded(&setattr)),
    ] {
        site.is_recalled_by(&root, (call.0, &call.1));
    }
    let file = world.handle("a");
    let link = Link3args { file: Opaque(&file), link: place(world, "second") };
    site.is_recalled_by(&root, (procedure::LINK, &encoded(&link)));
}

#[test]
fn a_setting_of_times_is_notified_to_a_holder_that_wants_that() {
    let site = ServerAndHolder::new();
    let root = site.world.root.clone();
    let directory = NoticeWishes::CHANGE | NoticeWishes::CTIME | NoticeWishes::MTIME;
    let notices = NoticeWishes {
        kinds: NoticeWishes::kinds_of_settings(directory),
        handles: false,
        fileids: false,
        types: false,
        directory,
        children: 0,
        child_delay: Duration::ZERO,
        bytes_max: 4096,
        unacknowledged_max: 64,
    };
    site.hold_with(&root, Some(notices));
    let setting = |new_attributes| {
        let args = Setattr3args { object: Opaque(&root), new_attributes, guard: None };
        site.status(procedure::SETATTR, &encoded(&args))
    };
    let mtime = SetTime3::SetToServerTime;
    assert_eq!(setting(Sattr3 { mtime, ..Sattr3::default() }), 0);
    let Some(Effect::Notify { batch, .. }) = site.engine.poll_effect() else {
        panic!("the holder is not notified")
    };
    assert_eq!(batch[0].change, NotedChange::Attributes);
    assert!(batch[0].after.is_some());
    let mode = Some(0o777);
    assert_eq!(setting(Sattr3 { mode, ..Sattr3::default() }), JUKEBOX);
    assert!(matches!(site.engine.poll_effect(), Some(Effect::Recall { .. })));
}

#[test]
fn a_rename_recalls_the_source_the_target_and_a_moved_directory() {
    for held in ["from", "to", "from/moved"] {
        let site = ServerAndHolder::new();
        let world = &site.world;
        let make = |dir: &[u8], name: &str| {
            let place = Diropargs3 { dir: Opaque(dir), name: Opaque(name.as_bytes()) };
            let args = Mkdir3args { place, attributes: Sattr3::default() };
            assert_eq!(site.status(procedure::MKDIR, &encoded(&args)), 0);
        };
        make(&world.root, "from");
        make(&world.root, "to");
        let (from, to) = (world.handle("from"), world.handle("to"));
        make(&from, "moved");
        let name = |dir| Diropargs3 { dir, name: Opaque(b"moved") };
        let rename = Rename3args { from: name(Opaque(&from)), to: name(Opaque(&to)) };
        let directory = world.handle(held);
        site.is_recalled_by(&directory, (procedure::RENAME, &encoded(&rename)));
    }
}

#[test]
fn a_removed_directory_is_recalled() {
    let site = ServerAndHolder::new();
    let args = Mkdir3args { place: place(&site.world, "d"), attributes: Sattr3::default() };
    assert_eq!(site.status(procedure::MKDIR, &encoded(&args)), 0);
    let directory = site.world.handle("d");
    let remove = encoded(&place(&site.world, "d"));
    site.is_recalled_by(&directory, (procedure::RMDIR, &remove));
}

#[test]
fn a_host_without_the_right_to_change_a_directory_recalls_nothing() {
    let site = ServerAndHolder::new();
    let set = Sattr3 { mode: Some(0o755), ..Sattr3::default() };
    let root = site.world.root.clone();
    let args = Setattr3args { object: Opaque(&root), new_attributes: set, guard: None };
    assert_eq!(site.status(procedure::SETATTR, &encoded(&args)), 0);
    site.hold(&root);
    site.world.act_as(9, 9, &[]);
    let made = site.status(procedure::CREATE, &encoded(&create(&site.world, "a")));
    assert_eq!(made, 13, "NFS3ERR_ACCES");
    assert!(site.engine.poll_effect().is_none());
}

#[test]
fn a_call_waits_for_a_holder_that_answers_at_once() {
    let pauses = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&pauses);
    let site = ServerAndHolder::beside(|engine| {
        let hosts = Hosts::new(Arc::clone(&engine), || NOW);
        hosts.pausing(Box::new(move |_: Duration| {
            count.fetch_add(1, Ordering::Relaxed);
            if let Some(Effect::Recall { client, stateid, file, .. }) = engine.poll_effect() {
                engine.delegreturn((Sender::of(NOW, &client), &file), &stateid).unwrap();
            }
            true
        }))
    });
    site.hold(&site.world.root);
    let made = site.status(procedure::CREATE, &encoded(&create(&site.world, "a")));
    assert_eq!((made, pauses.load(Ordering::Relaxed)), (0, 1));
}

#[test]
fn a_call_waits_a_tenth_of_a_second_for_a_silent_holder() {
    let pauses = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&pauses);
    let site = ServerAndHolder::beside(|engine| {
        Hosts::new(engine, || NOW).pausing(Box::new(move |moment: Duration| {
            count.fetch_add(moment.as_millis() as u32, Ordering::Relaxed);
            true
        }))
    });
    site.hold(&site.world.root);
    let made = site.status(procedure::CREATE, &encoded(&create(&site.world, "a")));
    assert_eq!((made, pauses.load(Ordering::Relaxed)), (JUKEBOX, 100));
}

/// The objects that calls of NFSv3 have changed, as files below the root.
#[test]
fn every_procedure_that_changes_attributes_of_a_file_is_noted_for_clients_that_want_them() {
    let site = ServerAndHolder::new();
    let world = &site.world;
    assert_eq!(site.status(procedure::CREATE, &encoded(&create(world, "file"))), 0);
    assert_eq!(site.status(procedure::CREATE, &encoded(&create(world, "other"))), 0);
    let (file, other) = (world.handle("file"), world.handle("other"));
    let write = Write3args {
        file: Opaque(&file),
        offset: 0,
        count: 3,
        stable: StableHow::Unstable,
        data: Opaque(b"new"),
    };
    let resize = Sattr3 { size: Some(9), ..Sattr3::default() };
    let setattr = Setattr3args { object: Opaque(&file), new_attributes: resize, guard: None };
    let how = Createhow3::Unchecked(resize);
    let found = comity_proto::nfs3::Create3args { place: place(world, "file"), how };
    let link = Link3args { file: Opaque(&file), link: place(world, "second") };
    let rename = Rename3args { from: place(world, "second"), to: place(world, "third") };
    let replace = Rename3args { from: place(world, "other"), to: place(world, "third") };
    let calls = [
        (procedure::WRITE, encoded(&write)),
        (procedure::SETATTR, encoded(&setattr)),
        (procedure::CREATE, encoded(&found)),
        (procedure::LINK, encoded(&link)),
        (procedure::RENAME, encoded(&rename)),
        (procedure::RENAME, encoded(&replace)),
        (procedure::LINK, encoded(&link)),
        (procedure::REMOVE, encoded(&place(world, "second"))),
    ];
    let changed = site.engine.changed_objects();
    assert!(changed.is_empty(), "nobody watches");
    changed.watch();
    for (number, arguments) in calls {
        assert_eq!(site.status(number, &arguments), 0, "procedure {number}");
        let taken = changed.take().unwrap();
        assert!(taken.iter().all(|change| change.client.is_none()));
        let objects: Vec<FileKey> = taken.iter().map(|change| change.object).collect();
        assert!(objects.contains(&site.key(&file)), "procedure {number}");
        let is_of_names = ![procedure::WRITE, procedure::SETATTR].contains(&number);
        assert_eq!(objects.contains(&site.key(&world.root)), is_of_names, "procedure {number}");
        assert_eq!(objects.contains(&site.key(&other)), arguments == encoded(&replace));
    }
}

//! A site behind options, and the administrator of the server, over one file system in memory.
#![allow(dead_code, reason = "each test program uses its part")]

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::Arc;

use comity_backend::{Memory, MemoryOptions};
use comity_credential::{CredentialRef, Flavor, OpaqueAuth};
use comity_export::{
    Door, ExportRequest, HandleKey, Node, Plan, Refusal, RpcPeer, Source, Sources, View, load,
};
use comity_rpc::AuthSys;
use comity_vfs::{Create, Fs, Gid, Listed, Mode, SetAttr, Status, Uid, Wire};
use comity_xdr::{Counted, Encoder, Opaque};

/// No client holds state in these tests.
const CLEAR: comity_export::Clearance = comity_export::Clearance::given();
const NAMES: comity_export::DirectoryClearance<'static> =
    comity_export::DirectoryClearance::given();

pub(crate) struct Site {
    plan: Plan,
    fs: Arc<dyn Fs>,
}

impl Site {
    /// The site at 10.0.0.2 has `/srv` under these options; the administrator at 10.0.0.1 has it as
    /// root.
    pub(crate) fn new(options: &str) -> Self {
        let root_mode = Mode::new(0o777);
        let fs = Memory::new(MemoryOptions { root_mode, ..MemoryOptions::default() }).unwrap();
        Self::of(Arc::new(fs), options)
    }

    /// A site over the same file system under other options.
    pub(crate) fn again(&self, options: &str) -> Self {
        Self::of(Arc::clone(&self.fs), options)
    }

    /// A site over another file system.
    pub(crate) fn of(fs: Arc<dyn Fs>, options: &str) -> Self {
        let text = format!("/srv 10.0.0.1(rw,insecure,no_root_squash) 10.0.0.2({options})\n");
        let source = Source::Text { name: "e".into(), text: text.into() };
        let netgroups = "/nonexistent".into();
        let sources = Sources { netgroups, ..Sources::new(vec![source]) };
        let open = |_: &ExportRequest<'_>| Ok(Arc::clone(&fs));
        let (plan, _) = load(&sources, &open, HandleKey::new([3; 16]), None)
            .unwrap_or_else(|findings| panic!("{findings:?}"));
        Self { plan, fs }
    }

    pub(crate) const fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(crate) fn admin(&self) -> (View<'_>, Node) {
        self.as_of("10.0.0.1:40000", (0, 0, &[]), Door::Path(b"/srv")).unwrap()
    }

    pub(crate) fn guest(&self, uid: u32, gid: u32, gids: &[u32]) -> (View<'_>, Node) {
        self.enter(uid, gid, gids).unwrap()
    }

    pub(crate) fn enter(
        &self,
        uid: u32,
        gid: u32,
        gids: &[u32],
    ) -> Result<(View<'_>, Node), Refusal> {
        self.through(uid, gid, gids, Door::Path(b"/srv"))
    }

    pub(crate) fn through(
        &self,
        uid: u32,
        gid: u32,
        gids: &[u32],
        door: Door<'_>,
    ) -> Result<(View<'_>, Node), Refusal> {
        self.as_of("10.0.0.2:40000", (uid, gid, gids), door)
    }

    fn as_of(
        &self,
        peer: &str,
        caller: (u32, u32, &[u32]),
        door: Door<'_>,
    ) -> Result<(View<'_>, Node), Refusal> {
        through(&self.plan, peer, caller, door)
    }

    /// Lets a caller enter `/srv` of any plan.
    pub(crate) fn enter_plan<'p>(
        plan: &'p Plan,
        peer: &str,
        caller: (u32, u32, &[u32]),
    ) -> Result<(View<'p>, Node), Refusal> {
        through(plan, peer, caller, Door::Path(b"/srv"))
    }

    /// Makes a file with these server ids in the root directory.
    pub(crate) fn file(&self, name: &[u8], owner: (u32, u32), mode: u32) -> Node {
        let (admin, root) = self.admin();
        self.file_in(&root, name, owner, mode, &admin)
    }

    pub(crate) fn file_in(
        &self,
        dir: &Node,
        name: &[u8],
        owner: (u32, u32),
        mode: u32,
        admin: &View<'_>,
    ) -> Node {
        let node =
            admin.create(NAMES, dir, name, &Create::Guarded(owned(mode))).unwrap().value.node;
        give(admin, &node, owner);
        node
    }

    /// Makes a directory with these server ids in the root directory.
    pub(crate) fn dir(&self, name: &[u8], owner: (u32, u32), mode: u32) -> Node {
        let (admin, root) = self.admin();
        let node = admin.mkdir(NAMES, &root, name, &owned(mode)).unwrap().value.node;
        give(&admin, &node, owner);
        node
    }
}

fn through<'p>(
    plan: &'p Plan,
    peer: &str,
    (uid, gid, gids): (u32, u32, &[u32]),
    door: Door<'_>,
) -> Result<(View<'p>, Node), Refusal> {
    let gids = Counted(gids.to_vec());
    let mut encoder = Encoder::new();
    encoder.value(&AuthSys { stamp: 1, machine_name: Opaque(&b"c"[..]), uid, gid, gids });
    let auth = OpaqueAuth { flavor: Flavor::SYS, body: Opaque(encoder.bytes()) };
    let peer = RpcPeer::new(peer.parse::<SocketAddr>().unwrap());
    View::enter(plan, &peer, &CredentialRef::parse(&auth), door)
}

fn give(admin: &View<'_>, node: &Node, (uid, gid): (u32, u32)) {
    let set = SetAttr { uid: Some(Uid::new(uid)), gid: Some(Gid::new(gid)), ..SetAttr::default() };
    admin.setattr(CLEAR, node, &set, None).unwrap();
}

pub(crate) fn owned(mode: u32) -> SetAttr<Wire> {
    SetAttr { mode: Some(Mode::new(mode)), ..SetAttr::default() }
}

pub(crate) fn chown(view: &View<'_>, node: &Node, uid: u32) -> Result<(), Status> {
    let set = SetAttr { uid: Some(Uid::new(uid)), ..SetAttr::default() };
    view.setattr(CLEAR, node, &set, None).map(drop)
}

/// The names in a listing, sorted.
pub(crate) fn names(view: &View<'_>, dir: &Node) -> Vec<String> {
    let mut found = Vec::new();
    view.readdir(dir, 0, Listed::Names, &mut |listing, _| {
        found.push(String::from_utf8(listing.name.bytes().to_vec()).unwrap());
        ControlFlow::Continue(())
    })
    .unwrap();
    found.sort();
    found
}

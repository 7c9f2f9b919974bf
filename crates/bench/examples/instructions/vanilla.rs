//! VAN: GETATTR and READDIRPLUS with a file system wired in directly. What a server has to do
//! without maps and cloaks is done as it does it: a table of verbs, seals, and who came in is kept
//! until the exports change. There is no view, no id is changed, and nothing asks whether it should
//! be.

use std::ops::{ControlFlow, RangeInclusive};
use std::sync::{Arc, Mutex, PoisonError};

use comity_export::{ExportId, Exports, Plan, Visitor};
use comity_proto::nfs3::PROGRAM;
use comity_proto::nfs3::{
    DirlistHead, Entry3, Entryplus3, Fattr3, Ftype3, NfsFh3, Nfsstat3, Nfstime3, Readdirplus3args,
    Specdata3, VERSION, procedure,
};
use comity_rpc::{AuthSys, Call, Done, Flavor, Outcome, Program, Repeat};
use comity_vfs::{
    Attr, Cred, Disk, FileType, Fs, Gid, Handle, Listed, Node, Result, Status, Time, Uid,
};
use comity_xdr::{Decoder, Encoder, Mark, Opaque, padding};

use crate::configuration::key;

/// What stands before and behind the entries of a page.
const HEAD_BYTES: usize = 4 + Fattr3::BYTES + 8;
const TAIL_BYTES: usize = 8;

/// A verb: from a call to its results, appended to the reply.
type Verb = fn(&Vanilla, &Asked<'_>, &mut Encoder) -> Result<Done>;

/// The verbs, by their procedures.
static VERBS: [(u32, Verb); 2] =
    [(procedure::GETATTR, getattr), (procedure::READDIRPLUS, readdirplus)];

/// The program.
pub(crate) struct Vanilla {
    exports: Arc<Exports>,
    fs: Arc<dyn Fs>,
    fsid: u64,
    known: Mutex<Vec<Known>>,
}

/// Who came in, by the credential's body without its stamp.
struct Known {
    plan: usize,
    export: ExportId,
    flavor: Flavor,
    body: Box<[u8]>,
    cred: Arc<Cred<Disk>>,
}

/// A call on its way.
struct Asked<'a> {
    plan: &'a Plan,
    visitor: &'a Visitor,
    call: &'a Call<'a>,
}

/// A call that was let in.
struct Entered<'a> {
    vanilla: &'a Vanilla,
    cred: Arc<Cred<Disk>>,
    export: ExportId,
    handle: Handle,
}

impl Vanilla {
    pub(crate) fn new(exports: Arc<Exports>, fs: Arc<dyn Fs>) -> Self {
        let fsid = fs.getattr(&fs.root()).map_or(0, |attr| attr.fsid);
        Self { exports, fs, fsid, known: Mutex::default() }
    }

    fn enter(&self, asked: &Asked<'_>, fh: &[u8]) -> Result<Entered<'_>> {
        let (export, handle) = key().open(fh)?;
        let cred = self.caller(asked, export)?;
        Ok(Entered { vanilla: self, cred, export, handle })
    }

    fn caller(&self, asked: &Asked<'_>, export: ExportId) -> Result<Arc<Cred<Disk>>> {
        let credential = &asked.call.header.credential;
        let (plan, flavor) = (std::ptr::from_ref(asked.plan) as usize, credential.flavor);
        let body = credential.body.0.get(4..).unwrap_or(credential.body.0);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is = |known: &&Known| {
            known.plan == plan
                && known.export == export
                && known.flavor == flavor
                && *known.body == *body
        };
        if let Some(known) = known.first().filter(is) {
            return Ok(Arc::clone(&known.cred));
        }
        let offered = asked.plan.exports().iter().find(|offered| offered.id() == export);
        offered.ok_or(Status::Stale)?.rules(asked.visitor.peer().ip()).ok_or(Status::Acces)?;
        let sys = Decoder::whole::<AuthSys<'_>>(credential.body.0).map_err(|_| Status::Acces)?;
        let groups = sys.gids.0.iter().copied().map(Gid::new);
        let cred = Arc::new(Cred::new(Uid::new(sys.uid), Gid::new(sys.gid)).with_groups(groups));
        *known = vec![Known { plan, export, flavor, body: body.into(), cred: Arc::clone(&cred) }];
        Ok(cred)
    }
}

fn getattr(vanilla: &Vanilla, asked: &Asked<'_>, reply: &mut Encoder) -> Result<Done> {
    let object = asked.call.arguments::<NfsFh3<'_>>().map_err(|_| Status::Inval)?;
    let entered = vanilla.enter(asked, object.0)?;
    let attr = vanilla.fs.getattr(&entered.handle)?;
    reply.value(&Nfsstat3::Ok);
    reply.value(&entered.fattr3(&attr));
    Ok(entered.done())
}

fn readdirplus(vanilla: &Vanilla, asked: &Asked<'_>, reply: &mut Encoder) -> Result<Done> {
    let args = asked.call.arguments::<Readdirplus3args<'_>>().map_err(|_| Status::Inval)?;
    let entered = vanilla.enter(asked, args.dir.0)?;
    reply.value(&Nfsstat3::Ok);
    let start = reply.mark();
    let head = reply.reserve(HEAD_BYTES);
    let mut page = Page::new(&entered, reply, start, &args);
    if args.cookie == 0 {
        let attr = vanilla.fs.getattr(&entered.handle)?;
        let _ = page.append(b".", Node { handle: entered.handle, attr }, 1);
    }
    if args.cookie < 2 {
        let above = vanilla.fs.parent(&entered.cred, &entered.handle)?;
        let _ = page.append(b"..", above, 2);
    }
    let attr = page.entries(args.cookie.saturating_sub(2))?;
    page.end()?;
    let dir_attributes = Some(entered.fattr3(&attr));
    let told = DirlistHead { dir_attributes, cookieverf: [0; 8] };
    reply.fill(head, |reply| reply.value(&told));
    Ok(entered.done())
}

impl Entered<'_> {
    const fn done(&self) -> Done {
        Done { status: 0, export: Some(self.export.0) }
    }

    fn fattr3(&self, attr: &Attr<Disk>) -> Fattr3 {
        let id = u64::from(self.export.0);
        Fattr3 {
            ftype: ftype3(attr.file_type),
            mode: attr.mode.bits(),
            nlink: attr.links,
            uid: attr.uid.number(),
            gid: attr.gid.number(),
            size: attr.size,
            used: attr.used,
            rdev: Specdata3 { major: attr.device.major, minor: attr.device.minor },
            fsid: attr.fsid ^ self.vanilla.fsid ^ (id << 32 | id),
            fileid: attr.fileid,
            atime: nfstime3(attr.atime),
            mtime: nfstime3(attr.mtime),
            ctime: nfstime3(attr.ctime),
        }
    }
}

/// A page that is being written.
struct Page<'a> {
    entered: &'a Entered<'a>,
    reply: &'a mut Encoder,
    start: Mark,
    bytes_max: usize,
    names_left: usize,
    entries: usize,
    full: bool,
}

impl<'a> Page<'a> {
    const fn new(
        entered: &'a Entered<'a>,
        reply: &'a mut Encoder,
        start: Mark,
        args: &Readdirplus3args<'_>,
    ) -> Self {
        let (bytes_max, names_left) = (args.maxcount as usize, args.dircount as usize);
        Self { entered, reply, start, bytes_max, names_left, entries: 0, full: false }
    }

    fn entries(&mut self, cookie: u64) -> Result<Attr<Disk>> {
        let Entered { vanilla, cred, handle, .. } = self.entered;
        vanilla.fs.readdir(cred, handle, cookie, Listed::Nodes, &mut |listing| match listing.node {
            _ if self.full => ControlFlow::Break(()),
            Some(node) => self.append(listing.name.bytes(), node, listing.cookie + 2),
            None => ControlFlow::Continue(()),
        })
    }

    fn append(&mut self, name: &[u8], node: Node<Disk>, cookie: u64) -> ControlFlow<()> {
        let names = 8 + 4 + name.len() + padding(name.len()) + 8;
        if self.full || names > self.names_left && self.entries > 0 {
            self.full = true;
            return ControlFlow::Break(());
        }
        let before = self.reply.mark();
        self.reply.value(&true);
        let sealed = key().seal(self.entered.export, &node.handle);
        self.reply.value(&Entryplus3 {
            entry: Entry3 { fileid: node.attr.fileid, name: Opaque(name), cookie },
            name_attributes: Some(self.entered.fattr3(&node.attr)),
            name_handle: Some(Opaque(sealed.bytes())),
        });
        if self.reply.length_since(self.start) + TAIL_BYTES > self.bytes_max {
            self.reply.rollback(before);
            self.full = true;
            return ControlFlow::Break(());
        }
        self.names_left = self.names_left.saturating_sub(names);
        self.entries += 1;
        ControlFlow::Continue(())
    }

    fn end(&mut self) -> Result<()> {
        let room = self.reply.length_since(self.start) + TAIL_BYTES <= self.bytes_max;
        if !room || self.full && self.entries == 0 {
            return Err(Status::TooSmall);
        }
        self.reply.value(&false);
        self.reply.value(&!self.full);
        Ok(())
    }
}

impl Program<Visitor> for Vanilla {
    fn number(&self) -> u32 {
        PROGRAM
    }

    fn versions(&self) -> RangeInclusive<u32> {
        VERSION..=VERSION
    }

    fn procedure_name(&self, _: u32, _: u32) -> &'static str {
        "vanilla"
    }

    fn repeat(&self, _: u32, _: u32) -> Repeat {
        Repeat::Harmless
    }

    fn call(&self, call: &Call<'_>, visitor: &Visitor, reply: &mut Encoder) -> Outcome {
        let procedure = call.header.procedure;
        let verb = VERBS.iter().find(|(number, _)| *number == procedure);
        let Some((_, verb)) = verb else { return Outcome::ProcUnavail };
        let plan = self.exports.current();
        match verb(self, &Asked { plan: &plan, visitor, call }, reply) {
            Ok(done) => Outcome::Done(done),
            Err(_) => Outcome::SystemErr,
        }
    }
}

const fn ftype3(file_type: FileType) -> Ftype3 {
    match file_type {
        FileType::Regular => Ftype3::Reg,
        FileType::Directory => Ftype3::Dir,
        FileType::Symlink => Ftype3::Lnk,
        FileType::Block => Ftype3::Blk,
        FileType::Character => Ftype3::Chr,
        FileType::Fifo => Ftype3::Fifo,
        FileType::Socket => Ftype3::Sock,
    }
}

const fn nfstime3(time: Time) -> Nfstime3 {
    const LAST: i64 = u32::MAX as i64;
    match time.seconds {
        ..0 => Nfstime3 { seconds: 0, nseconds: 0 },
        seconds @ 0..=LAST => Nfstime3 { seconds: seconds as u32, nseconds: time.nanoseconds },
        _ => Nfstime3 { seconds: u32::MAX, nseconds: 999_999_999 },
    }
}

use std::os::unix::fs::MetadataExt;

use anyhow::{Context, Result, ensure};
use comity_proto::nfs4::{
    Bitmap4, Close4args, ExistLockOwner4, Fattr4, Lock4args, Locker4, Locku4args, NfsLockType4,
    Open4args, Open4resok, OpenClaim4, OpenToLockOwner4, Openflag4, Read4args, StateOwner4,
    Stateid4, attribute, operation as op, share,
};
use comity_xdr::{Decoder, Opaque};

use super::compound::Compound;
use super::session::{Reply, Session, Wire};
use crate::layout::{self, LARGE_BYTES, Layout, SMALL_FILES};
use crate::operation::InSession;
use crate::script::{Expectation, Order, STATEID_BYTES, Script, Template};

/// Most calls that are outstanding at once: each has, where it matters, a file and owners of its
/// own.
const PLACES: usize = 32;

/// Where the results of SEQUENCE begin in a reply: behind its header, status, empty tag and count,
/// operation and status.
const SEQUENCED_AT: usize = crate::nfs::RESULTS_AT + 12 + 8;
/// Where they end.
const REST_AT: usize = SEQUENCED_AT + 16 + 20;

/// The attributes that Linux asks for.
const LINUX: Bitmap4 = Bitmap4::of(&[
    attribute::TYPE,
    attribute::CHANGE,
    attribute::SIZE,
    attribute::FSID,
    attribute::FILEID,
    attribute::MODE,
    attribute::NUMLINKS,
    attribute::OWNER,
    attribute::OWNER_GROUP,
    attribute::RAWDEV,
    attribute::SPACE_USED,
    attribute::TIME_ACCESS,
    attribute::TIME_METADATA,
    attribute::TIME_MODIFY,
    attribute::MOUNTED_ON_FILEID,
]);
/// Where size and fileid stand among their values.
const SIZE_AT: usize = 4 + 8;
const FILEID_AT: usize = SIZE_AT + 8 + 16;

/// Makes each kind of COMPOUND once, decodes its results and holds them against what stands on the
/// disk; replies under load must then be like it.
pub struct Prober4<'a, W> {
    /// Whose session the load will use.
    pub session: &'a mut Session<W>,
    /// The tree.
    pub layout: &'a Layout,
    /// The handle of its top.
    pub root: Vec<u8>,
    /// The byte that is locked in each file: another for each server, for servers see the locks
    /// of others in files that they share.
    pub locked: u64,
}

impl<W: Wire> Prober4<'_, W> {
    /// The calls of a load, which must have at most 32 outstanding, in sessions that nobody has
    /// used. It can be run by one set of connections.
    ///
    /// # Errors
    /// A COMPOUND fails, or its results are wrong.
    pub fn script(&mut self, operation: InSession) -> Result<Script> {
        let (templates, order) = match operation {
            InSession::Getattr => (self.getattrs()?, Order::Shared),
            InSession::Read(bytes) => (self.reads(bytes)?, Order::Shared),
            InSession::OpenClose => (self.opens()?, Order::Own(2)),
            InSession::LockUnlock => (self.locks()?, Order::Own(2)),
        };
        let first = templates.first().context("no calls")?;
        let sequence_at = Some(self.session.sequence_at(&first.bytes)?);
        let sequenced_at = Some(SEQUENCED_AT);
        Ok(Script { templates, order, sequence_at, sequenced_at, ..Script::default() })
    }

    fn getattrs(&mut self) -> Result<Vec<Template>> {
        (0..SMALL_FILES).map(|number| self.getattr(number)).collect()
    }

    fn getattr(&mut self, number: usize) -> Result<Template> {
        let handle = self.small(number)?;
        let compound = Compound::new().at(&handle).then(op::GETATTR, &LINUX);
        let reply = self.session.perform(&compound)?;
        let mut results = reply.results()?;
        results.next(op::PUTFH)?;
        let said: Fattr4<'_> = results.next(op::GETATTR)?.value()?;
        let there = self.layout.small().join(Layout::file(number)).metadata()?;
        let word = |at: usize| Decoder::new(&said.attr_vals.0[at..]).value::<u64>();
        let same = (word(SIZE_AT)?, word(FILEID_AT)?) == (there.len(), there.ino());
        ensure!(said.attrmask == LINUX && same, "GETATTR of file {number}: wrong attributes");
        let mut template = template(&reply);
        template.expect.samples = words(&reply.bytes, REST_AT);
        Ok(template)
    }

    fn reads(&mut self, bytes: u32) -> Result<Vec<Template>> {
        let handle = self.session.walk_from(&self.root, &Layout::read_file())?;
        let (dir, name) = (self.session.walk_from(&self.root, Layout::DATA)?, "read");
        let (_, stateid) = self.open(&dir, (name, share::READ), "reader")?;
        // The newest of this state, whichever it is.
        let stateid = Stateid4 { seqid: 0, ..stateid };
        let offsets = (0..LARGE_BYTES).step_by(bytes as usize);
        offsets.map(|offset| self.read(&handle, stateid, (offset, bytes))).collect()
    }

    fn read(
        &mut self,
        handle: &[u8],
        stateid: Stateid4,
        (offset, count): (u64, u32),
    ) -> Result<Template> {
        let arguments = Read4args { stateid, offset, count };
        let reply = self.session.perform(&Compound::new().at(handle).then(op::READ, &arguments))?;
        let mut results = reply.results()?;
        results.next(op::PUTFH)?;
        let read = results.next(op::READ)?;
        let (_, data): (bool, Opaque<'_, { 1 << 20 }>) = (read.value()?, read.value()?);
        ensure!(data.0 == layout::content(offset, count as usize), "READ at {offset}: wrong data");
        let mut template = template(&reply);
        let (length, data) = (reply.bytes.len(), count as usize);
        let data_at = length - data;
        // Both statuses and the length, then the data here and there.
        template.expect.samples = words(&reply.bytes[..data_at], REST_AT);
        for at in [data_at, data_at + data / 2, length - 8] {
            template.expect.samples.extend(reply.bytes[at..].first_chunk().map(|word| (at, *word)));
        }
        Ok(template)
    }

    fn opens(&mut self) -> Result<Vec<Template>> {
        let dir = self.session.walk_from(&self.root, Layout::SMALL)?;
        let mut templates = Vec::new();
        for place in 0..PLACES {
            let name = Layout::file(place);
            let (reply, stateid) = self.open(&dir, (&name, share::BOTH), &owner(place))?;
            let stateid_at = find(&reply.bytes, &stateid).context("no stateid in a reply")?;
            let statuses = [(REST_AT, 8), (stateid_at - 8, 8)];
            let gives_stateid_at = Some(stateid_at);
            templates.push(Template { gives_stateid_at, ..steady(&reply, &statuses) });
            templates.push(self.close(place, stateid)?);
        }
        Ok(templates)
    }

    fn close(&mut self, number: usize, open_stateid: Stateid4) -> Result<Template> {
        let handle = self.small(number)?;
        let arguments = Close4args { seqid: 0, open_stateid };
        let compound = Compound::new().at(&handle).then(op::CLOSE, &arguments);
        let reply = self.session.perform_kept(&compound, true)?;
        let mut results = reply.results()?;
        results.next(op::PUTFH)?;
        results.next(op::CLOSE)?;
        let takes_stateid_at = find(&reply.call, &open_stateid);
        ensure!(takes_stateid_at.is_some(), "no stateid in a call");
        let statuses = [(REST_AT, 8), (REST_AT + 8, 8)];
        Ok(Template { takes_stateid_at, ..steady(&reply, &statuses) })
    }

    fn locks(&mut self) -> Result<Vec<Template>> {
        let dir = self.session.walk_from(&self.root, Layout::SMALL)?;
        let mut templates = Vec::new();
        for place in 0..PLACES {
            let (name, owner) = (Layout::file(place), owner(place));
            let (_, open_stateid) = self.open(&dir, (&name, share::BOTH), &owner)?;
            let handle = self.small(place)?;
            let clientid = self.session.clientid();
            let lock_owner = StateOwner4 { clientid, owner: Opaque(owner.as_bytes()) };
            let (open_seqid, lock_seqid) = (0, 0);
            let first = OpenToLockOwner4 { open_seqid, open_stateid, lock_seqid, lock_owner };
            let (_, lock_stateid) = self.lock(&handle, Locker4::New(first))?;
            let lock_stateid = Stateid4 { seqid: 0, ..lock_stateid };
            self.unlock(&handle, lock_stateid)?;
            let again = Locker4::Exist(ExistLockOwner4 { lock_stateid, lock_seqid });
            templates.push(self.lock(&handle, again)?.0);
            templates.push(self.unlock(&handle, lock_stateid)?);
        }
        Ok(templates)
    }

    fn lock(&mut self, handle: &[u8], locker: Locker4<'_>) -> Result<(Template, Stateid4)> {
        let (offset, length, locktype) = (self.locked, 1, NfsLockType4::Write);
        let arguments = Lock4args { locktype, reclaim: false, offset, length, locker };
        let compound = Compound::new().at(handle).then(op::LOCK, &arguments);
        let reply = self.session.perform_kept(&compound, true)?;
        let mut results = reply.results()?;
        results.next(op::PUTFH)?;
        let stateid: Stateid4 = results.next(op::LOCK)?.value()?;
        Ok((steady(&reply, &[(REST_AT, 8), (REST_AT + 8, 8)]), stateid))
    }

    fn unlock(&mut self, handle: &[u8], lock_stateid: Stateid4) -> Result<Template> {
        let (offset, length, locktype) = (self.locked, 1, NfsLockType4::Write);
        let arguments = Locku4args { locktype, seqid: 0, lock_stateid, offset, length };
        let compound = Compound::new().at(handle).then(op::LOCKU, &arguments);
        let reply = self.session.perform_kept(&compound, true)?;
        let mut results = reply.results()?;
        results.next(op::PUTFH)?;
        results.next(op::LOCKU)?;
        Ok(steady(&reply, &[(REST_AT, 8), (REST_AT + 8, 8)]))
    }

    /// Opens a file by its name, and asks for its handle.
    fn open(
        &mut self,
        dir: &[u8],
        (name, access): (&str, u32),
        owner: &str,
    ) -> Result<(Reply, Stateid4)> {
        let arguments = Open4args {
            seqid: 0,
            share_access: access | share::WANT_NO_DELEG,
            share_deny: 0,
            owner: StateOwner4 {
                clientid: self.session.clientid(),
                owner: Opaque(owner.as_bytes()),
            },
            openhow: Openflag4::NoCreate,
            claim: OpenClaim4::Null(Opaque(name.as_bytes())),
        };
        let compound = Compound::new().at(dir).then(op::OPEN, &arguments).then(op::GETFH, &());
        let reply = self.session.perform_kept(&compound, true)?;
        let mut results = reply.results()?;
        results.next(op::PUTFH)?;
        let stateid = results.next(op::OPEN)?.value::<Open4resok<'_>>()?.stateid;
        results.next(op::GETFH)?;
        Ok((reply, stateid))
    }

    fn small(&mut self, number: usize) -> Result<Vec<u8>> {
        let path = format!("{}/{}", Layout::SMALL, Layout::file(number));
        self.session.walk_from(&self.root, &path)
    }
}

fn owner(place: usize) -> String {
    format!("process {place}")
}

/// A call, and the beginning of its reply up to what is another each time.
fn template(reply: &Reply) -> Template {
    let expect = Expectation::like(&reply.bytes, SEQUENCED_AT);
    Template { bytes: reply.call.clone(), expect, units: 1, ..Template::default() }
}

/// The same, with places of the reply that stay as they are: where, and how many bytes.
fn steady(reply: &Reply, places: &[(usize, usize)]) -> Template {
    let mut template = template(reply);
    for (at, length) in places {
        template.expect.samples.extend(words(&reply.bytes[..at + length], *at));
    }
    template
}

/// What stands from a place to the end, eight bytes each; what is left over is its last eight.
fn words(bytes: &[u8], from: usize) -> Vec<(usize, [u8; 8])> {
    let last = bytes.len().saturating_sub(8);
    let places = (from..=last).step_by(8).chain([last]);
    places.filter_map(|at| bytes[at..].first_chunk().map(|word| (at, *word))).collect()
}

/// Where a stateid stands.
fn find(bytes: &[u8], stateid: &Stateid4) -> Option<usize> {
    let mut wanted = stateid.seqid.to_be_bytes().to_vec();
    wanted.extend_from_slice(&stateid.other);
    bytes.windows(STATEID_BYTES).position(|found| found == wanted)
}

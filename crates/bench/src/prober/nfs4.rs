//! Calls of NFS version 4.1.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use comity_proto::nfs4::{
    Access4res, Close4args, Component4, Createhow4, Fattr4, NfsFh4, Openflag4, Read4args,
    Read4resok, StableHow4, Stateid4, Write4resok, operation as op, share,
};
use comity_remote::nfs4::{
    Compound, ListingPage, OBJECT, Opening, Reply, Session, Wire, WriteHead, made, metadata,
    page_of,
};
use comity_remote::rpc::RESULTS_AT;
use comity_xdr::Opaque;

use super::{Pages, SERIAL_NAME, serial_place};
use crate::call_templates::{CallTemplates, Expectation, Order, Template};
use crate::fixture_tree::{self, FixtureTree, LARGE_BYTES, SMALL_FILES, WRITTEN_FILES};
use crate::operation::{InSession, Operation, Stable};

/// Offset of the results of SEQUENCE in a reply, after its number and status.
const SEQUENCED_AT: usize = RESULTS_AT + 20;
/// Offset of the results after SEQUENCE: first those of PUTFH, then those of the operation itself.
pub(super) const REST_AT: usize = SEQUENCED_AT + 36;
/// Bytes of the number and the status of an operation.
pub(super) const STATUS_BYTES: usize = 8;
/// Bytes of the mask of attributes, and of the length of their values.
const MASK_BYTES: usize = 16;
/// Offset of SIZE among the values, after TYPE and CHANGE.
const SIZE_AT: usize = 12;
/// All rights (RFC 8881, 18.1).
const ACCESS_ALL: u32 = 0x3f;
/// The owner of the files that a load holds open, and of those that it makes.
const OWNERS: [&[u8]; 2] = [b"load", b"load: made"];
/// An open for reading and writing that wants no delegation.
pub(super) const PLAIN: u32 = share::BOTH | share::WANT_NO_DELEG;

/// Makes each kind of call once, decodes its reply in full and compares it with the files on the
/// disk. Replies under load must have the same form. The calls resemble those of a kernel's client.
#[derive(Debug)]
pub struct Prober<'a, W: Wire> {
    /// The session in which the prober calls.
    pub session: &'a mut Session<W>,
    /// The handle of the root of the tree.
    pub root: Vec<u8>,
    /// The byte that is locked in each file: a different one for each server, as servers see each
    /// other's locks in shared files.
    pub locked: u64,
}

impl<W: Wire> Prober<'_, W> {
    /// The calls for an operation, to be made in sessions of the client that nobody has used. The
    /// state that they name is there as long as the prober's session.
    ///
    /// # Errors
    /// A call fails, or its results are wrong.
    pub fn script(&mut self, operation: Operation, pages: &Pages) -> Result<CallTemplates> {
        let mut script = CallTemplates::default();
        script.templates = match operation {
            Operation::Null => return self.nothing(),
            Operation::Getattr | Operation::InSession(InSession::Getattr) => {
                self.each_small(Self::getattr)?
            }
            Operation::Lookup => self.lookups()?,
            Operation::Access => self.each_small(Self::access)?,
            Operation::Read(bytes) | Operation::InSession(InSession::Read(bytes)) => {
                self.reads(bytes)?
            }
            Operation::Write(bytes, stable) => {
                script.payload = fixture_tree::content(0, bytes as usize).into();
                self.writes(stable, &Arc::clone(&script.payload))?
            }
            Operation::Create => {
                let template = self.create(&pages.created)?;
                script.serial_at = Some(serial_place(&template.bytes)?);
                vec![template]
            }
            Operation::Readdirplus => self.listings(&pages.listed)?,
            Operation::InSession(held) => {
                script.order = Order::Own(2);
                self.held(held)?
            }
        };
        Ok(self.sequenced(script))
    }

    fn sequenced(&self, script: CallTemplates) -> CallTemplates {
        let sequence_at = Some(self.session.sequence_at());
        CallTemplates { sequence_at, sequenced_at: Some(SEQUENCED_AT), ..script }
    }

    /// REMOVE of the files that the calls of [`Operation::Create`] have made in a directory, by
    /// their serial numbers from 0 on.
    ///
    /// # Errors
    /// A call fails.
    pub fn removes(&mut self, directory: &str) -> Result<CallTemplates> {
        let dir = self.session.walk(&self.root, directory)?;
        let name: Component4<'_> = Opaque(SERIAL_NAME);
        let (template, _) = self.like(&Compound::on(&dir).with(op::REMOVE, &name), &[])?;
        let serial_at = Some(serial_place(&template.bytes)?);
        let templates = vec![template];
        Ok(self.sequenced(CallTemplates { templates, serial_at, ..CallTemplates::default() }))
    }

    fn nothing(&mut self) -> Result<CallTemplates> {
        let (bytes, reply) = self.session.nothing()?;
        let expect = Expectation::like(&reply, reply.len());
        Ok(CallTemplates {
            templates: vec![Template { bytes, expect, units: 1, ..Template::default() }],
            ..CallTemplates::default()
        })
    }

    fn each_small(
        &mut self,
        template: fn(&mut Self, &[u8]) -> Result<Template>,
    ) -> Result<Vec<Template>> {
        let dir = self.session.walk(&self.root, FixtureTree::SMALL)?;
        let mut templates = Vec::new();
        for number in 0..SMALL_FILES {
            let file = self.session.walk(&dir, &FixtureTree::file(number))?;
            templates.push(template(self, &file)?);
        }
        Ok(templates)
    }

    fn getattr(&mut self, handle: &[u8]) -> Result<Template> {
        let compound = Compound::on(handle).with(op::GETATTR, &OBJECT);
        let (mut template, reply) = self.like(&compound, &[])?;
        let found: Fattr4<'_> = reply.on_object()?.next(op::GETATTR)?;
        metadata(&found).context("GETATTR")?;
        let values = REST_AT + 2 * STATUS_BYTES + MASK_BYTES;
        template.expect.samples.extend(sample(&reply.bytes, values + SIZE_AT));
        Ok(template)
    }

    fn lookups(&mut self) -> Result<Vec<Template>> {
        let dir = self.session.walk(&self.root, FixtureTree::SMALL)?;
        (0..SMALL_FILES).map(|number| self.lookup(&dir, &FixtureTree::file(number))).collect()
    }

    fn lookup(&mut self, dir: &[u8], name: &str) -> Result<Template> {
        let name: Component4<'_> = Opaque(name.as_bytes());
        let compound = Compound::on(dir).with(op::LOOKUP, &name).then(op::GETFH);
        let (mut template, reply) = self.like(&compound.with(op::GETATTR, &OBJECT), &[])?;
        let mut results = reply.on_object()?;
        results.next::<()>(op::LOOKUP)?;
        let handle = results.next::<NfsFh4<'_>>(op::GETFH)?.0.len();
        // The end of the handle tells one file from another.
        let end = REST_AT + 3 * STATUS_BYTES + 4 + handle;
        template.expect.samples.extend(sample(&reply.bytes, end - STATUS_BYTES.min(handle)));
        Ok(template)
    }

    fn access(&mut self, handle: &[u8]) -> Result<Template> {
        let compound = Compound::on(handle).with(op::ACCESS, &ACCESS_ALL);
        let (mut template, reply) = self.like(&compound.with(op::GETATTR, &OBJECT), &[])?;
        let granted: Access4res = reply.on_object()?.next(op::ACCESS)?;
        ensure!(granted.access & 1 == 1, "ACCESS: no right to read");
        template.expect.samples.extend(sample(&reply.bytes, REST_AT + 2 * STATUS_BYTES));
        Ok(template)
    }

    fn reads(&mut self, bytes: u32) -> Result<Vec<Template>> {
        let (file, stateid) =
            self.open(&FixtureTree::read_file(), share::READ | share::WANT_NO_DELEG)?;
        let offsets = (0..LARGE_BYTES).step_by(bytes as usize);
        offsets.map(|offset| self.read(&file, stateid, (offset, bytes))).collect()
    }

    fn read(
        &mut self,
        file: &[u8],
        stateid: Stateid4,
        (offset, count): (u64, u32),
    ) -> Result<Template> {
        let arguments = Read4args { stateid, offset, count };
        let (mut template, reply) =
            self.like(&Compound::on(file).with(op::READ, &arguments), &[])?;
        let read: Read4resok<'_> = reply.on_object()?.next(op::READ)?;
        let wanted = fixture_tree::content(offset, count as usize);
        ensure!(read.data.0 == wanted, "READ at {offset}: wrong data, or not all of it");
        let data = reply.bytes.len() - wanted.len();
        for at in [0, wanted.len() / 2, wanted.len() - 8] {
            template.expect.samples.extend(sample(&reply.bytes, data + at));
        }
        Ok(template)
    }

    fn writes(&mut self, stable: Stable, payload: &[u8]) -> Result<Vec<Template>> {
        let stable = stable_how(stable);
        let mut files = Vec::new();
        for number in 0..WRITTEN_FILES {
            files.push(self.open(&FixtureTree::written_file(number), PLAIN)?);
        }
        let head = |file: &(Vec<u8>, Stateid4), offset| {
            let head = WriteHead { stateid: file.1, offset, stable, length: payload.len() };
            Compound::on(&file.0).with(op::WRITE, &head)
        };
        let expect = self.write(&head(&files[0], 0), stable, payload)?;
        let mut templates = Vec::new();
        for offset in (0..LARGE_BYTES).step_by(payload.len()) {
            for file in &files {
                let bytes = self.session.record(&head(file, offset), payload.len());
                templates.push(Template {
                    bytes,
                    expect: expect.clone(),
                    units: 1,
                    ..Template::default()
                });
            }
        }
        Ok(templates)
    }

    fn write(
        &mut self,
        compound: &Compound,
        stable: StableHow4,
        payload: &[u8],
    ) -> Result<Expectation> {
        let (template, reply) = self.like(compound, payload)?;
        let written: Write4resok = reply.on_object()?.next(op::WRITE)?;
        ensure!(written.count as usize == payload.len(), "WRITE of {} bytes only", written.count);
        let promised = written.committed as u32 >= stable as u32;
        ensure!(promised, "WRITE is {:?}", written.committed);
        Ok(template.expect)
    }

    /// Encodes OPEN that creates a file, and CLOSE, in one COMPOUND.
    fn create(&mut self, directory: &str) -> Result<Template> {
        let dir = self.session.walk(&self.root, directory)?;
        let attributes = made(0o644, None);
        let how = Openflag4::Create(Createhow4::Unchecked(attributes.fattr()));
        let name = str::from_utf8(SERIAL_NAME)?;
        let opening = Opening { dir: &dir, name, owner: OWNERS[1], how, access: PLAIN };
        let close = Close4args { seqid: 0, open_stateid: Stateid4::CURRENT };
        let compound = self.session.opening(&opening).with(op::CLOSE, &close);
        let (template, _) = self.like(&compound, &[])?;
        Ok(template)
    }

    fn listings(&mut self, directories: &[String]) -> Result<Vec<Template>> {
        let mut templates = Vec::new();
        for directory in directories {
            let dir = self.session.walk(&self.root, directory)?;
            let mut place = (0, [0; 8]);
            loop {
                let (mut template, reply) = self.like(&page_of(&dir, place, true), &[])?;
                let page: ListingPage = reply.on_object()?.next(op::READDIR)?;
                ensure!(page.eof || page.cookie != place.0, "a page without entries");
                template.units = page.entries.len() as u32;
                templates.push(template);
                if page.eof {
                    break;
                }
                place = (page.cookie, page.verifier);
            }
        }
        Ok(templates)
    }

    /// Opens a file for as long as the session lasts.
    fn open(&mut self, path: &str, access: u32) -> Result<(Vec<u8>, Stateid4)> {
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        let dir = self.session.walk(&self.root, dir)?;
        let (owner, how) = (OWNERS[0], Openflag4::NoCreate);
        let opened = self.session.open(&Opening { dir: &dir, name, owner, how, access })?;
        // A seqid of 0 means the newest version of the state (RFC 8881, 8.2.2).
        Ok((opened.handle, Stateid4 { seqid: 0, ..opened.stateid }))
    }

    /// Makes a call and takes its reply for a model, up to where the results of SEQUENCE begin and
    /// further on numbers and statuses.
    pub(super) fn like(&mut self, compound: &Compound, data: &[u8]) -> Result<(Template, Reply)> {
        let mut reply = self.session.perform_with(compound, data)?;
        let mut expect = Expectation::like(&reply.bytes, SEQUENCED_AT);
        for at in [REST_AT, REST_AT + STATUS_BYTES] {
            expect.samples.extend(sample(&reply.bytes, at));
        }
        let bytes = std::mem::take(&mut reply.call);
        Ok((Template { bytes, expect, units: 1, ..Template::default() }, reply))
    }
}

fn sample(reply: &[u8], at: usize) -> Option<(usize, [u8; 8])> {
    reply.get(at..)?.first_chunk().map(|bytes| (at, *bytes))
}

const fn stable_how(stable: Stable) -> StableHow4 {
    match stable {
        Stable::Unstable => StableHow4::Unstable,
        Stable::FileSync => StableHow4::FileSync,
    }
}

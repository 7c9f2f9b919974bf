//! Calls of NFS version 3.

use anyhow::{Result, bail, ensure};
use comity_proto::nfs3::{
    Access3args, Access3res, Access3resok, Create3args, Create3res, Createhow3, Diropargs3, Fattr3,
    Getattr3res, Lookup3res, Read3args, Read3res, Remove3res, Result3, Sattr3, StableHow,
    Write3res, procedure,
};
use comity_remote::nfs3::{fh, filename, list};
use comity_remote::rpc::{Caller, RESULTS_AT, results};
use comity_xdr::Encode;

use super::{Pages, SERIAL_NAME, serial_place};
use crate::call_templates::{CallTemplates, Expectation, Template};
use crate::fixture_tree::{self, FixtureTree, LARGE_BYTES, SMALL_FILES, WRITTEN_FILES};
use crate::operation::{Operation, Stable};

/// Offset of the end of the status in a reply.
const STATUS_END: usize = RESULTS_AT + 4;
/// Bytes of attributes that do not change: those before the times.
const STEADY_BYTES: usize = Fattr3::BYTES - 24;
/// All rights (RFC 1813, 3.3.4).
const ACCESS_ALL: u32 = 0x3f;

/// Makes each kind of call once, decodes its reply in full and compares it with the files on the
/// disk. Replies under load must have the same form.
#[derive(Debug)]
pub struct Prober<'a> {
    /// The connection.
    pub caller: &'a mut Caller,
    /// The handle of the root of the tree.
    pub root: Vec<u8>,
}

impl Prober<'_> {
    /// The calls for an operation.
    ///
    /// # Errors
    /// A call fails, or its results are wrong.
    pub fn script(&mut self, operation: Operation, pages: &Pages) -> Result<CallTemplates> {
        let mut script = CallTemplates::default();
        script.templates = match operation {
            Operation::Null => vec![self.template(procedure::NULL, &(), RESULTS_AT)?.0],
            Operation::Getattr => self.getattrs()?,
            Operation::Lookup => self.lookups()?,
            Operation::Access => self.accesses()?,
            Operation::Read(bytes) => self.reads(bytes)?,
            Operation::Write(bytes, stable) => {
                script.payload = fixture_tree::content(0, bytes as usize).into();
                self.writes(stable, &script.payload)?
            }
            Operation::Create => {
                let template = self.create(&pages.created)?;
                script.serial_at = Some(serial_place(&template.bytes)?);
                vec![template]
            }
            Operation::Readdirplus => self.listings(&pages.listed)?,
            Operation::InSession(_) => bail!("{operation} is none of version 3"),
        };
        Ok(script)
    }

    /// REMOVE of the files that the calls of [`Operation::Create`] have made in a directory, by
    /// their serial numbers from 0 on.
    ///
    /// # Errors
    /// A call fails.
    pub fn removes(&mut self, directory: &str) -> Result<CallTemplates> {
        let dir = self.caller.walk(&self.root, directory)?;
        let place = Diropargs3 { dir: fh(&dir), name: filename(SERIAL_NAME) };
        let (template, reply) = self.template(procedure::REMOVE, &place, STATUS_END)?;
        success(results::<Remove3res>(&reply)?, "REMOVE")?;
        let serial_at = Some(serial_place(&template.bytes)?);
        Ok(CallTemplates { templates: vec![template], serial_at, ..CallTemplates::default() })
    }

    /// GETATTR of every file with one of these handles.
    ///
    /// # Errors
    /// A call fails.
    pub fn getattrs_of(&mut self, handles: &[Vec<u8>]) -> Result<Vec<Template>> {
        handles.iter().map(|handle| self.getattr(handle)).collect()
    }

    fn getattrs(&mut self) -> Result<Vec<Template>> {
        let handles = self.small_handles()?;
        self.getattrs_of(&handles)
    }

    fn getattr(&mut self, handle: &[u8]) -> Result<Template> {
        let head = STATUS_END + STEADY_BYTES;
        let (template, reply) = self.template(procedure::GETATTR, &fh(handle), head)?;
        success::<Fattr3, ()>(results::<Getattr3res>(&reply)?, "GETATTR")?;
        Ok(template)
    }

    fn lookups(&mut self) -> Result<Vec<Template>> {
        let dir = self.caller.walk(&self.root, FixtureTree::SMALL)?;
        (0..SMALL_FILES).map(|number| self.lookup(&dir, &FixtureTree::file(number))).collect()
    }

    fn lookup(&mut self, dir: &[u8], name: &str) -> Result<Template> {
        let place = Diropargs3 { dir: fh(dir), name: filename(name.as_bytes()) };
        let (mut template, reply) = self.template(procedure::LOOKUP, &place, STATUS_END)?;
        let found = success(results::<Lookup3res<'_>>(&reply)?, "LOOKUP")?;
        let handle = 4 + found.object.0.len().next_multiple_of(4);
        template.expect = Expectation::like(&reply, STATUS_END + handle);
        Ok(template)
    }

    fn accesses(&mut self) -> Result<Vec<Template>> {
        let handles = self.small_handles()?;
        handles.iter().map(|handle| self.access(handle)).collect()
    }

    fn access(&mut self, handle: &[u8]) -> Result<Template> {
        let arguments = Access3args { object: fh(handle), access: ACCESS_ALL };
        let (mut template, reply) = self.template(procedure::ACCESS, &arguments, STATUS_END)?;
        let granted: Access3resok = success(results::<Access3res>(&reply)?, "ACCESS")?;
        ensure!(granted.access & 1 == 1, "ACCESS: no right to read");
        template.expect.samples.extend(last_word_pair(&reply));
        Ok(template)
    }

    fn reads(&mut self, bytes: u32) -> Result<Vec<Template>> {
        let file = self.caller.walk(&self.root, &FixtureTree::read_file())?;
        let offsets = (0..LARGE_BYTES).step_by(bytes as usize);
        offsets.map(|offset| self.read(&file, offset, bytes)).collect()
    }

    fn read(&mut self, file: &[u8], offset: u64, count: u32) -> Result<Template> {
        let arguments = Read3args { file: fh(file), offset, count };
        let (mut template, reply) = self.template(procedure::READ, &arguments, STATUS_END)?;
        let read = success(results::<Read3res<'_>>(&reply)?, "READ")?;
        let wanted = fixture_tree::content(offset, count as usize);
        ensure!(read.data.0 == wanted, "READ at {offset}: wrong data");
        let data = reply.len() - wanted.len();
        for at in [0, wanted.len() / 2, wanted.len() - 8] {
            template.expect.samples.extend(wanted[at..].first_chunk().map(|w| (data + at, *w)));
        }
        Ok(template)
    }

    fn writes(&mut self, stable: Stable, payload: &[u8]) -> Result<Vec<Template>> {
        let mut files = Vec::new();
        for number in 0..WRITTEN_FILES {
            files.push(self.caller.walk(&self.root, &FixtureTree::written_file(number))?);
        }
        let mut templates = Vec::new();
        let like = self.write(&files[0], 0, stable, payload)?;
        for offset in (0..LARGE_BYTES).step_by(payload.len()) {
            for file in &files {
                let bytes = self.write_call(file, offset, stable, payload.len());
                templates.push(Template { bytes, ..like.clone() });
            }
        }
        Ok(templates)
    }

    fn write(&mut self, file: &[u8], at: u64, stable: Stable, payload: &[u8]) -> Result<Template> {
        let bytes = self.write_call(file, at, stable, payload.len());
        let reply = self.caller.exchange(&[&bytes, payload])?;
        let written = success(results::<Write3res>(&reply)?, "WRITE")?;
        ensure!(written.count as usize == payload.len(), "WRITE of {} bytes only", written.count);
        ensure!(
            written.committed as u32 >= stable_how(stable) as u32,
            "WRITE is {:?}",
            written.committed
        );
        Ok(Template {
            bytes,
            expect: Expectation::like(&reply, STATUS_END),
            units: 1,
            ..Template::default()
        })
    }

    /// Encodes a WRITE up to its data.
    fn write_call(&self, file: &[u8], offset: u64, stable: Stable, length: usize) -> Vec<u8> {
        let count = length as u32;
        let words = [(offset >> 32) as u32, offset as u32, count, stable_how(stable) as u32, count];
        self.caller.call_before(procedure::WRITE, &Words(fh(file), words), length)
    }

    fn create(&mut self, directory: &str) -> Result<Template> {
        let dir = self.caller.walk(&self.root, directory)?;
        let attributes = Sattr3 { mode: Some(0o644), ..Sattr3::default() };
        let name = SERIAL_NAME;
        let place = Diropargs3 { dir: fh(&dir), name: filename(name) };
        let arguments = Create3args { place, how: Createhow3::Unchecked(attributes) };
        let (template, reply) = self.template(procedure::CREATE, &arguments, STATUS_END)?;
        let created = success(results::<Create3res<'_>>(&reply)?, "CREATE")?;
        ensure!(created.obj.is_some(), "CREATE without a handle");
        Ok(template)
    }

    fn listings(&mut self, directories: &[String]) -> Result<Vec<Template>> {
        let mut templates = Vec::new();
        for directory in directories {
            let dir = self.caller.walk(&self.root, directory)?;
            for page in list(self.caller, &dir)? {
                let expect = Expectation::like(&page.reply, STATUS_END);
                let units = page.entries.len() as u32;
                templates.push(Template { bytes: page.call, expect, units, ..Template::default() });
            }
        }
        Ok(templates)
    }

    fn small_handles(&mut self) -> Result<Vec<Vec<u8>>> {
        let dir = self.caller.walk(&self.root, FixtureTree::SMALL)?;
        (0..SMALL_FILES)
            .map(|number| self.caller.lookup(&dir, &FixtureTree::file(number)))
            .collect()
    }

    /// Makes a call, and takes the bytes of its reply up to `head_end` as the expectation.
    fn template(
        &mut self,
        procedure: u32,
        arguments: &impl Encode,
        head_end: usize,
    ) -> Result<(Template, Vec<u8>)> {
        let (bytes, reply) = self.caller.nfs(procedure, arguments)?;
        ensure!(reply.len() >= head_end, "a reply of {} bytes", reply.len());
        let expect = Expectation::like(&reply, head_end);
        Ok((Template { bytes, expect, units: 1, ..Template::default() }, reply))
    }
}

/// A handle and the words of WRITE after it, its data left out.
struct Words<'a>(comity_proto::nfs3::NfsFh3<'a>, [u32; 5]);

impl Encode for Words<'_> {
    fn encode(&self, encoder: &mut comity_xdr::Encoder) {
        encoder.value(&self.0);
        self.1.iter().for_each(|word| encoder.value(word));
    }
}

fn success<T, F>(result: Result3<T, F>, what: &str) -> Result<T> {
    match result {
        Result3::Ok(value) => Ok(value),
        Result3::Fail(status, _) => bail!("{what} is answered {status:?}"),
    }
}

const fn stable_how(stable: Stable) -> StableHow {
    match stable {
        Stable::Unstable => StableHow::Unstable,
        Stable::FileSync => StableHow::FileSync,
    }
}

/// The granted rights stand in the last word; the word before belongs to a time that does not move.
fn last_word_pair(reply: &[u8]) -> Option<(usize, [u8; 8])> {
    reply.last_chunk::<8>().map(|pair| (reply.len() - 8, *pair))
}

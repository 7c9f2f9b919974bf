//! Opening and creating regular files, both by OPEN (RFC 8881, 18.16).

use std::time::Duration;

use comity_proto::nfs4::{
    Access4res, Createhow4, Creatverfattr, NfsFh4, Nfsstat4, Open4resok, OpenClaim4, Openflag4,
    operation as op,
};
use comity_vfs::{
    Access, Attr, Change, Changed, Create, Cred, DelegationKind, DelegationNumber, DirectoryNotice,
    Disk, FileType, Handle, HeldLock, LockOutcome, LockRequest, Made, Name, Node, OpenAccess,
    OpenEvent, OpenFiles, OpenId, OpenedFile, Result, SetAttr, Status,
};

use super::attributes::{AttributeValues, OBJECT};
use super::names::{component, finish_made};
use super::remote4::Remote4;
use crate::compound::{
    CompoundReply, CompoundRequest, OpFailure, OpResults, OpenArguments, share_bits,
};
use crate::machine::StateEvent;
use crate::server_handle::ServerHandle;
use crate::session::{OpenAnswer, OpenTask, SessionAnswer, SessionRequest, TaskClaim};

/// The place of a file: its directory and its name there.
type NamePlace<'a> = (&'a Handle, Name<'a>);

impl Remote4 {
    /// Creates a regular file. It stays open for a while, because its maker usually writes it next.
    pub(super) fn create(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        how: &Create<Disk>,
    ) -> Result<Made<Disk>> {
        let task = self.task(cred, None, OpenAccess::Both, TaskClaim::Use);
        match (self.open_at(cred, (dir, name), task, Some(how)), how) {
            (Ok((made, _)), _) => Ok(made),
            // An unchecked create of an existing file succeeds even if the caller may not open it.
            (Err(Status::Acces), Create::Unchecked(set)) => self.take(cred, (dir, name), set),
            (Err(status), _) => Err(status),
        }
    }

    /// Completes an unchecked create of an existing file, without opening it.
    fn take(
        &self,
        cred: &Cred<Disk>,
        place: NamePlace<'_>,
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        let found = self.lookup(cred, place.0, place.1).map_err(|_| Status::Acces)?;
        if found.node.attr.file_type != FileType::Regular {
            return Err(Status::Acces);
        }
        let mut node = found.node;
        if let Some(size) = set.size {
            let set = SetAttr { size: Some(size), ..SetAttr::default() };
            let change = self.setattr(cred, &node.handle, &set, None)?;
            node.attr = change.after.unwrap_or(node.attr);
        }
        Ok(Changed { value: node, change: Change { before: found.dir, after: found.dir } })
    }

    fn task(
        &self,
        cred: &Cred<Disk>,
        file: Option<ServerHandle>,
        access: OpenAccess,
        claim: TaskClaim,
    ) -> OpenTask {
        OpenTask::of_caller(self.callers.of(cred), file, access, claim)
    }

    /// Opens a file by name, and creates it if `create` is set.
    fn open_at(
        &self,
        cred: &Cred<Disk>,
        (dir, name): NamePlace<'_>,
        task: OpenTask,
        create: Option<&Create<Disk>>,
    ) -> Result<(Made<Disk>, Option<OpenAnswer>)> {
        let set = match create {
            Some(Create::Unchecked(set) | Create::Guarded(set)) => *set,
            Some(Create::Exclusive(_)) | None => SetAttr::default(),
        };
        let values = AttributeValues::to_set(&set, &self.owners);
        let attrs = values.fattr();
        let how = match create {
            None => Openflag4::NoCreate,
            Some(Create::Unchecked(_)) => Openflag4::Create(Createhow4::Unchecked(attrs)),
            Some(Create::Guarded(_)) => Openflag4::Create(Createhow4::Guarded(attrs)),
            Some(Create::Exclusive(verf)) => {
                let both = Creatverfattr { verf: *verf, attrs };
                Openflag4::Create(Createhow4::Exclusive41(both))
            }
        };
        let arguments = self.open_arguments(&task, how, OpenClaim4::Null(component(name)));
        let call = self.call(cred, dir)?.bare(op::SAVEFH).op(op::GETATTR, &OBJECT);
        let request = finish_made(call.op(op::OPEN, &arguments).once()).finish();
        let (reply, answer) = self.open_by(task, request)?;
        let mut results = reply.as_ref().ok_or(Status::ServerFault)?.results();
        results.status(op::PUTFH)?;
        results.status(op::SAVEFH)?;
        let before = self.attr(&mut results)?;
        let opened: Open4resok<'_> = results.next(op::OPEN)?;
        let made = self.made(cred, &mut results, (before, opened.cinfo))?;
        if let Some(size) = set.size {
            self.unstable.cut(&made.value.handle, (size, u64::MAX));
        }
        Ok((made, answer))
    }

    fn open_arguments<'a>(
        &self,
        task: &OpenTask,
        how: Openflag4<'a>,
        claim: OpenClaim4<'a>,
    ) -> OpenArguments<'a> {
        let wants_delegation = self.wants_delegations;
        let access = share_bits(task.access);
        OpenArguments { owner: task.owner.id, access, wants_delegation, how, claim }
    }

    fn open_by(
        &self,
        task: OpenTask,
        request: CompoundRequest,
    ) -> Result<(Option<CompoundReply>, Option<OpenAnswer>)> {
        let bytes = request.record.len();
        match self.ask(bytes, SessionRequest::Open(task, request))? {
            SessionAnswer::Reply(reply) => Ok((Some(reply), None)),
            SessionAnswer::Opened(mut answer) => Ok((answer.reply.take(), Some(answer))),
            _ => Err(Status::ServerFault),
        }
    }

    /// Reads the results of ACCESS and GETATTR that follow an OPEN by handle, and, if the file was
    /// opened as a name, those that show what has this name.
    fn behind_open(&self, reply: &CompoundReply, is_named: bool) -> Result<BehindOpen> {
        let mut results = reply.results();
        results.status(op::PUTFH)?;
        results.next::<Open4resok<'_>>(op::OPEN)?;
        let rights: Access4res = results.next(op::ACCESS)?;
        let rights = Access::from_bits(rights.access);
        let attr = self.attr(&mut results).ok();
        let named = if is_named { named(&mut results)? } else { None };
        Ok(BehindOpen { rights, attr, named })
    }

    /// Makes the result of an open. Under a write delegation the client answers CB_GETATTR, so the
    /// machine notes the size and change that the server sent.
    fn opened(&self, handle: Handle, attr: Option<Attr<Disk>>, answer: &OpenAnswer) -> OpenedFile {
        if let (Some(DelegationKind::Write), Some(attr)) = (answer.delegation, attr)
            && let Ok(file) = self.file(&handle)
        {
            self.engine.with(|machine, _| machine.note_known(&file, attr.size, attr.change));
        }
        OpenedFile { open: OpenId(answer.open), handle, attr, delegation: answer.delegation }
    }
}

/// The results that follow an OPEN by handle.
struct BehindOpen {
    /// The caller's rights.
    rights: Access,
    attr: Option<Attr<Disk>>,
    /// The object of the name as which the file was opened.
    named: Option<ServerHandle>,
}

/// Reads the results of PUTFH, LOOKUP and GETFH; returns `None` if they do not show what has the
/// name: the caller may lack the right to look names up there, and the file is open nevertheless.
///
/// # Errors
/// [`Status::Stale`] if nothing has the name any more, or its directory is gone.
fn named(results: &mut OpResults<'_>) -> Result<Option<ServerHandle>> {
    let looked = results.status(op::PUTFH).and_then(|()| results.status(op::LOOKUP));
    let handle = looked.and_then(|()| results.next::<NfsFh4<'_>>(op::GETFH));
    match handle {
        Ok(handle) => Ok(ServerHandle::new(handle.0)),
        Err(OpFailure::Status(Nfsstat4::NoEnt | Nfsstat4::Stale)) => Err(Status::Stale),
        Err(_) => Ok(None),
    }
}

impl OpenFiles for Remote4 {
    fn open(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        place: Option<NamePlace<'_>>,
        access: OpenAccess,
    ) -> Result<OpenedFile> {
        let file = self.file(node)?;
        let task = self.task(cred, Some(file), access, TaskClaim::Caller);
        let arguments = self.open_arguments(&task, Openflag4::NoCreate, OpenClaim4::Fh);
        let caller = self.callers.using(cred, node);
        let call = self.call_on(&caller, &file).op(op::OPEN, &arguments).once();
        let mut call = call.op(op::ACCESS, &Access::READ.bits()).op(op::GETATTR, &OBJECT);
        if let Some((dir, name)) = place {
            call = call.on(&self.file(dir)?).op(op::LOOKUP, &component(name)).bare(op::GETFH);
        }
        let (reply, answer) = self.open_by(task, call.finish())?;
        let behind = reply.map(|reply| self.behind_open(&reply, place.is_some())).transpose();
        let answer = match answer {
            Some(answer) => answer,
            None => return behind.and(Err(Status::ServerFault)),
        };
        match behind {
            // A server lets a caller open a file for reading that it may only execute. This open is
            // not for execution, so it is refused.
            Ok(Some(seen)) if access.reads() && !seen.rights.contains(Access::READ) => {
                self.close(OpenId(answer.open)).and(Err(Status::Acces))
            }
            Ok(Some(seen)) if seen.named.is_some_and(|named| named != file) => {
                self.close(OpenId(answer.open)).and(Err(Status::Stale))
            }
            Ok(behind) => Ok(self.opened(*node, behind.and_then(|seen| seen.attr), &answer)),
            Err(status) => self.close(OpenId(answer.open)).and(Err(status)),
        }
    }

    fn open_name(
        &self,
        cred: &Cred<Disk>,
        place: (&Handle, Name<'_>),
        access: OpenAccess,
        create: Option<&Create<Disk>>,
    ) -> Result<Changed<OpenedFile, Disk>> {
        let task = self.task(cred, None, access, TaskClaim::Caller);
        let (made, answer) = self.open_at(cred, place, task, create)?;
        let answer = answer.ok_or(Status::ServerFault)?;
        let Node { handle, attr } = made.value;
        let value = self.opened(handle, Some(attr), &answer);
        Ok(Changed { value, change: made.change })
    }

    fn leave(&self) {
        // A thread that is interrupted here ends the mount without the server.
        let _ = self.engine.perform_to_the_end(SessionRequest::Leave, &|| Box::new(|_| None));
    }

    fn close(&self, open: OpenId) -> Result<()> {
        self.ask(0, SessionRequest::Close(open.0)).map(drop)
    }

    fn delegation(&self, node: &Handle) -> Option<DelegationKind> {
        let file = self.file(node).ok()?;
        self.engine.with(|machine, now| machine.delegation(now, &file))
    }

    fn file_grant(&self, node: &Handle) -> Option<DelegationNumber> {
        let file = self.file(node).ok()?;
        self.engine.with(|machine, now| machine.file_grant(now, &file))
    }

    fn return_delegation(&self, node: &Handle) -> Result<()> {
        self.ask(0, SessionRequest::Return(self.file(node)?)).map(drop)
    }

    fn directory_grant(&self, dir: &Handle) -> Option<DelegationNumber> {
        self.directory_grant(dir)
    }

    fn delegate_directory(&self, dir: &Handle) -> Result<(Attr<Disk>, Option<DelegationNumber>)> {
        self.delegate_directory(dir)
    }

    fn poll_notice(&self) -> Option<DirectoryNotice> {
        self.next_notice()
    }

    fn note_unwritten(&self, node: &Handle, size: Option<u64>) {
        if let Ok(file) = self.file(node) {
            self.engine.with(|machine, _| machine.note_unwritten(&file, size));
        }
    }

    fn lock(&self, wanted: &LockRequest) -> Result<LockOutcome> {
        match self.ask(0, SessionRequest::Lock(*wanted))? {
            SessionAnswer::Lock(outcome) => Ok(outcome),
            _ => Err(Status::ServerFault),
        }
    }

    fn find_lock(&self, wanted: &LockRequest) -> Result<Option<HeldLock>> {
        match self.ask(0, SessionRequest::FindLock(*wanted))? {
            SessionAnswer::HeldLock(held) => Ok(held),
            _ => Err(Status::ServerFault),
        }
    }

    fn poll_event(&self, patience: Duration) -> Option<OpenEvent> {
        let event = self.engine.poll_event(patience)?;
        let node = |file: ServerHandle| self.handles.handle(file.bytes()).ok();
        Some(match event {
            StateEvent::Recalled { file, is_truncated } => {
                OpenEvent::Recalled { node: node(file)?, is_truncated }
            }
            StateEvent::DelegationLost(file) => OpenEvent::DelegationLost { node: node(file)? },
            StateEvent::StateLost(file) => OpenEvent::StateLost { node: node(file)? },
        })
    }
}

//! The state that operations of a COMPOUND use: clients, stateids, locks and delegations.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use comity_coherence::{
    Asker, ChangesDirectories, Checked, DirectoryClearance, WaitForClients, check_io,
};
use comity_export::{Node, View};
use comity_proto::nfs4::{Nfsstat4, Stateid4};
use comity_state::{
    At, ByteRange, Client, ClientId, ConnectionId, DelegationKind, Engine, FileKey, Io, Lock,
    LockRefusal, LockType, Sender, Special, Stateid, Taken,
};
use comity_vfs::DirectoryHold;

use super::Compound;
use crate::limits::DIGEST_BYTES;
use crate::sequencing::Sequencing;
use crate::state_context::on_wire;
use crate::stop::{Stop, refused};

impl Compound<'_> {
    /// Returns the engine, which has the state of all clients.
    pub(crate) fn engine(&self) -> &Engine {
        &self.nfs.memory().engine
    }

    /// Returns the time at which the COMPOUND began.
    pub(crate) const fn now(&self) -> Duration {
        self.now
    }

    /// Returns the sender of the present operation, with the client of its session if there is one.
    pub(crate) fn sender(&self) -> Sender<'_> {
        Sender { now: self.now(), client: self.client(), caller: self.caller }
    }

    /// Returns the sender of the present operation, and the file of the current filehandle.
    pub(crate) fn at<'k>(&'k self, file: &'k FileKey) -> At<'k> {
        (self.sender(), file)
    }

    /// Returns the client of the session; none in 4.0.
    pub(crate) fn client(&self) -> Option<&Arc<Client>> {
        match &self.sequencing {
            Sequencing::Unsequenced => None,
            Sequencing::Sequenced(sequenced) => {
                sequenced.ticket.as_ref().map(|ticket| ticket.client())
            }
        }
    }

    /// Returns the client of an owner. In 4.0 the owner names it, later the session does.
    pub(crate) fn client_of(&self, clientid: u64) -> Result<Arc<Client>, Stop> {
        match self.client() {
            Some(client) => Ok(Arc::clone(client)),
            None => {
                let id = comity_state::ClientId(clientid);
                let client = self.engine().client_of(id, self.caller);
                let client = client.map_err(refused)?;
                self.visitor.introduce(clientid);
                Ok(client)
            }
        }
    }

    /// Returns the client that probably calls, for uses where a wrong guess costs little. In 4.0 it
    /// is the client that last used the connection, though several clients may share it.
    pub(crate) fn known(&self) -> Option<Arc<Client>> {
        match &self.sequencing {
            Sequencing::Sequenced(_) => self.client().map(Arc::clone),
            Sequencing::Unsequenced => {
                let id = comity_state::ClientId(self.visitor.introduced()?);
                self.engine().client_by_id(id)
            }
        }
    }

    /// Returns the connection of the COMPOUND.
    pub(crate) fn connection(&self) -> ConnectionId {
        ConnectionId(self.visitor.line().map_or(0, |line| line.id()))
    }

    /// Stores the address from which a client introduced itself, for administrators.
    pub(crate) fn note_address(&self, client: ClientId) {
        if let Some(client) = self.engine().client_by_id(client) {
            client.note_address(self.visitor.peer().ip(), self.visitor.channel());
        }
    }

    /// Offers the connection of the COMPOUND for callbacks.
    pub(crate) fn offer_line(&self) {
        if let (Some(callbacks), Some(line)) = (&self.nfs.memory().callbacks, self.visitor.line()) {
            callbacks.add_line(line);
        }
    }

    /// Returns the digest by which a retry of the request is recognized. Its high half is the
    /// caller; its low half is a hash of the length of the request and of the beginning of what
    /// follows SEQUENCE. SEQUENCE itself may differ: Linux encodes a request anew when its
    /// connection has broken, with the highest slot that it uses then. A hash of all of a large
    /// WRITE would cost as much as the WRITE. If a client sends two requests with the same digest,
    /// it gets the reply of the first one; no other client is harmed.
    pub(crate) fn digest(&self, following: &[u8]) -> u64 {
        let beginning = following.get(..DIGEST_BYTES).unwrap_or(following);
        let hash = self.nfs.digests().hash_one((self.request.len(), beginning));
        self.caller.principal.0 << 32 | hash & u64::from(u32::MAX)
    }

    /// Decodes a stateid argument, and replaces the special stateid that stands for the current one
    /// (RFC 8881, 16.2.3.1.2).
    pub(crate) fn stateid_of(&self, stateid: &Stateid4) -> Result<Stateid, Stop> {
        let known = Stateid { seqid: stateid.seqid, other: stateid.other };
        if self.minor == 0 || known.special() != Some(Special::Current) {
            return Ok(known);
        }
        if self.stateid == Stateid4::INVALID {
            return Err(Nfsstat4::BadStateid.into());
        }
        Ok(Stateid { seqid: self.stateid.seqid, other: self.stateid.other })
    }

    /// Makes a stateid the current one, and returns it encoded.
    pub(crate) fn leave(&mut self, stateid: Stateid) -> Stateid4 {
        let stateid = on_wire(stateid);
        self.stateid = stateid;
        stateid
    }

    /// Locks bytes of a file, for the client and against programs on the server.
    ///
    /// # Errors
    /// [`Taken`]: a program on the server has locked some of the bytes.
    pub(crate) fn lock(&self, lock: &Lock<'_>) -> Result<Result<Stateid, LockRefusal>, Taken> {
        let (engine, sender) = (self.engine(), self.sender());
        match &self.nfs.memory().locals {
            Some(locals) => engine.lock_beside(&**locals, sender, lock),
            None => Ok(engine.lock(sender, lock)),
        }
    }

    /// Unlocks bytes of a file, for the client and for programs on the server.
    pub(crate) fn unlock(
        &self,
        stateid: &Stateid,
        bytes: (&FileKey, ByteRange),
    ) -> comity_state::Result<Stateid> {
        let (engine, sender) = (self.engine(), self.sender());
        match &self.nfs.memory().locals {
            Some(locals) => engine.unlock_beside(&**locals, (sender, stateid), bytes),
            None => engine.unlock(sender, stateid, bytes),
        }
    }

    /// Returns whether the kernel will report it when programs on the server open a file that was
    /// delegated.
    pub(crate) fn keeps(&self, file: &FileKey, kind: DelegationKind) -> bool {
        self.nfs.memory().locals.as_ref().is_none_or(|locals| locals.delegate(file, kind))
    }

    /// Returns whether changes by programs of a directory that was delegated will be noticed;
    /// without a `hold` there are no such programs.
    pub(crate) fn watches(&self, directory: &FileKey, hold: Option<DirectoryHold>) -> bool {
        let Some(hold) = hold else { return true };
        let locals = self.nfs.memory().locals.as_ref();
        locals.is_some_and(|locals| locals.delegate_directory(directory, hold))
    }

    /// Returns whether no program on the server has a conflicting lock on a file.
    pub(crate) fn is_free(&self, file: &FileKey, lock: (ByteRange, LockType)) -> bool {
        self.nfs.memory().locals.as_ref().is_none_or(|locals| locals.is_free(file, lock))
    }

    /// Returns the file of the current filehandle.
    pub(crate) fn key(&self) -> Result<FileKey, Stop> {
        let (view, node) = self.real(Nfsstat4::Inval)?;
        Ok(view.key(node))
    }

    /// Checks a read or a write ([`Share::READ`], [`Share::WRITE`]) of a file under a stateid.
    /// Returns the bearer, if the stateid names a state, and the clearance.
    ///
    /// # Errors
    /// The errors of an invalid stateid; LOCKED, DELAY, GRACE, OPENMODE, ACCESS.
    ///
    /// [`Share::READ`]: comity_state::Share::READ
    /// [`Share::WRITE`]: comity_state::Share::WRITE
    pub(crate) fn check_io(
        &self,
        object: (&View<'_>, &Node),
        stateid: &Stateid4,
        access: u32,
    ) -> Result<Checked<'_>, Stop> {
        let stateid = self.stateid_of(stateid)?;
        let (view, node) = object;
        let io = Io { file: &view.key(node), access, user: Some(view.user()) };
        Ok(check_io(self.engine(), (self.sender(), &stateid), object, &io)?)
    }

    /// Returns the caller of a change of attributes or names. A delegation does not conflict with
    /// changes of its own client: the client of the session, or the `bearer` of the operation's
    /// stateid. In 4.0 most operations have no stateid, and then every delegation conflicts (RFC
    /// 7530, 10.4.4). A guess by the connection would let one client change a file that another
    /// client on the same connection has delegated. Linux returns its own delegation before such an
    /// operation.
    pub(crate) fn asker<'c>(&'c self, bearer: Option<&'c Client>) -> Asker<'c> {
        let client = self.client().map(Arc::as_ref).or(bearer);
        let patience = Some(self.nfs.memory() as &dyn WaitForClients);
        Asker { engine: self.engine(), now: self.now(), client, patience }
    }

    /// Notes that the client of the session looks into a directory that it may be delegated.
    pub(crate) fn note_look(&self, view: &View<'_>, dir: &Node) {
        let grants = view.rules().dir_delegations.are_granted();
        if let Some(client) = self.client().filter(|_| grants) {
            self.engine().note_look(self.now, client, &view.key(dir));
        }
    }

    /// Returns a record of the objects that the client of the session sees in a directory, if
    /// clients are notified of their attributes. It must be made before they are looked up.
    pub(crate) fn child_record<'c>(
        &'c self,
        view: &View<'_>,
        dir: &Node,
    ) -> Option<ChildRecord<'c>> {
        let changed = self.engine().changed_objects();
        if !changed.are_watched() {
            return None;
        }
        let (client, since) = (self.client()?, changed.moment());
        let directory = view.key(dir);
        Some(ChildRecord { engine: self.engine(), now: self.now, client, directory, since })
    }

    /// Clears the removal of a name.
    ///
    /// # Errors
    /// GRACE: a client that had the object open may still reclaim it. DELAY: a delegation of it or
    /// of its directory is being recalled.
    pub(crate) fn clear_removal(
        &self,
        view: &View<'_>,
        name: (&Node, &[u8]),
    ) -> Result<DirectoryClearance<'_>, Stop> {
        self.outside_grace(view)?;
        Ok(self.asker(None).clear_removal(view, name)?)
    }

    /// Clears the making of a name.
    ///
    /// # Errors
    /// DELAY: a delegation of the directory is being recalled.
    pub(crate) fn clear_new_name(
        &self,
        view: &View<'_>,
        dir: &Node,
    ) -> Result<DirectoryClearance<'_>, Stop> {
        Ok(self.asker(None).clear_new_name((view, dir))?)
    }

    /// Checks that no client may still reclaim its opens in an export; names must not change
    /// before.
    ///
    /// # Errors
    /// GRACE.
    pub(crate) fn outside_grace(&self, view: &View<'_>) -> Result<(), Stop> {
        let is_in_grace = self.engine().is_in_grace_at(view.export_id().0);
        if is_in_grace { Err(Nfsstat4::Grace.into()) } else { Ok(()) }
    }
}

/// A record of the objects that a client sees in a directory. If it holds the directory, it is
/// notified of their attributes from then on.
pub(crate) struct ChildRecord<'c> {
    engine: &'c Engine,
    now: Duration,
    client: &'c Client,
    directory: FileKey,
    since: u64,
}

impl ChildRecord<'_> {
    /// Notes an object.
    pub(crate) fn note(&self, view: &View<'_>, name: &[u8], node: &Node) {
        let (place, child) = ((&self.directory, name), (&view.key(node), self.since));
        self.engine.watch_child(self.now, self.client, place, child);
    }
}

//! A layer between the view and a file system that checks every id in a call.

use std::ops::ControlFlow;
use std::sync::Arc;

use comity_backend::Memory;
use comity_vfs::{
    Access, Acl, AclEntry, AclKind, AclTag, Attr, Change, Changed, Create, Cred, Disk, Entry, Fs,
    Handle, Listed, Listing, Made, Name, Node, Properties, Read, ReadInto, Result, SetAttr, Space,
    Special, Target, Time, Written,
};

use super::maps::Maps;

pub(crate) struct Watched {
    pub(crate) fs: Arc<Memory>,
    pub(crate) maps: Maps,
}

impl Watched {
    fn acts(&self, cred: &Cred<Disk>) {
        let Cred { uid, gid, groups } = cred;
        let (users, others) = (&self.maps.users, &self.maps.groups);
        assert!(users.may_act(uid.number()), "{uid} acts under {}", self.maps);
        assert!(others.may_act(gid.number()), "group {gid} acts under {}", self.maps);
        for gid in groups.iter() {
            assert!(others.may_join(gid.number()), "{gid} among groups under {}", self.maps);
        }
    }

    fn names(&self, acl: &Acl<Disk>) {
        for AclEntry { tag, .. } in &acl.entries {
            let may = match tag {
                AclTag::User(uid) => self.maps.users.may_own(uid.number()),
                AclTag::Group(gid) => self.maps.groups.may_own(gid.number()),
                _ => true,
            };
            assert!(may, "{tag:?} in an ACL under {}", self.maps);
        }
    }

    fn owns(&self, set: &SetAttr<Disk>) {
        let SetAttr { uid, gid, .. } = set;
        let (users, groups) = (&self.maps.users, &self.maps.groups);
        assert!(uid.is_none_or(|uid| users.may_own(uid.number())), "{uid:?} under {}", self.maps);
        assert!(gid.is_none_or(|gid| groups.may_own(gid.number())), "{gid:?} under {}", self.maps);
    }
}

impl Fs for Watched {
    fn root(&self) -> Handle {
        self.fs.root()
    }

    fn volume(&self, node: &Handle) -> u64 {
        self.fs.volume(node)
    }

    fn properties(&self, node: &Handle) -> Result<Properties> {
        self.fs.properties(node)
    }

    fn statfs(&self, cred: &Cred<Disk>, node: &Handle) -> Result<Space> {
        self.acts(cred);
        self.fs.statfs(cred, node)
    }

    fn getattr(&self, node: &Handle) -> Result<Attr<Disk>> {
        self.fs.getattr(node)
    }

    fn setattr(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        set: &SetAttr<Disk>,
        guard: Option<Time>,
    ) -> Result<Change<Disk>> {
        self.acts(cred);
        self.owns(set);
        self.fs.setattr(cred, node, set, guard)
    }

    fn getacl(&self, node: &Handle, kind: AclKind) -> Result<Option<Acl<Disk>>> {
        self.fs.getacl(node, kind)
    }

    fn setacl(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        kind: AclKind,
        acl: Option<&Acl<Disk>>,
    ) -> Result<Change<Disk>> {
        self.acts(cred);
        if let Some(acl) = acl {
            self.names(acl);
        }
        self.fs.setacl(cred, node, kind, acl)
    }

    fn access(&self, cred: &Cred<Disk>, node: &Handle, a: Access) -> Result<(Access, Attr<Disk>)> {
        self.acts(cred);
        self.fs.access(cred, node, a)
    }

    fn lookup(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Entry<Disk>> {
        // MOUNT looks up paths under the server's own ids.
        if !cred.is_root() {
            self.acts(cred);
        }
        self.fs.lookup(cred, dir, name)
    }

    fn parent(&self, cred: &Cred<Disk>, dir: &Handle) -> Result<Node<Disk>> {
        self.acts(cred);
        self.fs.parent(cred, dir)
    }

    fn readlink(&self, cred: &Cred<Disk>, node: &Handle) -> Result<(Target, Attr<Disk>)> {
        self.acts(cred);
        self.fs.readlink(cred, node)
    }

    fn read(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        count: u32,
        into: &mut ReadInto<'_>,
    ) -> Result<Read<Disk>> {
        self.acts(cred);
        self.fs.read(cred, node, offset, count, into)
    }

    fn write(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<Written<Disk>> {
        self.acts(cred);
        self.fs.write(cred, node, offset, data)
    }

    fn commit(&self, node: &Handle) -> Result<Option<Attr<Disk>>> {
        self.fs.commit(node)
    }

    fn create(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        how: &Create<Disk>,
    ) -> Result<Made<Disk>> {
        self.acts(cred);
        if let Create::Unchecked(set) | Create::Guarded(set) = how {
            self.owns(set);
        }
        self.fs.create(cred, dir, name, how)
    }

    fn mkdir(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        self.acts(cred);
        self.owns(set);
        self.fs.mkdir(cred, dir, name, set)
    }

    fn symlink(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        self.acts(cred);
        self.owns(set);
        self.fs.symlink(cred, dir, name, target, set)
    }

    fn mknod(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        special: Special,
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        self.acts(cred);
        self.owns(set);
        self.fs.mknod(cred, dir, name, special, set)
    }

    fn remove(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Change<Disk>> {
        self.acts(cred);
        self.fs.remove(cred, dir, name)
    }

    fn rmdir(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Change<Disk>> {
        self.acts(cred);
        self.fs.rmdir(cred, dir, name)
    }

    fn rename(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, Name<'_>),
        target: (&Handle, Name<'_>),
    ) -> Result<(Change<Disk>, Change<Disk>)> {
        self.acts(cred);
        self.fs.rename(cred, source, target)
    }

    fn link(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        dir: &Handle,
        name: Name<'_>,
    ) -> Result<Changed<Attr<Disk>, Disk>> {
        self.acts(cred);
        self.fs.link(cred, node, dir, name)
    }

    fn readdir(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        cookie: u64,
        wanted: Listed,
        visit: &mut dyn FnMut(&Listing<'_, Disk>) -> ControlFlow<()>,
    ) -> Result<Attr<Disk>> {
        self.acts(cred);
        self.fs.readdir(cred, dir, cookie, wanted, visit)
    }
}

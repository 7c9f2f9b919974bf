use std::net::SocketAddr;

use anyhow::Result;
use comity_remote::nfs4::Session;
use comity_remote::rpc::Caller;

use crate::call_templates::CallTemplates;
use crate::load::Client;
use crate::operation::Operation;
use crate::prober;
use crate::prober::Pages;
use crate::suite::TargetServer;
use crate::suite::Version;

/// A client that learns how calls and replies look before a load, in the server's version.
pub(super) struct Speaker {
    address: SocketAddr,
    /// The handle of the round's directory.
    root: Vec<u8>,
    protocol: Protocol,
    connections: usize,
}

enum Protocol {
    Three(Caller),
    /// With the sessions in whose slots the next load makes its calls.
    FourOne(Session<Caller>, Vec<[u8; 16]>),
}

impl Speaker {
    /// Connects; the files are below `directory`.
    pub(super) fn to(server: TargetServer<'_>, directory: &str) -> Result<Self> {
        let who = (server.user, server.group);
        let (protocol, root) = match server.version {
            Version::Three => {
                let mut caller = Caller::connect_as(server.address, who.0, who.1)?;
                let root = caller.walk(server.root, directory)?;
                (Protocol::Three(caller), root)
            }
            Version::FourOne => {
                let mut session = Session::connect(server.address, who)?;
                let root = session.walk(server.root, directory)?;
                (Protocol::FourOne(session, Vec::new()), root)
            }
        };
        Ok(Self { address: server.address, root, protocol, connections: 0 })
    }

    /// Prepares a load of so many connections; says how many of `depth` calls each can have
    /// outstanding.
    pub(super) fn slots(&mut self, connections: u64, depth: u64) -> Result<u64> {
        self.connections = connections as usize;
        let mut granted = depth;
        if let Protocol::FourOne(session, sessions) = &mut self.protocol {
            sessions.clear();
            for _ in 0..connections {
                let (id, slots) = session.another(depth as u32)?;
                sessions.push(id);
                granted = granted.min(slots.into());
            }
        }
        Ok(granted)
    }

    /// The connections of that load.
    pub(super) fn client(&self) -> Result<Client> {
        match &self.protocol {
            Protocol::Three(_) => Client::connect(self.address, self.connections),
            Protocol::FourOne(_, sessions) => Client::connect_sessions(self.address, sessions),
        }
    }

    /// The calls for an operation.
    pub(super) fn script(&mut self, operation: Operation, pages: &Pages) -> Result<CallTemplates> {
        let root = self.root.clone();
        match &mut self.protocol {
            Protocol::Three(caller) => {
                prober::nfs3::Prober { caller, root }.script(operation, pages)
            }
            Protocol::FourOne(session, _) => {
                prober::nfs4::Prober { session, root, locked: 0 }.script(operation, pages)
            }
        }
    }

    /// REMOVE of what the calls of [`Operation::Create`] have made.
    pub(super) fn removes(&mut self, directory: &str) -> Result<CallTemplates> {
        let root = self.root.clone();
        match &mut self.protocol {
            Protocol::Three(caller) => prober::nfs3::Prober { caller, root }.removes(directory),
            Protocol::FourOne(session, _) => {
                prober::nfs4::Prober { session, root, locked: 0 }.removes(directory)
            }
        }
    }
}

use std::net::SocketAddr;

use anyhow::Result;

use crate::baseline_server::Pages;
use crate::call_templates::CallTemplates;
use crate::load::Client;
use crate::nfs::{self, Caller};
use crate::nfs4::{self, Session};
use crate::operation::Operation;
use crate::suite::Server;
use crate::targets::Version;

/// A client that learns how calls and replies look before a load, in the server's version.
pub(super) struct Speaker {
    address: SocketAddr,
    /// The handle of the round's directory.
    root: Vec<u8>,
    tongue: Tongue,
    connections: usize,
}

enum Tongue {
    Three(Caller),
    /// With the sessions in whose slots the next load makes its calls.
    FourOne(Session<Caller>, Vec<[u8; 16]>),
}

impl Speaker {
    /// Connects; the files are below `directory`.
    pub(super) fn to(server: Server<'_>, directory: &str) -> Result<Self> {
        let who = (server.user, server.group);
        let (tongue, root) = match server.version {
            Version::Three => {
                let mut caller = Caller::connect_as(server.address, who.0, who.1)?;
                let root = caller.walk(server.root, directory)?;
                (Tongue::Three(caller), root)
            }
            Version::FourOne => {
                let mut session = Session::connect(server.address, who)?;
                let root = session.walk(server.root, directory)?;
                (Tongue::FourOne(session, Vec::new()), root)
            }
        };
        Ok(Self { address: server.address, root, tongue, connections: 0 })
    }

    /// Prepares a load of so many connections; says how many of `depth` calls each can have
    /// outstanding.
    pub(super) fn slots(&mut self, connections: u64, depth: u64) -> Result<u64> {
        self.connections = connections as usize;
        let mut granted = depth;
        if let Tongue::FourOne(session, sessions) = &mut self.tongue {
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
        match &self.tongue {
            Tongue::Three(_) => Client::connect(self.address, self.connections),
            Tongue::FourOne(_, sessions) => Client::connect_sessions(self.address, sessions),
        }
    }

    /// The calls for an operation.
    pub(super) fn script(&mut self, operation: Operation, pages: &Pages) -> Result<CallTemplates> {
        let root = self.root.clone();
        match &mut self.tongue {
            Tongue::Three(caller) => nfs::Prober { caller, root }.script(operation, pages),
            Tongue::FourOne(session, _) => {
                nfs4::Prober { session, root, locked: 0 }.script(operation, pages)
            }
        }
    }

    /// REMOVE of what the calls of [`Operation::Create`] have made.
    pub(super) fn removes(&mut self, directory: &str) -> Result<CallTemplates> {
        let root = self.root.clone();
        match &mut self.tongue {
            Tongue::Three(caller) => nfs::Prober { caller, root }.removes(directory),
            Tongue::FourOne(session, _) => {
                nfs4::Prober { session, root, locked: 0 }.removes(directory)
            }
        }
    }
}

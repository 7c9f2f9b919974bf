//! The servers that are measured side by side.

mod baseline;
mod comity;
mod pair;

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use comity_remote::nfs4::Session;
use comity_remote::rpc::Caller;

use comity_bench::Operation;
use comity_bench::call_templates::CallTemplates;
use comity_bench::fixture_tree::FixtureTree;
use comity_bench::load::Client;
use comity_bench::prober;
use comity_bench::prober::Pages;
use comity_bench::prober::nfs3::Prober;
use comity_bench::process::{CpuTime, StartedServer};
use comity_bench::targets::{self, Ganesha, GaneshaBackEnd, wait_for_export};

pub use baseline::start as start_raw;
pub use comity::{ServerOptions, TestBed};
pub(crate) use pair::ServerPair;

/// The processor servers run on; the load runs on [`LOAD_PROCESSOR`].
pub const SERVER_PROCESSOR: usize = 0;
/// The processor the load generator runs on.
pub const LOAD_PROCESSOR: usize = 1;

/// A server that is running on a tree of files.
#[derive(Debug)]
pub struct ServerProcess {
    /// The name of the server in the report.
    pub name: &'static str,
    /// The address of the server.
    pub address: SocketAddr,
    layout: FixtureTree,
    speaks: Speaks,
    /// The server itself first, then what it needs.
    servers: Vec<StartedServer>,
}

/// The protocol of a server.
#[derive(Debug)]
enum Speaks {
    Raw,
    Nfs { root: Vec<u8> },
}

/// A load that is ready to run.
#[derive(Debug)]
pub struct Prepared {
    /// The calls.
    pub script: CallTemplates,
    /// The connections.
    pub client: Client,
    /// Keeps the sessions and the state that the calls name.
    _session: Option<Session<Caller>>,
}

impl ServerProcess {
    /// Returns the id of the server's process.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.servers.first().map_or(0, StartedServer::id)
    }

    /// Returns the processor time that the server has used.
    ///
    /// # Errors
    /// If the server has ended.
    pub fn cpu_time(&self) -> Result<CpuTime> {
        CpuTime::of(self.process()).with_context(|| format!("{} is gone", self.name))
    }

    /// The calls for an operation.
    ///
    /// # Errors
    /// If the server's answer is wrong.
    pub fn script(&self, operation: Operation, pages: &Pages) -> Result<CallTemplates> {
        let script = match &self.speaks {
            Speaks::Raw => crate::baseline_server::script(&self.layout, operation, pages),
            Speaks::Nfs { root } => {
                let mut caller = Caller::connect(self.address)?;
                let mut prober = Prober { caller: &mut caller, root: root.clone() };
                prober.script(operation, pages)
            }
        };
        script.with_context(|| format!("{}, {operation}", self.name))
    }

    /// The calls for an operation, and connections that can make them.
    ///
    /// # Errors
    /// As [`ServerProcess::script`].
    pub fn prepare(
        &self,
        operation: Operation,
        pages: &Pages,
        (connections, depth): (usize, usize),
    ) -> Result<Prepared> {
        let sequenced = matches!(operation, Operation::InSession(_)) && self.root().is_some();
        if sequenced {
            let prepared = self.prepare_sessions(operation, (connections, depth));
            return prepared.with_context(|| format!("{}, {operation}", self.name));
        }
        let script = self.script(operation, pages)?;
        let client = Client::connect(self.address, connections)?;
        Ok(Prepared { script, client, _session: None })
    }

    fn prepare_sessions(
        &self,
        operation: Operation,
        (connections, depth): (usize, usize),
    ) -> Result<Prepared> {
        let mut session = Session::connect(self.address, comity_remote::rpc::caller_ids())?;
        let root = session.mount(&self.layout.root().to_string_lossy())?;
        let locked = self.address.port().into();
        let mut prober = prober::nfs4::Prober { session: &mut session, root, locked };
        let script = prober.script(operation, &Pages::default())?;
        let mut sessions = Vec::new();
        for _ in 0..connections {
            let (id, slots) = session.another(depth as u32)?;
            ensure!(slots as usize >= depth, "a session of {slots} slots instead of {depth}");
            sessions.push(id);
        }
        let client = Client::connect_sessions(self.address, &sessions)?;
        Ok(Prepared { script, client, _session: Some(session) })
    }

    /// The handle of the top of the tree, if it has handles.
    #[must_use]
    pub fn root(&self) -> Option<&[u8]> {
        match &self.speaks {
            Speaks::Raw => None,
            Speaks::Nfs { root } => Some(root),
        }
    }
}

/// Waits until an NFS server offers the tree. It serves NFS and MOUNT at `address`.
pub(crate) fn nfs_server(
    name: &'static str,
    layout: &FixtureTree,
    address: SocketAddr,
    mut server: StartedServer,
) -> Result<ServerProcess> {
    let root = wait_for_export(&mut server, address, layout.root())?;
    let (layout, speaks, servers) = (layout.clone(), Speaks::Nfs { root }, vec![server]);
    Ok(ServerProcess { name, address, layout, speaks, servers })
}

/// Starts nfs-ganesha on the tree.
///
/// # Errors
/// If the server does not start.
pub fn start_ganesha(
    layout: &FixtureTree,
    work: &Path,
    processors: &[usize],
) -> Result<ServerProcess> {
    start_ganesha_on((layout, work), GaneshaBackEnd::Vfs, processors)
}

/// Starts nfs-ganesha on a tree in one of its back ends.
///
/// # Errors
/// If the server does not start.
pub(crate) fn start_ganesha_on(
    (layout, work): (&FixtureTree, &Path),
    back_end: GaneshaBackEnd<'_>,
    processors: &[usize],
) -> Result<ServerProcess> {
    let Ganesha { address, root, server, rpcbind } =
        targets::start_ganesha((layout.root(), back_end), work, processors)?;
    let (layout, speaks, servers) = (layout.clone(), Speaks::Nfs { root }, vec![server, rpcbind]);
    Ok(ServerProcess { name: "ganesha", address, layout, speaks, servers })
}

/// Gives everybody access to a folder, because the callers are not root.
pub(crate) fn open_to_all(folder: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))?)
}

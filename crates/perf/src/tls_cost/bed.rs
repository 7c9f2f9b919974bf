use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use comity_bench::process::{self, CpuTime, StartedServer};
use comity_bench::targets::free_address;
use comity_keys::{Algorithm, PrivateKey};
use comity_proto::nfs3;
use comity_remote::rpc::{Caller, Duplex, dial};
use comity_tls::client::{ClientIdentity, ServerTrust, handshake, start};

use crate::server_process::{
    LOAD_PROCESSOR, SERVER_PROCESSOR, ServerOptions, ServerProcess, TestBed,
};

/// The program of stunnel in Debian.
const STUNNEL: &str = "/usr/bin/stunnel";
/// Longest that stunnel may take to start, and a server to answer, in seconds.
const PATIENCE_SECONDS: u64 = 20;

/// A server that accepts plain calls and TLS, and stunnel in front of it.
pub(super) struct Bed {
    pub(super) server: ServerProcess,
    pub(super) root: Vec<u8>,
    stunnel: Option<(SocketAddr, StartedServer)>,
    identity: Arc<ClientIdentity>,
    trust: Arc<ServerTrust>,
    _bed: TestBed,
}

/// A way to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    Plain,
    Tls,
    Stunnel,
}

impl Route {
    pub(super) const NAMES: [(&str, Self); 3] =
        [("in clear", Self::Plain), ("TLS", Self::Tls), ("stunnel, in clear", Self::Stunnel)];
}

impl Bed {
    /// Starts the server, and stunnel if it is installed.
    ///
    /// # Errors
    /// If the server or stunnel does not start.
    pub(super) fn start(options: &ServerOptions) -> Result<Self> {
        let bed = TestBed::make(options)?;
        let server = bed.start_comity(&[SERVER_PROCESSOR], true)?;
        let stunnel = Path::new(STUNNEL).exists();
        let stunnel = stunnel.then(|| start_stunnel(&bed.work, server.address)).transpose()?;
        let root = server.root().context("no handle of the top")?.to_vec();
        let key = Arc::new(PrivateKey::generate(Algorithm::Ed25519)?);
        let (identity, trust) = (Arc::new(ClientIdentity::new(key)?), ServerTrust::new(None));
        process::pin(None, &[LOAD_PROCESSOR])?;
        Ok(Self { server, root, stunnel, identity, trust, _bed: bed })
    }

    pub(super) const fn has_stunnel(&self) -> bool {
        self.stunnel.is_some()
    }

    /// Returns the routes that are available.
    pub(super) fn routes(&self) -> Vec<Route> {
        let routes = [Route::Plain, Route::Tls, Route::Stunnel];
        routes.into_iter().filter(|way| *way != Route::Stunnel || self.has_stunnel()).collect()
    }

    /// Connects by a route.
    ///
    /// # Errors
    /// If the connection is refused.
    pub(super) fn connect(&self, route: Route) -> Result<Box<dyn Duplex>> {
        Ok(match (route, &self.stunnel) {
            (Route::Plain, _) => Box::new(socket(self.server.address)?),
            (Route::Tls, _) => {
                let program = (nfs3::PROGRAM, nfs3::VERSION);
                let identity = Some(Arc::clone(&self.identity));
                Box::new(start(socket(self.server.address)?, program, identity, &self.trust)?)
            }
            (Route::Stunnel, stunnel) => {
                let (address, _) = stunnel.as_ref().context("no stunnel")?;
                Box::new(handshake(socket(*address)?, None, &self.trust)?)
            }
        })
    }

    /// Returns the handle of a file of the tree.
    ///
    /// # Errors
    /// If the file is not found.
    pub(super) fn find(&self, path: &[&str]) -> Result<Vec<u8>> {
        let mut caller = Caller::connect(self.server.address)?;
        path.iter().try_fold(self.root.clone(), |dir, name| caller.lookup(&dir, name))
    }

    /// Returns the processor time that the server and stunnel use during `work`, in seconds. A
    /// thread that ends during it does not count.
    ///
    /// # Errors
    /// If one of them has ended, or `work` fails.
    pub(super) fn processor_seconds(&self, work: impl FnOnce() -> Result<()>) -> Result<f64> {
        let before = self.processor_times()?;
        work()?;
        let after = self.processor_times()?;
        let used = after.iter().zip(&before).map(|(after, before)| after.since(before));
        Ok(used.sum::<u64>() as f64 / 1e9)
    }

    fn processor_times(&self) -> Result<Vec<CpuTime>> {
        let stunnel = self.stunnel.as_ref().map(|(_, process)| process.id());
        let all = [Some(self.server.process()), stunnel];
        all.into_iter().flatten().map(CpuTime::of).collect()
    }
}

fn socket(address: SocketAddr) -> Result<TcpStream> {
    let socket = dial(address)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(Duration::from_secs(PATIENCE_SECONDS)))?;
    Ok(socket)
}

fn start_stunnel(work: &Path, server: SocketAddr) -> Result<(SocketAddr, StartedServer)> {
    let address = free_address()?;
    let made = comity_tls::self_made(&["localhost".to_owned()], None)?;
    let [certificate, key, settings]: [PathBuf; 3] =
        ["certificate", "key", "settings"].map(|name| work.join(format!("stunnel-{name}")));
    fs::write(&certificate, made.certificate)?;
    fs::write(&key, made.key)?;
    let text = format!(
        "foreground = yes\npid =\nsocket = l:TCP_NODELAY=1\nsocket = r:TCP_NODELAY=1\n[nfs]\n\
         accept = {address}\nconnect = {server}\ncert = {}\nkey = {}\nsslVersion = TLSv1.3\n",
        certificate.display(),
        key.display()
    );
    fs::write(&settings, text)?;
    let mut command = Command::new(STUNNEL);
    command.arg(&settings).stderr(fs::File::create(work.join("stunnel-log"))?);
    let mut process = StartedServer::start(&mut command, &[SERVER_PROCESSOR])?;
    process.until(PATIENCE_SECONDS, || TcpStream::connect(address).is_ok()).context("stunnel")?;
    Ok((address, process))
}

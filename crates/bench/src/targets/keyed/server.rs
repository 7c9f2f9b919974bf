use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use comity_programs::{ProgramClient, whole};
use comity_proto::grants::{Outcome, PROGRAM, SUBMISSION_BYTES_MAX, SubmitOk, VERSION, procedure};
use comity_proto::nfs3;
use comity_remote::rpc::{Caller, dial};
use comity_tls::client::{ClientIdentity, start};
use comity_xdr::{Counted, Opaque};

use super::keyring::Keyring;
use crate::limits::{SILENCE_SECONDS_MAX, START_SECONDS_MAX};
use crate::process::StartedServer;
use crate::targets::peer::{caller, free_address, processors};

/// A running comity server that authenticates its callers by their keys.
pub(super) struct KeyedServer {
    address: SocketAddr,
    metrics: SocketAddr,
    trust: Arc<comity_tls::client::ServerTrust>,
    process: Mutex<StartedServer>,
}

impl KeyedServer {
    /// Starts a server of an export, with its state and log in a folder of its own in `work`.
    ///
    /// # Errors
    /// The server does not start; the message contains its log.
    pub(super) fn start(
        program: &Path,
        (work, export): (&Path, &Path),
        keyring: &Keyring,
        decisions: usize,
    ) -> Result<Self> {
        let work = work.join(format!("decisions-{decisions}"));
        fs::create_dir(&work)?;
        let [address, metrics] = [free_address()?, free_address()?];
        let log = work.join("log");
        let mut command = command(program, (&work, export), keyring)?;
        command
            .args(["--listen", "127.0.0.1", "--no-register"])
            .args(["--port", &address.port().to_string(), "--metrics", &metrics.to_string()])
            .args(["--decisions-per-key", &decisions.to_string()])
            .stdout(File::create(&log)?)
            .stderr(File::options().append(true).open(&log)?);
        let process = Mutex::new(StartedServer::start(&mut command, &processors()?)?);
        let server = Self { address, metrics, trust: Arc::clone(&keyring.trust), process };
        let said = || fs::read_to_string(&log).unwrap_or_default().trim().to_owned();
        server.wait(keyring, export).with_context(said)?;
        Ok(server)
    }

    /// Waits until the server accepts the account.
    fn wait(&self, keyring: &Keyring, export: &Path) -> Result<()> {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        let enter = || self.connect(keyring.account())?.mount(export);
        process.until(START_SECONDS_MAX, || enter().is_ok()).or_else(|_| enter().map(drop))
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) const fn metrics(&self) -> SocketAddr {
        self.metrics
    }

    /// Fails if the server has ended.
    ///
    /// # Errors
    /// The server has ended; the error contains its exit status.
    pub(super) fn check(&self) -> Result<()> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner).check()
    }

    /// Opens a connection under a key.
    ///
    /// # Errors
    /// The server does not accept the key.
    pub(super) fn connect(&self, identity: Arc<ClientIdentity>) -> Result<Caller> {
        let socket = dial(self.address)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(Duration::from_secs(SILENCE_SECONDS_MAX.into())))?;
        let program = (nfs3::PROGRAM, nfs3::VERSION);
        Ok(Caller::over(start(socket, program, Some(identity), &self.trust)?, caller()))
    }

    /// Makes a new key that holds a chain of grants to the export.
    ///
    /// # Errors
    /// The server does not accept the credentials.
    pub(super) fn granted(
        &self,
        keyring: &Keyring,
        links: usize,
        export: &Path,
    ) -> Result<Arc<ClientIdentity>> {
        let ask = |identity| {
            let (host, port) = (Ipv4Addr::LOCALHOST.to_string(), self.address.port());
            ProgramClient::connect((&host, port), (PROGRAM, VERSION), identity, &self.trust)
        };
        let path: Opaque<'_, SUBMISSION_BYTES_MAX> = Opaque(export.as_os_str().as_bytes());
        let object = ask(keyring.account())?.text(procedure::ID, &path)?;
        let (identity, credentials) = keyring.chain(links, object.trim())?;
        let text: Opaque<'_, SUBMISSION_BYTES_MAX> = Opaque(credentials.as_bytes());
        let held = ask(Arc::clone(&identity))?.call(procedure::SUBMIT, &text, |reply| {
            let Counted(all) = whole::<SubmitOk<'_>>(reply)?;
            Some(all.iter().filter(|one| one.outcome == Outcome::Held).count())
        })?;
        ensure!(held == links, "the server holds {held} of {links} credentials");
        Ok(identity)
    }
}

fn command(program: &Path, (work, export): (&Path, &Path), keyring: &Keyring) -> Result<Command> {
    let (exports, accounts) = (work.join("exports"), work.join("accounts"));
    fs::write(&exports, format!("{} 127.0.0.1(rw,sec=key,xprtsec=mtls,sync)\n", export.display()))?;
    fs::write(&accounts, keyring.binding()?)?;
    let mut command = Command::new(program);
    command.arg("serve").arg("--exports").arg(exports).arg("--accounts").arg(accounts);
    command.arg("--state-dir").arg(work.join("state"));
    Ok(command)
}

//! A comity server that authenticates its callers by their keys, over TLS.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use comity_remote::nfs4::{Backchannel, Session};
use tempfile::TempDir;

use self::keyring::Keyring;
use self::server::KeyedServer;
use super::nfs::NfsFiles;
use super::nfs4::Nfs4Files;
use super::peer::{caller, filesystem_of, version_of};
use super::{counters, server::NfsTarget};
use crate::suite::{ByKey, Files, Target, TargetKind, TargetRecord, TargetServer, Version};

mod keyring;
mod server;

/// Objects whose decisions the server keeps for each key where nobody asks for another number: as
/// many as in 2003.
const DECISIONS: usize = 1_024;

/// Servers of one folder, one for each number of decisions. A server is started at its first use.
pub(super) struct KeyedTarget {
    /// The server that keeps [`DECISIONS`], as others than callers by key see it.
    plain: NfsTarget,
    program: PathBuf,
    export: PathBuf,
    keyring: Keyring,
    /// By the number of decisions. They end before their folder goes.
    servers: Mutex<BTreeMap<usize, Arc<KeyedServer>>>,
    folder: TempDir,
}

impl KeyedTarget {
    /// Starts a server of an empty directory.
    ///
    /// # Errors
    /// The server does not come up, or does not know its callers.
    pub(super) fn start(
        (name, version): (&str, Version),
        (folder, export): (TempDir, &Path),
        program: &Path,
    ) -> Result<Self> {
        let keyring = Keyring::new()?;
        let server = KeyedServer::start(program, (folder.path(), export), &keyring, DECISIONS)
            .with_context(|| format!("{name} does not come up"))?;
        let plain = NfsTarget {
            name: name.to_owned(),
            address: server.address(),
            root: root(&server, &keyring, (version, export))?,
            version,
            who: caller(),
            server: Some(version_of(program)),
            durability: format!("sync export on {}", filesystem_of(export)),
            metrics: Some(server.metrics()),
            kept: None,
        };
        let servers = Mutex::new(BTreeMap::from([(DECISIONS, Arc::new(server))]));
        let (program, export) = (program.to_owned(), export.to_owned());
        Ok(Self { plain, program, export, keyring, servers, folder })
    }

    /// The server that keeps this number of decisions.
    fn server(&self, decisions: usize) -> Result<Arc<KeyedServer>> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = servers.get(&decisions) {
            return Ok(Arc::clone(server));
        }
        let place = (self.folder.path(), self.export.as_path());
        let server = KeyedServer::start(&self.program, place, &self.keyring, decisions)?;
        let server = Arc::new(server);
        servers.insert(decisions, Arc::clone(&server));
        Ok(server)
    }
}

/// The handle of the top of the export.
fn root(
    server: &KeyedServer,
    keyring: &Keyring,
    (version, export): (Version, &Path),
) -> Result<Vec<u8>> {
    let mut connection = server.connect(keyring.account())?;
    match version {
        Version::Three => connection.mount(export),
        Version::FourOne => {
            let path = export.to_str().context("a folder whose name is no text")?;
            let mut session = Session::begin(connection, caller(), Backchannel::No)?;
            Ok(session.mount(path)?)
        }
    }
}

impl Target for KeyedTarget {
    fn name(&self) -> &str {
        self.plain.name()
    }

    fn kind(&self) -> TargetKind {
        TargetKind::Protocol
    }

    fn record(&self) -> TargetRecord {
        let mut record = self.plain.record();
        let channel = format!("NFSv{} over TLS, callers known by their keys", self.plain.version);
        record.settings.insert("protocol".to_owned(), channel);
        record
    }

    fn files(&self) -> Result<Box<dyn Files>> {
        self.files_by_key(ByKey { chain: 0, decisions: DECISIONS })
    }

    fn files_by_key(&self, by: ByKey) -> Result<Box<dyn Files>> {
        let server = self.server(by.decisions)?;
        let identity = match by.chain {
            0 => self.keyring.account(),
            links => server.granted(&self.keyring, links, &self.export)?,
        };
        let (connection, version) = (server.connect(identity)?, self.plain.version);
        let root = match by.decisions {
            DECISIONS => self.plain.root.clone(),
            _ => root(&server, &self.keyring, (version, &self.export))?,
        };
        Ok(match version {
            Version::Three => Box::new(NfsFiles::over(connection, &root)),
            Version::FourOne => Box::new(Nfs4Files::over(connection, &root, caller())?),
        })
    }

    fn has_keys(&self) -> bool {
        true
    }

    fn server(&self) -> Option<TargetServer<'_>> {
        // Its calls are made in clear, which this export refuses.
        None
    }

    fn has_locks(&self) -> bool {
        self.plain.has_locks()
    }

    fn calls(&self) -> Result<Option<BTreeMap<String, u64>>> {
        self.plain.metrics.map(counters::of_comity).transpose()
    }

    fn check(&self) -> Result<()> {
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.values().try_for_each(|server| server.check()).context(self.plain.name.clone())
    }
}

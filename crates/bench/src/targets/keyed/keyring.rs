use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result};
use comity_keynote::{Grant, Rights};
use comity_keys::{Algorithm, PrivateKey, Signer};
use comity_tls::client::{ClientIdentity, ServerTrust};

/// The key of an account, which signs grants for new keys.
pub(super) struct Keyring {
    account: Arc<PrivateKey>,
    identity: Arc<ClientIdentity>,
    /// Trusts any server: this program has started it on this machine.
    pub(super) trust: Arc<ServerTrust>,
}

impl Keyring {
    /// Makes a key for the account of the user who runs the program.
    ///
    /// # Errors
    /// No key can be made.
    pub(super) fn new() -> Result<Self> {
        let account = Arc::new(new_key()?);
        let identity = identity(&account)?;
        Ok(Self { account, identity, trust: ServerTrust::new(None) })
    }

    /// The identity of the account.
    pub(super) fn account(&self) -> Arc<ClientIdentity> {
        Arc::clone(&self.identity)
    }

    /// The line of an accounts file that binds the account's key to its user.
    ///
    /// # Errors
    /// The user of this process has no name.
    pub(super) fn binding(&self) -> Result<String> {
        let told = Command::new("id").arg("-un").output().context("id -un")?;
        let user = String::from_utf8_lossy(&told.stdout).trim().to_owned();
        Ok(format!("user=\"{user}\" {}\n", self.account.public_key().to_openssh("account")))
    }

    /// Makes a new key, and the credentials that give it all rights to an object: one for each
    /// link, from the account down.
    ///
    /// # Errors
    /// A key does not sign.
    pub(super) fn chain(
        &self,
        links: usize,
        object: &str,
    ) -> Result<(Arc<ClientIdentity>, String)> {
        let (mut giver, mut credentials) = (Arc::clone(&self.account), String::new());
        for _ in 0..links {
            let taker = Arc::new(new_key()?);
            let grant = Grant {
                authorizer: *giver.public_key(),
                licensee: *taker.public_key(),
                export: None,
                object: object.to_owned(),
                rights: "rwxcda".parse::<Rights>()?,
                expires: None,
                is_final: false,
                comment: None,
            };
            credentials.push_str(&grant.sign(&*giver)?);
            credentials.push('\n');
            giver = taker;
        }
        Ok((identity(&giver)?, credentials))
    }
}

fn new_key() -> Result<PrivateKey> {
    PrivateKey::generate(Algorithm::Ed25519).context("make a key")
}

fn identity(key: &Arc<PrivateKey>) -> Result<Arc<ClientIdentity>> {
    let signer: Arc<dyn Signer + Send + Sync> = Arc::<PrivateKey>::clone(key);
    Ok(Arc::new(ClientIdentity::new(signer)?))
}

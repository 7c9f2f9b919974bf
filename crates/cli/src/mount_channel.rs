//! The channel to a server: plain or TLS, the key shown to the server, and the key expected of it.
//! The keys are those of the commands of keys and grants.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use comity_keys::PublicKey;
use comity_remote::{MountError, Tcp, TlsRefusal, TlsTransport, Transport};
use comity_tls::client::ClientIdentity;

use crate::key_arguments::KeyChoice;
use crate::keys::{KnownServers, public_key};

/// The value of `key` that stands for the keys of ssh-agent.
const AGENT: &str = "agent";

/// A protection of the channel (`xprtsec`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protection {
    None,
    Tls,
    MutualTls,
}

/// The options about the channel that were given.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChannelChoice {
    protection: Option<Protection>,
    key: Option<PathBuf>,
    server_key: Option<String>,
}

/// A channel that can be opened.
pub(crate) struct Channel {
    place: String,
    transport: ChosenTransport,
    known: Option<KnownServers>,
    is_known: bool,
    /// The key that is shown to the server.
    pub(crate) key: Option<PublicKey>,
}

enum ChosenTransport {
    Plain(Tcp),
    Tls(TlsTransport),
}

impl ChannelChoice {
    /// Reads an option; returns whether it is one about the channel.
    pub(crate) fn read(&mut self, name: &str, value: Option<&str>) -> Result<bool> {
        match (name, value) {
            ("xprtsec", Some(value)) => self.protection = Some(protection(value)?),
            ("key", Some(file)) if !file.is_empty() => self.key = Some(file.into()),
            ("server_key", Some(key)) if !key.is_empty() => self.server_key = Some(key.to_owned()),
            ("xprtsec" | "key" | "server_key", _) => bail!("-o {name} needs a value: {name}=VALUE"),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Returns the channel to the server that `tcp` connects to.
    ///
    /// # Errors
    /// The options contradict each other, or a key cannot be used.
    pub(crate) fn channel(&self, tcp: Tcp) -> Result<Channel> {
        let place = tcp.peer();
        let protection = self.protection()?;
        if protection == Protection::None {
            let transport = ChosenTransport::Plain(tcp);
            return Ok(Channel { place, transport, known: None, is_known: true, key: None });
        }
        let (known, expected) = self.expected(&place)?;
        let identity = match protection {
            Protection::MutualTls => Some(self.identity()?),
            _ => None,
        };
        let (identity, key) = identity.unzip();
        let transport = ChosenTransport::Tls(TlsTransport::new(tcp, identity, expected));
        Ok(Channel { place, transport, known, is_known: expected.is_some(), key })
    }

    /// The protection of the channel. Without `xprtsec`, `key` means mutual TLS and `server_key`
    /// means TLS.
    fn protection(&self) -> Result<Protection> {
        let usual = match (&self.key, &self.server_key) {
            (Some(_), _) => Protection::MutualTls,
            (None, Some(_)) => Protection::Tls,
            (None, None) => Protection::None,
        };
        let protection = self.protection.unwrap_or(usual);
        if self.key.is_some() && protection != Protection::MutualTls {
            bail!("-o key= is shown to the server with xprtsec=mtls only: leave one of them out");
        }
        if self.server_key.is_some() && protection == Protection::None {
            bail!("-o server_key= is for xprtsec=tls or mtls: leave xprtsec=none out");
        }
        Ok(protection)
    }

    /// The key expected of the server, and the file of known servers if no option names a key.
    fn expected(&self, place: &str) -> Result<(Option<KnownServers>, Option<PublicKey>)> {
        if let Some(named) = &self.server_key {
            let key = public_key(named).context("-o server_key= names no key")?;
            return Ok((None, Some(key)));
        }
        let known = KnownServers::of_user()
            .context("the keys of servers cannot be looked up: give -o server_key=KEY")?;
        let key = known.key(place)?;
        Ok((Some(known), key))
    }

    fn identity(&self) -> Result<(Arc<ClientIdentity>, PublicKey)> {
        let choice = KeyChoice { key: self.key.clone() };
        let signer = choice.signer().context("-o xprtsec=mtls shows the key of -o key=FILE")?;
        let key = *signer.public_key();
        Ok((Arc::new(ClientIdentity::new(Arc::from(signer))?), key))
    }
}

impl Channel {
    /// The transport to the server.
    pub(crate) fn transport(&self) -> Box<dyn Transport> {
        match &self.transport {
            ChosenTransport::Plain(tcp) => Box::new(tcp.clone()),
            ChosenTransport::Tls(tls) => Box::new(tls.clone()),
        }
    }

    /// Remembers the key of a server that was met for the first time; returns a notice for the
    /// user.
    ///
    /// # Errors
    /// The key cannot be remembered.
    pub(crate) fn remember(&self) -> Result<Option<String>> {
        let (ChosenTransport::Tls(tls), Some(known), false) =
            (&self.transport, &self.known, self.is_known)
        else {
            return Ok(None);
        };
        let Some(seen) = tls.server_key() else { return Ok(None) };
        known.add(&self.place, &seen)?;
        Ok(Some(format!("{} is met for the first time; its key is {seen}", self.place)))
    }

    /// Adds advice to the error of a mount that failed.
    pub(crate) fn advise(&self, error: MountError) -> anyhow::Error {
        match (error.refusal(), &self.known) {
            (Some(TlsRefusal::OtherKey { .. }), Some(known)) => anyhow!(
                "{error}; if it was, remove the line of {} from {}",
                self.place,
                known.path().display()
            ),
            _ => error.into(),
        }
    }
}

fn protection(value: &str) -> Result<Protection> {
    match value {
        "none" => Ok(Protection::None),
        "tls" => Ok(Protection::Tls),
        "mtls" => Ok(Protection::MutualTls),
        _ => bail!("-o xprtsec={value}: give none, tls or mtls"),
    }
}

/// An option with its file as an absolute path, so that it means the same in another folder.
pub(crate) fn absolute_option(option: &str) -> String {
    let Some((name @ ("key" | "server_key"), place)) = option.split_once('=') else {
        return option.to_owned();
    };
    let is_file = place != AGENT && (name == "key" || Path::new(place).exists());
    let path = std::path::absolute(place).ok().filter(|_| is_file);
    path.map_or_else(|| option.to_owned(), |path| format!("{name}={}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(options: &[&str]) -> Result<Protection> {
        let mut choice = ChannelChoice::default();
        for option in options {
            let (name, value) = option.split_once('=').unwrap();
            assert!(choice.read(name, Some(value))?);
        }
        choice.protection()
    }

    #[test]
    fn a_key_asks_for_tls_and_nothing_is_left_out_silently() {
        assert_eq!(choice(&[]).unwrap(), Protection::None);
        assert_eq!(choice(&["xprtsec=tls"]).unwrap(), Protection::Tls);
        assert_eq!(choice(&["key=file"]).unwrap(), Protection::MutualTls);
        assert_eq!(choice(&["server_key=file"]).unwrap(), Protection::Tls);
        for bad in [
            &["key=file", "xprtsec=tls"][..],
            &["key=file", "xprtsec=none"],
            &["server_key=file", "xprtsec=none"],
            &["xprtsec=ssl"],
            &["key="],
        ] {
            assert!(choice(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn files_of_keys_are_named_by_their_whole_paths() {
        let here = std::env::current_dir().unwrap().display().to_string();
        assert_eq!(absolute_option("key=a.pem"), format!("key={here}/a.pem"));
        for same in ["key=agent", "key=/a", "server_key=ed25519:AAAA", "soft", "vers=4"] {
            assert_eq!(absolute_option(same), same);
        }
    }
}

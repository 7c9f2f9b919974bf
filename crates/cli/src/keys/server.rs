//! Commands that ask a server as the owner of a key.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use comity_keynote::{Assertion, AssertionDigest, Grant};
use comity_keys::PublicKey;
use comity_programs::{ProgramClient, whole};
use comity_proto::grants::{DropArgs, RevokeArgs, RevokeKind, Text, WhyArgs, procedure};
use comity_proto::grants::{PROGRAM, VERSION};
use comity_server::control::Request;
use comity_tls::client::{ClientIdentity, ServerTrust};
use comity_xdr::{Counted, Opaque};
use serde_json::{Value, json};

use super::key_choice::public_key;
use super::known_servers::KnownServers;
use super::listed::{Listed, list};
use crate::control_client::ask;
use crate::key_arguments::KeyChoice;
use crate::key_arguments::server::{Fetch, Grants, Revoke, Server, Whoami, Why};
use crate::stdout::{say, show};

/// The port of NFS.
const PORT: u16 = 2049;

/// Prints who the server takes the key for.
pub(crate) fn whoami(typed: &Whoami) -> Result<ExitCode> {
    let text = connect(&typed.server)?.text(procedure::WHOAMI, &())?;
    say(text.trim_end());
    Ok(ExitCode::SUCCESS)
}

/// Prints the rights of a key to an object, and their reasons.
pub(crate) fn why(typed: Why) -> Result<ExitCode> {
    let key = typed.key.as_deref().map(public_key).transpose()?.map(|key| key.to_string());
    let key = key.unwrap_or_default();
    let Why { path, op: operation, from, .. } = typed;
    let text = if typed.admin {
        let path = PathBuf::from(path);
        let told = ask(typed.state, &Request::Why { path, operation, key, from })?;
        told.as_str().unwrap_or_default().to_owned()
    } else {
        let server = Server {
            server: typed.server.unwrap_or_default(),
            server_key: typed.server_key,
            key: KeyChoice { key: typed.own_key },
        };
        let (path, operation) = (Opaque(path.as_bytes()), Opaque(operation.as_bytes()));
        let args = WhyArgs { path, operation, key: Opaque(key.as_bytes()) };
        connect(&server)?.text(procedure::WHY, &args)?
    };
    say(text.trim_end());
    Ok(ExitCode::SUCCESS)
}

/// Prints the credential for an object that the key has made.
pub(crate) fn fetch(typed: &Fetch) -> Result<ExitCode> {
    let path: Text<'_> = Opaque(typed.path.as_bytes());
    show(connect(&typed.server)?.text(procedure::FETCH, &path)?.as_bytes());
    Ok(ExitCode::SUCCESS)
}

/// Lists the credentials that the key holds or has given, or drops some of them.
pub(crate) fn grants(typed: &Grants) -> Result<ExitCode> {
    let mut client = connect(&typed.server)?;
    if !typed.drop.is_empty() {
        return give_up(&mut client, &typed.drop);
    }
    let listed = list(&mut client, typed.given)?;
    if typed.json.json {
        say(listed.iter().map(listed_json).collect::<Value>());
        return Ok(ExitCode::SUCCESS);
    }
    say(format_args!("{:<64}  RIGHTS  {:<20}  FROM, TO, OBJECT", "DIGEST", "EXPIRES"));
    for one in &listed {
        say(line(one));
        if typed.texts {
            say(format_args!("\n{}", one.text.trim_end()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn give_up(client: &mut ProgramClient, digests: &[String]) -> Result<ExitCode> {
    let digests: Vec<[u8; 32]> = digests
        .iter()
        .map(|digest| digest.parse().map(|digest: AssertionDigest| *digest.as_bytes()))
        .collect::<Result<_, _>>()?;
    let args: DropArgs = Counted(digests);
    let count: u32 = client.call(procedure::DROP, &args, count)?;
    say(format_args!("given up: {count}"));
    Ok(ExitCode::SUCCESS)
}

fn listed_json(one: &Listed) -> Value {
    json!({
        "digest": one.digest.to_string(),
        "holder": one.holder,
        "revoked": one.revoked,
        "text": one.text,
    })
}

fn line(one: &Listed) -> String {
    let grant = Assertion::parse(&one.text).ok().and_then(|assertion| Grant::read(&assertion));
    let state = if one.revoked { "revoked" } else { "" };
    match grant {
        Some(grant) => format!(
            "{}  {:<6}  {:<20}  {} {} {} {state}",
            one.digest,
            grant.rights.to_string(),
            grant.expires.as_deref().unwrap_or("never"),
            grant.authorizer,
            grant.licensee,
            grant.object,
        ),
        None => format!("{}  written by hand: see --texts {state}", one.digest),
    }
}

/// Revokes a credential or a key.
pub(crate) fn revoke(typed: Revoke) -> Result<ExitCode> {
    let (kind, text) = revoked(&typed.what)?;
    if typed.admin {
        let revoked = ask(typed.state, &Request::RevokeGrant { what: text })?;
        let count = revoked.as_array().map_or(0, Vec::len);
        say(format_args!("revoked: {count}"));
        return Ok(ExitCode::SUCCESS);
    }
    let server = Server {
        server: typed.server.unwrap_or_default(),
        server_key: typed.server_key,
        key: typed.key,
    };
    let args = RevokeArgs { kind, text: Opaque(text.as_bytes()) };
    let count: u32 = connect(&server)?.call(procedure::REVOKE, &args, count)?;
    if typed.json.json {
        say(json!({ "revoked": count }))
    } else {
        say(format_args!("revoked: {count}"))
    }
    Ok(ExitCode::SUCCESS)
}

/// The thing to revoke: a digest, a key, or a file with a credential or a key.
fn revoked(what: &str) -> Result<(RevokeKind, String)> {
    if what.parse::<AssertionDigest>().is_ok() {
        return Ok((RevokeKind::Digest, what.to_owned()));
    }
    if let Ok(key) = public_key(what) {
        return Ok((RevokeKind::Key, key.to_string()));
    }
    let text = std::fs::read_to_string(what)
        .with_context(|| format!("{what} is no digest, no key, and no file that can be read"))?;
    Ok((RevokeKind::Credential, text))
}

/// Connects to a server under the user's key. The key of a server that is met for the first time is
/// remembered; later it has to be the same.
pub(super) fn connect(typed: &Server) -> Result<ProgramClient> {
    let (host, port) = host_and_port(&typed.server)?;
    let known = KnownServers::of_user()?;
    let place = format!("{host}:{port}");
    let expected = match &typed.server_key {
        Some(key) => Some(public_key(key)?),
        None => known.key(&place)?,
    };
    let trust = ServerTrust::new(expected);
    let identity = Arc::new(ClientIdentity::new(signer(&typed.key)?)?);
    match ProgramClient::connect((&host, port), (PROGRAM, VERSION), identity, &trust) {
        Ok(client) => {
            if let (None, Some(seen)) = (expected, trust.seen()) {
                known.add(&place, &seen)?;
                eprintln!("comity: {place} is met for the first time; its key is {seen}");
            }
            Ok(client)
        }
        Err(error) => {
            Err(changed(&place, expected, trust.seen(), &known).unwrap_or_else(|| error.into()))
        }
    }
}

/// The error for a server whose key has changed.
fn changed(
    place: &str,
    expected: Option<PublicKey>,
    seen: Option<PublicKey>,
    known: &KnownServers,
) -> Option<anyhow::Error> {
    let (expected, seen) = (expected?, seen?);
    (expected != seen).then(|| {
        anyhow::anyhow!(
            "{place} has the key {seen}, and {expected} was expected: somebody may stand between \
             you and the server; if its administrator has changed the key, remove the line of \
             {place} from {}",
            known.path().display()
        )
    })
}

fn signer(choice: &KeyChoice) -> Result<Arc<dyn comity_keys::Signer + Send + Sync>> {
    Ok(Arc::from(choice.signer()?))
}

fn host_and_port(server: &str) -> Result<(String, u16)> {
    if let Ok(address) = server.parse::<std::net::SocketAddr>() {
        return Ok((address.ip().to_string(), address.port()));
    }
    match server.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') && !host.is_empty() => {
            let port = port.parse().with_context(|| format!("{port:?} is no port"))?;
            Ok((host.to_owned(), port))
        }
        Some(_) if server.parse::<std::net::IpAddr>().is_err() => {
            bail!("{server:?} names no server: expected HOST or HOST:PORT")
        }
        _ => Ok((server.to_owned(), PORT)),
    }
}

pub(super) fn read(files: &[PathBuf]) -> Result<String> {
    let mut all = String::new();
    let standard_input = [PathBuf::from("-")];
    for file in if files.is_empty() { &standard_input[..] } else { files } {
        if file == Path::new("-") {
            std::io::stdin().take(1 << 20).read_to_string(&mut all)?;
        } else {
            all += &std::fs::read_to_string(file)
                .with_context(|| format!("cannot read {}", file.display()))?;
        }
        all.push('\n');
    }
    Ok(all)
}

/// Reads the number that a reply consists of.
fn count(reply: &mut comity_xdr::Decoder<'_>) -> Option<u32> {
    whole(reply)
}

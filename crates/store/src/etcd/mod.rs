//! A client of etcd (version 3.4 or later), by its JSON gateway: keys and values, transactions,
//! and leases. Keys and values are bytes, which the gateway carries in base64.

mod gateway_answer;
mod http;
mod messages;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde_json::{Value, json};

use self::gateway_answer::GatewayAnswer;
use self::http::{HttpThread, MemberAddress};
pub use self::messages::{Compare, KeyValue, Op};
use self::messages::{base64, entries, number};

/// Keys in one answer of [`Etcd::range`]: about a megabyte of client records.
const PAGE: usize = 2000;

/// Longest answer in bytes: a page whose names have the length that the protocol allows.
const ANSWER_BYTES_MAX: usize = 8 << 20;

/// The fault of an answer without all parts.
const TOO_FEW: &str = "it does not have all ranges";

/// The state of a key and of a prefix at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glance {
    /// The revision in which the key was last changed; 0 if it does not exist.
    pub changed: i64,
    /// The number of keys that begin with the prefix.
    pub count: usize,
    /// The revision of the store.
    pub revision: i64,
}

/// The changes under a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeChanges {
    /// The keys that were made or changed, with their values. Removed keys are not told.
    pub entries: Vec<KeyValue>,
    /// The number of keys that there are under the prefix, changed or not.
    pub count: usize,
}

/// Why etcd did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum EtcdError {
    /// An address is neither `http://HOST:PORT` nor `https://HOST:PORT`.
    #[error("{0:?} is no address of etcd: expected http://HOST:PORT or https://HOST:PORT")]
    Address(String),
    /// Some addresses are `https://` without settings of TLS, or `http://` with them.
    #[error(
        "{0}: TLS needs https:// in all addresses of etcd, and a file with the authorities of its \
         certificates (--etcd-ca)"
    )]
    Tls(String),
    /// No member could be asked.
    #[error("no member of etcd answers; the last one, {address}: {why}")]
    Silent {
        /// The address of the member that was asked last.
        address: String,
        /// The cause in words.
        why: String,
    },
    /// A member refused the request.
    #[error("etcd refuses: {0}")]
    Refused(String),
    /// The answer is longer than this client reads.
    #[error("the answer of etcd is longer than {ANSWER_BYTES_MAX} bytes")]
    TooLong,
    /// The answer lacks a field, or has a wrong one.
    #[error("the answer of etcd is malformed: {0}")]
    Malformed(&'static str),
}

/// A result of etcd.
pub type Result<T> = std::result::Result<T, EtcdError>;

/// Returns the settings of TLS for a new connection to a member.
pub type TlsSettings = Box<dyn Fn() -> Arc<ClientConfig> + Send + Sync>;

/// A connection to the members of an etcd cluster. It may be shared by threads.
pub struct Etcd {
    members: Vec<EtcdMember>,
    /// The number of the member that answered last.
    current: AtomicUsize,
    thread: HttpThread,
    tls: Option<TlsSettings>,
    patience: Duration,
}

/// The address of a member, and the name in its certificate if it is asked over TLS.
struct EtcdMember {
    shown: String,
    authority: String,
    certified: Option<ServerName<'static>>,
}

impl Etcd {
    /// Makes a client of the members with these addresses (`http://HOST:PORT`, or
    /// `https://HOST:PORT` with settings of TLS). Each member that is asked gets `patience` for its
    /// answer.
    ///
    /// # Errors
    /// [`EtcdError::Address`]; [`EtcdError::Tls`]; [`EtcdError::Silent`] if no thread can be made.
    /// No member is asked.
    pub fn new(addresses: &[String], tls: Option<TlsSettings>, patience: Duration) -> Result<Self> {
        let members: Result<Vec<EtcdMember>> =
            addresses.iter().map(|it| EtcdMember::parse(it)).collect();
        let members = members?;
        if members.is_empty() {
            return Err(EtcdError::Address(String::new()));
        }
        if let Some(wrong) = members.iter().find(|it| it.certified.is_some() != tls.is_some()) {
            return Err(EtcdError::Tls(wrong.shown.clone()));
        }
        let thread = HttpThread::start().map_err(|error| EtcdError::Silent {
            address: addresses.join(", "),
            why: format!("no thread: {error}"),
        })?;
        Ok(Self { members, current: AtomicUsize::new(0), thread, tls, patience })
    }

    /// Has the member with this number, counted on from the first one again and again, be asked
    /// first, so that many clients do not ask the same one.
    #[must_use]
    pub fn beginning_with(self, number: usize) -> Self {
        let count = self.members.len().max(1);
        self.current.store(number % count, Ordering::Relaxed);
        self
    }

    /// Returns the addresses of the members.
    #[must_use]
    pub fn name(&self) -> String {
        let shown: Vec<&str> = self.members.iter().map(|member| &*member.shown).collect();
        format!("etcd at {}", shown.join(", "))
    }

    /// Returns the value of a key.
    ///
    /// # Errors
    /// [`EtcdError`].
    pub fn get(&self, key: &[u8]) -> Result<Option<KeyValue>> {
        let answer = self.ask("/v3/kv/range", &json!({ "key": base64(key) }))?;
        Ok(entries(&answer)?.into_iter().next())
    }

    /// Returns all keys that begin with `prefix`, in order, with their values. They are read in
    /// pages of one revision, which become shorter if their values are long.
    ///
    /// # Errors
    /// [`EtcdError`].
    pub fn range(&self, prefix: &[u8]) -> Result<Vec<KeyValue>> {
        let end = after(prefix);
        let (mut from, mut revision, mut all) = (prefix.to_vec(), 0, Vec::new());
        let mut limit = PAGE;
        loop {
            let request = json!({
                "key": base64(&from), "range_end": base64(&end),
                "limit": limit, "revision": revision.to_string(),
            });
            let answer = match self.ask("/v3/kv/range", &request) {
                Err(EtcdError::TooLong) if limit > 1 => {
                    limit /= 2;
                    continue;
                }
                answer => answer?,
            };
            revision = number(&answer["header"]["revision"]).max(revision);
            all.extend(entries(&answer)?);
            match (answer["more"].as_bool(), all.last()) {
                (Some(true), Some(last)) => from = [&last.key[..], &[0]].concat(),
                _ => return Ok(all),
            }
        }
    }

    /// Returns the names that follow `prefix` up to a slash, without reading the keys below them.
    ///
    /// # Errors
    /// [`EtcdError`].
    pub fn folders(&self, prefix: &[u8]) -> Result<Vec<Vec<u8>>> {
        let (mut from, end, mut all) = (prefix.to_vec(), after(prefix), Vec::new());
        loop {
            let (first, last) = (base64(&from), base64(&end));
            let request = json!({ "key": first, "range_end": last, "limit": 1, "keys_only": true });
            let found = entries(&self.ask("/v3/kv/range", &request)?)?;
            let Some(entry) = found.into_iter().next() else { return Ok(all) };
            let name = entry.key.strip_prefix(prefix).unwrap_or_default();
            let length = name.iter().position(|byte| *byte == b'/');
            let name = name.get(..length.unwrap_or(name.len())).unwrap_or_default();
            from = after(&[prefix, name, b"/"].concat());
            all.push(name.to_vec());
        }
    }

    /// Returns what [`Glance`] has about a key and a prefix, by one small request.
    ///
    /// # Errors
    /// [`EtcdError`].
    pub fn glance(&self, key: &[u8], prefix: &[u8]) -> Result<Glance> {
        let counted = json!({
            "key": base64(prefix), "range_end": base64(&after(prefix)), "count_only": true,
        });
        let (ranges, revision) = self.read_together(&[json!({ "key": base64(key) }), counted])?;
        let [single, counted] = &ranges[..] else { return Err(EtcdError::Malformed(TOO_FEW)) };
        let changed = entries(single)?.first().map_or(0, |entry| entry.changed);
        Ok(Glance { changed, count: count_of(counted), revision })
    }

    /// Returns what has changed under prefixes since a revision, this one included, and the
    /// revision at which that was read.
    ///
    /// # Errors
    /// [`EtcdError`].
    pub fn changes(&self, prefixes: &[Vec<u8>], since: i64) -> Result<(Vec<RangeChanges>, i64)> {
        let range = |prefix: &Vec<u8>| {
            json!({
                "key": base64(prefix), "range_end": base64(&after(prefix)),
                "min_mod_revision": since.to_string(),
            })
        };
        let asked: Vec<Value> = prefixes.iter().map(range).collect();
        let (ranges, revision) = self.read_together(&asked)?;
        let read = |range| Ok(RangeChanges { entries: entries(range)?, count: count_of(range) });
        Ok((ranges.iter().map(read).collect::<Result<_>>()?, revision))
    }

    /// Reads ranges of one revision; returns it, too.
    fn read_together(&self, ranges: &[Value]) -> Result<(Vec<Value>, i64)> {
        let asked: Vec<Value> =
            ranges.iter().map(|range| json!({ "request_range": range })).collect();
        let mut answer = self.ask("/v3/kv/txn", &json!({ "success": asked }))?;
        let Value::Array(answers) = answer["responses"].take() else {
            return Err(EtcdError::Malformed(TOO_FEW));
        };
        if answers.len() != ranges.len() {
            return Err(EtcdError::Malformed(TOO_FEW));
        }
        let ranges = answers.into_iter().map(|mut it| it["response_range"].take()).collect();
        Ok((ranges, number(&answer["header"]["revision"])))
    }

    /// Does all operations, if all comparisons hold; returns whether they hold.
    ///
    /// # Errors
    /// [`EtcdError`]. It is not known then whether the operations were done.
    pub fn transact(&self, compare: &[Compare], success: &[Op]) -> Result<bool> {
        Ok(self.transact_at(compare, success)?.is_some())
    }

    /// Does all operations, if all comparisons hold; returns the revision in which they were done,
    /// or `None` if the comparisons do not hold.
    ///
    /// # Errors
    /// [`EtcdError`]. It is not known then whether the operations were done.
    pub fn transact_at(&self, compare: &[Compare], success: &[Op]) -> Result<Option<i64>> {
        let compare: Vec<Value> = compare.iter().map(Compare::message).collect();
        let success: Vec<Value> = success.iter().map(Op::message).collect();
        let answer = self.ask("/v3/kv/txn", &json!({ "compare": compare, "success": success }))?;
        let is_done = answer["succeeded"].as_bool().unwrap_or(false);
        Ok(is_done.then(|| number(&answer["header"]["revision"])))
    }

    /// Makes a lease; returns its number.
    ///
    /// # Errors
    /// [`EtcdError`]; [`EtcdError::Refused`] if etcd grants only longer leases.
    pub fn grant_lease(&self, seconds: u32) -> Result<i64> {
        let request = json!({ "TTL": seconds.to_string(), "ID": "0" });
        let answer = self.ask("/v3/lease/grant", &request)?;
        let granted = number(&answer["TTL"]);
        if granted != i64::from(seconds) {
            let why =
                format!("a lease of {seconds} s became one of {granted} s: ask for {granted}");
            return Err(EtcdError::Refused(why));
        }
        match number(&answer["ID"]) {
            0 => Err(EtcdError::Malformed("a lease has no ID")),
            id => Ok(id),
        }
    }

    /// Renews a lease; returns whether it still exists.
    ///
    /// # Errors
    /// [`EtcdError`].
    pub fn renew_lease(&self, lease: i64) -> Result<bool> {
        let answer = self.ask("/v3/lease/keepalive", &json!({ "ID": lease.to_string() }))?;
        match number(&answer["result"]["ID"]) {
            id if id == lease => Ok(number(&answer["result"]["TTL"]) > 0),
            _ => Err(EtcdError::Malformed("it does not name the lease")),
        }
    }

    /// Ends a lease; its keys are removed.
    ///
    /// # Errors
    /// [`EtcdError`].
    pub fn revoke_lease(&self, lease: i64) -> Result<()> {
        self.ask("/v3/lease/revoke", &json!({ "ID": lease.to_string() })).map(drop)
    }

    /// Asks the member that answered last, then the others.
    fn ask(&self, path: &'static str, request: &Value) -> Result<Value> {
        let (first, count) = (self.current.load(Ordering::Relaxed), self.members.len());
        let mut failed = None;
        for at in (first..first + count).map(|at| at % count) {
            let Some(member) = self.members.get(at) else { continue };
            match self.ask_member(member, path, request) {
                Err(error @ EtcdError::Silent { .. }) => failed = Some(error),
                Err(error) => return Err(error),
                Ok(answer) => {
                    self.current.store(at, Ordering::Relaxed);
                    return Ok(answer);
                }
            }
        }
        Err(failed.unwrap_or(EtcdError::Malformed("there is no member")))
    }

    fn ask_member(
        &self,
        member: &EtcdMember,
        path: &'static str,
        request: &Value,
    ) -> Result<Value> {
        let silent = |why| EtcdError::Silent { address: member.shown.clone(), why };
        let settings = self.tls.as_ref().map(|settings| settings());
        let tls = settings.zip(member.certified.clone());
        let to = MemberAddress { authority: member.authority.clone(), tls };
        let answer = self.thread.post((to, path), request.to_string(), self.patience);
        let (status, body) = answer.map_err(silent)?;
        let body = body.ok_or(EtcdError::TooLong)?;
        match GatewayAnswer::read(status, &body) {
            GatewayAnswer::Done(answer) => Ok(answer),
            GatewayAnswer::Unable(why) => Err(silent(why)),
            GatewayAnswer::Refused(why) => Err(EtcdError::Refused(why)),
        }
    }
}

/// Reads how many keys a range has.
fn count_of(range: &Value) -> usize {
    usize::try_from(number(&range["count"])).unwrap_or_default()
}

impl EtcdMember {
    fn parse(address: &str) -> Result<Self> {
        let malformed = || EtcdError::Address(address.to_owned());
        let (scheme, authority) = address.split_once("://").ok_or_else(malformed)?;
        let authority = authority.trim_end_matches('/');
        let (host, port) = authority.rsplit_once(':').ok_or_else(malformed)?;
        let is_host = !host.is_empty() && !host.contains(['/', '@', ' ']);
        if !is_host || port.parse::<u16>().is_err() {
            return Err(malformed());
        }
        let certified = match scheme {
            "http" => None,
            "https" => {
                let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
                Some(ServerName::try_from(bare).map_err(|_| malformed())?)
            }
            _ => return Err(malformed()),
        };
        Ok(Self { shown: address.to_owned(), authority: authority.to_owned(), certified })
    }
}

/// Returns the end of the range of all keys that begin with `prefix`: the next key of its length.
pub(crate) fn after(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    // To etcd this is the end of all keys.
    vec![0]
}

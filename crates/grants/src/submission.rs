//! Submitting and dropping credentials.

use std::collections::HashSet;
use std::sync::Arc;

use comity_keynote::{AssertionDigest, UnverifiedReason};
use comity_keys::PublicKey;

use crate::Moment;
use crate::counters::Refusal;
use crate::grants::Grants;
use crate::held::Held;
use crate::held_set::Full;
use crate::limits::CREDENTIALS_PER_SUBMISSION_MAX;
use crate::memory::{Memory, Trusted};
use crate::outcome::Outcome;
use crate::record::{MediumError, Record};
use crate::server_key::ServerKey;
use crate::storage::Urgency;

/// A submitted credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Submitted {
    /// Its digest, by which it can be revoked.
    pub digest: AssertionDigest,
    /// Its signer.
    pub authorizer: PublicKey,
    /// The outcome of its submission.
    pub outcome: Outcome,
}

/// The reason why a submission is refused as a whole.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// A text is not a credential, or its signature is wrong.
    #[error("credential {number}, which begins at line {line}: {why}")]
    Credential {
        /// The number of the credential in the submission, from 1.
        number: usize,
        /// The line of the submission at which it begins, from 1.
        line: usize,
        /// The fault.
        why: UnverifiedReason,
    },
    /// The number of credentials is 0 or too large.
    #[error("a submission has 1 to {CREDENTIALS_PER_SUBMISSION_MAX} credentials, this has {0}")]
    Number(usize),
    /// There is no room.
    #[error(transparent)]
    Full(#[from] Full),
    /// The state folder cannot be written.
    #[error("the credentials cannot be stored: {0}")]
    Store(MediumError),
}

impl SubmitError {
    /// The reason for the statistics.
    const fn refusal(&self) -> Refusal {
        match self {
            Self::Credential { .. } | Self::Number(_) => Refusal::Malformed,
            Self::Full(_) => Refusal::NoRoom,
            Self::Store(_) => Refusal::NotStored,
        }
    }
}

impl Grants {
    /// Stores credentials, separated by empty lines, for the key that submits them. They are on
    /// stable storage when this returns.
    ///
    /// # Errors
    /// [`SubmitError`]; none of the credentials is held.
    pub fn submit(&self, holder: PublicKey, text: &str) -> Result<Vec<Submitted>, SubmitError> {
        let submitted = self.take(holder, text);
        match &submitted {
            Ok(all) => all.iter().for_each(|one| self.counters.submitted(one.outcome)),
            Err(why) => self.counters.refused(why.refusal()),
        }
        submitted
    }

    fn take(&self, holder: PublicKey, text: &str) -> Result<Vec<Submitted>, SubmitError> {
        // Verify signatures before taking the lock, because that takes long.
        let credentials = self.storage.patiently(|| read_all(text))?;
        self.storage.in_turn(|turn| {
            let (submitted, new) = self.judge(&holder, credentials);
            if new.is_empty() {
                return Ok(submitted);
            }
            self.read().check_room(&holder, &new)?;
            let records: Vec<_> = new.iter().map(|held| held.record(holder)).collect();
            self.save(turn, Urgency::Usual, &records).map_err(SubmitError::Store)?;
            let mut memory = self.write();
            for held in &new {
                // There is still room: only the thread that has the storage locked adds
                // credentials.
                let _ = memory.insert(holder, held);
            }
            drop(memory);
            self.changed();
            Ok(submitted)
        })
    }

    /// Decides the outcome of each credential in a submission; also returns those to store.
    fn judge(
        &self,
        holder: &PublicKey,
        credentials: Vec<Arc<Held>>,
    ) -> (Vec<Submitted>, Vec<Arc<Held>>) {
        let (now, accounts, policies) = (self.now(), self.accounts(), self.policies());
        let trusted = Trusted {
            accounts: &accounts,
            by_policy: &|key| policies.iter().any(|policy| policy.names(key)),
            server: self.server_key.as_ref().map(ServerKey::public),
        };
        let memory = self.read();
        let useful = memory.useful(holder, &trusted, &credentials);
        let (mut submitted, mut new) = (Vec::new(), Vec::new());
        for (held, useful) in credentials.into_iter().zip(useful) {
            let outcome = outcome(&memory, holder, &held, useful, now);
            let (digest, authorizer) = (held.digest(), *held.signer());
            submitted.push(Submitted { digest, authorizer, outcome });
            if outcome == Outcome::Held {
                new.push(held);
            }
        }
        (submitted, new)
    }

    /// Removes credentials that a key holds; returns their number.
    ///
    /// # Errors
    /// [`SubmitError::Store`].
    pub fn drop_held(
        &self,
        holder: &PublicKey,
        digests: &[AssertionDigest],
    ) -> Result<usize, SubmitError> {
        self.storage.in_turn(|turn| {
            let digests = self.held_of(holder, digests);
            if digests.is_empty() {
                return Ok(0);
            }
            let dropped =
                |digest: &AssertionDigest| Record::Dropped { holder: *holder, digest: *digest };
            let records: Vec<_> = digests.iter().map(dropped).collect();
            self.save(turn, Urgency::Usual, &records).map_err(SubmitError::Store)?;
            self.write().remove(holder, &digests);
            self.changed();
            Ok(digests.len())
        })
    }

    /// Those of these credentials that a key holds, each once.
    fn held_of(&self, holder: &PublicKey, digests: &[AssertionDigest]) -> Vec<AssertionDigest> {
        let memory = self.read();
        let Some(set) = memory.of(holder) else { return Vec::new() };
        let held = digests.iter().copied().filter(|digest| set.has(digest));
        held.collect::<HashSet<_>>().into_iter().collect()
    }

    /// Forgets expired credentials and revocations. Must be called once a second. When a right has
    /// ended, the clock is stored, so that the right stays ended if the system's clock is set back
    /// and the server restarts.
    ///
    /// # Errors
    /// The state folder cannot be written; the rights have still ended.
    pub fn expire(&self) -> Result<(), MediumError> {
        self.storage.in_turn(|turn| {
            let now = self.now();
            let mut memory = self.write();
            let (ended, forgotten) = (memory.expire(now), memory.revocations.expire(now));
            drop(memory);
            if ended.is_empty() && forgotten.is_empty() {
                return Ok(());
            }
            self.changed();
            if turn.rests(now) {
                // The next attempt stores everything.
                return Ok(());
            }
            let dropped = ended.iter().map(|(holder, digest)| {
                let (holder, digest) = (*holder, *digest);
                Record::Dropped { holder, digest }
            });
            let forgotten = forgotten.into_iter().map(Record::Forgotten);
            let records: Vec<_> = dropped.chain(forgotten).chain([Record::Seen(now)]).collect();
            self.save(turn, Urgency::Usual, &records)
        })
    }
}

/// Reads the credentials of a submission.
fn read_all(text: &str) -> Result<Vec<Arc<Held>>, SubmitError> {
    let parts = parts(text);
    if parts.is_empty() || parts.len() > CREDENTIALS_PER_SUBMISSION_MAX {
        return Err(SubmitError::Number(parts.len()));
    }
    let read = |(at, (line, text)): (usize, &(usize, String))| {
        let (number, line) = (at + 1, *line);
        let held = Held::read(text).map(Arc::new);
        held.map_err(|why| SubmitError::Credential { number, line, why })
    };
    parts.iter().enumerate().map(read).collect()
}

/// Bytes of a usual credential.
const CREDENTIAL_BYTES: usize = 512;

/// The parts of a text between empty lines, and the lines at which they begin.
fn parts(text: &str) -> Vec<(usize, String)> {
    let mut parts: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (at, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            is_open = false;
            continue;
        }
        match parts.last_mut().filter(|_| is_open) {
            Some((_, part)) => part.push_str(line),
            None => {
                let mut part = String::with_capacity(CREDENTIAL_BYTES);
                part.push_str(line);
                parts.push((at + 1, part));
            }
        }
        is_open = true;
        if let Some((_, part)) = parts.last_mut() {
            part.push('\n');
        }
    }
    parts
}

fn outcome(
    memory: &Memory,
    holder: &PublicKey,
    held: &Held,
    useful: Result<(), Outcome>,
    now: Moment,
) -> Outcome {
    let digest = held.digest();
    if memory.revocations.has_credential(&digest) {
        Outcome::Revoked
    } else if memory.of(holder).is_some_and(|set| set.has(&digest)) {
        Outcome::Known
    } else if held.until <= now {
        Outcome::Ended
    } else {
        useful.err().unwrap_or(Outcome::Held)
    }
}

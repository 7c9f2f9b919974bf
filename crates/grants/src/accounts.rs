//! The keys of people who have an account on the server.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use comity_keys::PublicKey;
use comity_vfs::{Cred, Disk};

use crate::limits::{ACCOUNT_LINE_BYTES_MAX, ACCOUNTS_MAX};

/// An account that a key is bound to: the key acts as this account, and may grant others what the
/// account may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The name of the user.
    pub user: String,
    /// The ids of the user on the server.
    pub cred: Cred<Disk>,
}

/// A line of an accounts file: `user="NAME"` and a key, as `authorized_keys` has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The name of the user.
    pub user: String,
    /// The key.
    pub key: PublicKey,
    /// The comment of the key.
    pub comment: String,
}

/// The error of an accounts file: its first invalid line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct BadLine {
    /// The number of the line, from 1.
    pub line: usize,
    /// The fault, and what was expected.
    pub why: String,
}

/// The reason why the ids of a user are unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoIds<E> {
    /// There is no such user.
    NoUser,
    /// The look-up failed.
    Failed(E),
}

/// The accounts by their keys.
#[derive(Debug, Default)]
pub struct Accounts(HashMap<PublicKey, Arc<Account>>);

impl Accounts {
    /// Makes a table of bindings by looking up each user. A user without ids on this server is left
    /// out. If a look-up fails, the key keeps its account in `before`. Bindings of both kinds are
    /// returned.
    pub fn looked_up<E>(
        bindings: &[Binding],
        before: &Self,
        ids: impl Fn(&str) -> Result<Option<Cred<Disk>>, E>,
    ) -> (Self, Vec<(Binding, NoIds<E>)>) {
        let (mut table, mut without) = (HashMap::new(), Vec::new());
        for binding in bindings.iter().take(ACCOUNTS_MAX) {
            let Binding { user, key, .. } = binding;
            let account = match ids(user) {
                Ok(Some(cred)) => Some(Arc::new(Account { user: user.clone(), cred })),
                Ok(None) => {
                    without.push((binding.clone(), NoIds::NoUser));
                    None
                }
                Err(error) => {
                    without.push((binding.clone(), NoIds::Failed(error)));
                    before.get(key).filter(|known| known.user == *user).cloned()
                }
            };
            table.extend(account.map(|account| (*key, account)));
        }
        (Self(table), without)
    }

    /// Makes a table of bindings. Bindings of users without ids on this server are left out, and
    /// returned.
    pub fn new(
        bindings: &[Binding],
        ids: impl Fn(&str) -> Option<Cred<Disk>>,
    ) -> (Self, Vec<Binding>) {
        let ids = |user: &str| Ok::<_, Infallible>(ids(user));
        let (accounts, without) = Self::looked_up(bindings, &Self::default(), ids);
        (accounts, without.into_iter().map(|(binding, _)| binding).collect())
    }

    /// The account of a key.
    #[must_use]
    pub fn get(&self, key: &PublicKey) -> Option<&Arc<Account>> {
        self.0.get(key)
    }

    /// Returns whether no key is bound.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Binding {
    /// Reads an accounts file. Empty lines and lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// The first invalid line: a server must not start with a part of its accounts.
    pub fn read_all(text: &str) -> Result<Vec<Self>, BadLine> {
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        lines.map(|(line, text)| read(text).map_err(|why| BadLine { line, why })).collect()
    }

    /// Writes the line that [`Binding::read_all`] reads.
    #[must_use]
    pub fn line(&self) -> String {
        format!("user=\"{}\" {}", self.user, self.key.to_openssh(&self.comment))
    }
}

fn read(line: &str) -> Result<Binding, String> {
    if line.len() > ACCOUNT_LINE_BYTES_MAX {
        return Err(format!("more than {ACCOUNT_LINE_BYTES_MAX} bytes"));
    }
    let rest = line.strip_prefix("user=\"").ok_or("expected user=\"NAME\" before the key")?;
    let (user, key) = rest.split_once('"').ok_or("the name of the user has no closing quote")?;
    if user.is_empty() || user.contains(|char: char| char.is_control() || char.is_whitespace()) {
        return Err(format!("{user:?} is not the name of a user"));
    }
    let (user, key) = (user.to_owned(), key.trim());
    let (key, comment) = match key.split_whitespace().count() {
        1 => (key.parse().map_err(|why| format!("{why}"))?, String::new()),
        _ => PublicKey::from_openssh(key).map_err(|why| why.to_string())?,
    };
    Ok(Binding { user, key, comment })
}

#[cfg(test)]
mod tests {
    use super::*;
    use comity_keys::{Algorithm, PrivateKey, Signer};
    use comity_vfs::{Gid, Uid};

    fn key() -> PublicKey {
        *PrivateKey::generate(Algorithm::Ed25519).unwrap().public_key()
    }

    #[test]
    fn a_binding_is_read_back_from_its_line() {
        let binding = Binding { user: "alice".into(), key: key(), comment: "alice at work".into() };
        let text = format!("# people\n\n{}\n", binding.line());
        assert_eq!(Binding::read_all(&text), Ok(vec![binding.clone()]));
        let plain = format!("user=\"alice\" {}", binding.key);
        let without = Binding { comment: String::new(), ..binding };
        assert_eq!(Binding::read_all(&plain), Ok(vec![without]));
    }

    #[test]
    fn an_error_names_its_line() {
        let key = key();
        for (line, part) in [
            (key.to_string(), "expected user="),
            (format!("user=\"alice {key}"), "no closing quote"),
            (format!("user=\"\" {key}"), "not the name of a user"),
            (format!("user=\"a b\" {key}"), "not the name of a user"),
            ("user=\"alice\" ssh-dss AAAA".into(), "key"),
            ("user=\"alice\"".into(), "key"),
            (format!("user=\"alice\" command=\"x\" {}", key.to_openssh("")), "key"),
            (format!("user=\"alice\" {}", "x".repeat(20_000)), "bytes"),
        ] {
            let error = Binding::read_all(&format!("#\n{line}\n")).unwrap_err();
            assert_eq!(error.line, 2, "{line:.60}");
            assert!(error.why.contains(part), "{}", error.why);
        }
    }

    #[test]
    fn a_failed_look_up_keeps_an_account_and_a_removed_user_loses_it() {
        let bind = |user: &str| Binding { user: user.into(), key: key(), comment: String::new() };
        let (known, gone, moved) = (bind("alice"), bind("bob"), bind("carol"));
        let cred = Cred::new(Uid::new(1000), Gid::new(100));
        let all = [known.clone(), gone.clone(), moved.clone()];
        let (before, _) = Accounts::new(&all, |_| Some(cred.clone()));
        let moved = Binding { user: "dave".into(), ..moved };
        let bindings = [known.clone(), gone.clone(), moved.clone()];
        let (after, without) = Accounts::looked_up(&bindings, &before, |user| match user {
            "bob" => Ok(None),
            _ => Err("no answer"),
        });
        assert_eq!(after.get(&known.key), before.get(&known.key));
        assert_eq!(after.get(&gone.key), None);
        // The old account of this key belongs to another user, so it must not be kept.
        assert_eq!(after.get(&moved.key), None);
        let failed = || NoIds::Failed("no answer");
        assert_eq!(without, [(known, failed()), (gone, NoIds::NoUser), (moved, failed())]);
    }

    #[test]
    fn a_user_without_ids_is_left_out_and_returned() {
        let bind = |user: &str| Binding { user: user.into(), key: key(), comment: String::new() };
        let (known, unknown) = (bind("alice"), bind("mallory"));
        let cred = Cred::new(Uid::new(1000), Gid::new(100));
        let ids = |user: &str| (user == "alice").then(|| cred.clone());
        let (accounts, left) = Accounts::new(&[known.clone(), unknown.clone()], ids);
        assert_eq!(accounts.get(&known.key).map(|found| &found.cred), Some(&cred));
        assert_eq!(accounts.get(&unknown.key), None);
        assert_eq!(left, [unknown]);
    }
}

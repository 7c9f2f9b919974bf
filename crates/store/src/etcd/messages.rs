//! The messages of etcd's JSON gateway.

use base64ct::{Base64, Encoding};
use serde_json::{Value, json};

use super::{EtcdError, Result, after};

/// A key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyValue {
    /// The key.
    pub key: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
    /// The revision of the store in which the key was made.
    pub created: i64,
    /// The revision of the store in which the key was last changed.
    pub changed: i64,
}

/// A condition of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compare {
    /// The key was made in this revision and exists since; 0: it does not exist.
    Created(Vec<u8>, i64),
    /// The key was last changed in this revision; 0: it does not exist.
    Changed(Vec<u8>, i64),
}

impl Compare {
    pub(super) fn message(&self) -> Value {
        match self {
            Self::Created(key, revision) => json!({
                "key": base64(key), "target": "CREATE", "result": "EQUAL",
                "create_revision": revision.to_string(),
            }),
            Self::Changed(key, revision) => json!({
                "key": base64(key), "target": "MOD", "result": "EQUAL",
                "mod_revision": revision.to_string(),
            }),
        }
    }
}

/// An operation of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Sets the value of a key.
    Put {
        /// The key.
        key: Vec<u8>,
        /// The value.
        value: Vec<u8>,
        /// The lease with which the key ends; 0 for none.
        lease: i64,
    },
    /// Removes a key.
    Delete(Vec<u8>),
    /// Removes all keys that begin with this.
    DeletePrefix(Vec<u8>),
}

impl Op {
    /// Sets the value of a key without a lease.
    #[must_use]
    pub fn put(key: Vec<u8>, value: Vec<u8>) -> Self {
        Self::Put { key, value, lease: 0 }
    }

    pub(super) fn message(&self) -> Value {
        match self {
            Self::Put { key, value, lease } => json!({ "request_put": {
                "key": base64(key), "value": base64(value), "lease": lease.to_string(),
            } }),
            Self::Delete(key) => json!({ "request_delete_range": { "key": base64(key) } }),
            Self::DeletePrefix(prefix) => json!({ "request_delete_range": {
                "key": base64(prefix), "range_end": base64(&after(prefix)),
            } }),
        }
    }

    /// Returns whether two operations may concern the same key. etcd refuses a transaction that
    /// sets a key twice, or sets and removes it.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::DeletePrefix(prefix), other) => other.key().starts_with(prefix),
            (this, Self::DeletePrefix(prefix)) => this.key().starts_with(prefix),
            (this, other) => this.key() == other.key(),
        }
    }

    pub(crate) fn key(&self) -> &[u8] {
        let (Self::Put { key, .. } | Self::Delete(key) | Self::DeletePrefix(key)) = self;
        key
    }
}

pub(super) fn base64(bytes: &[u8]) -> String {
    Base64::encode_string(bytes)
}

/// Reads a number of 64 bits, which JSON has as a text. A missing one is 0.
pub(super) fn number(value: &Value) -> i64 {
    let text = value.as_str().and_then(|text| text.parse().ok());
    text.or_else(|| value.as_i64()).unwrap_or(0)
}

/// Reads the keys and values of an answer.
pub(super) fn entries(answer: &Value) -> Result<Vec<KeyValue>> {
    let bytes = |value: &Value| match value {
        Value::Null => Ok(Vec::new()),
        value => {
            let text = value.as_str().ok_or(EtcdError::Malformed("a key is no text"))?;
            Base64::decode_vec(text).map_err(|_| EtcdError::Malformed("a key is no base64"))
        }
    };
    let found = answer["kvs"].as_array().into_iter().flatten();
    found
        .map(|entry| {
            Ok(KeyValue {
                key: bytes(&entry["key"])?,
                value: bytes(&entry["value"])?,
                created: number(&entry["create_revision"]),
                changed: number(&entry["mod_revision"]),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prefix_comes_after_all_keys_that_begin_with_it() {
        for (prefix, end) in [(&b"a/"[..], &b"a0"[..]), (b"a\xff", b"b"), (b"\xff\xff", b"\0")] {
            assert_eq!(after(prefix), end);
        }
    }

    #[test]
    fn a_malformed_answer_is_an_error() {
        for answer in [json!({ "kvs": [{ "key": 7 }] }), json!({ "kvs": [{ "key": "?" }] })] {
            assert!(entries(&answer).is_err());
        }
        assert_eq!(entries(&json!({ "kvs": 7 })).unwrap(), []);
    }

    #[test]
    fn operations_meet_if_they_may_concern_one_key() {
        let put = |key: &[u8]| Op::put(key.to_vec(), Vec::new());
        let (prefix, single) = (Op::DeletePrefix(b"a/".to_vec()), Op::Delete(b"a/b".to_vec()));
        assert!(put(b"a/b").meets(&single) && put(b"a/b").meets(&prefix));
        assert!(prefix.meets(&single) && !put(b"a").meets(&prefix) && !put(b"c").meets(&single));
    }
}

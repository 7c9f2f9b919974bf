//! Limits on the cost of reading a key. Keys come from peers, files and agents.

use std::time::Duration;

/// Longest text or DER of a key or certificate in bytes: a certificate with many names has some
/// thousands.
pub const FILE_BYTES_MAX: usize = 64 << 10;

/// Longest line of an OpenSSH public key with its comment, in bytes.
pub const LINE_BYTES_MAX: usize = 8 << 10;

/// Most rounds of bcrypt for a passphrase: ssh-keygen uses 24 by default, and a thousand take some
/// seconds.
pub const BCRYPT_ROUNDS_MAX: u32 = 1024;

/// Longest message of ssh-agent, in bytes: the limit of OpenSSH's own agent.
pub const AGENT_MESSAGE_BYTES_MAX: usize = 256 << 10;

/// Most keys that an agent may list.
pub const AGENT_KEYS_MAX: usize = 1024;

/// Longest wait for an agent: its user may have to confirm a signature or touch a device.
pub const AGENT_PATIENCE: Duration = Duration::from_secs(60);

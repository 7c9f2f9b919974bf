//! The limits of this crate, with their reasons.

/// Most credentials that one key holds. A project with a grant for each of its folders has
/// hundreds; the time of a query does not depend on it.
pub const CREDENTIALS_PER_KEY_MAX: usize = 16_384;

/// Most bytes of credentials that one key holds.
pub const CREDENTIAL_BYTES_PER_KEY_MAX: usize = 16 << 20;

/// Most bytes of all credentials.
pub const CREDENTIAL_BYTES_MAX: usize = 512 << 20;

/// Most keys that hold credentials.
pub const HOLDERS_MAX: usize = 65_536;

/// Most credentials in one submission: a chain has one for each link.
pub const CREDENTIALS_PER_SUBMISSION_MAX: usize = 64;

/// Most objects of one creator that are remembered, about 200 bytes each; beyond it the oldest is
/// forgotten. A credential that was fetched and submitted stays effective.
pub const CREATIONS_PER_KEY_MAX: usize = 4_096;

/// Most objects of all creators that are remembered.
pub const CREATIONS_MAX: usize = 131_072;

/// Most assertions in the policy of one export: each is evaluated for a new decision.
pub const POLICY_ASSERTIONS_MAX: usize = 1_024;

/// Most accounts with a key.
pub const ACCOUNTS_MAX: usize = 65_536;

/// Most remembered revocations by one key without an account.
pub const REVOCATIONS_PER_KEY_MAX: usize = 1_024;

/// Most remembered revocations by one key with an account.
pub const REVOCATIONS_PER_ACCOUNT_MAX: usize = 16_384;

/// Most remembered revocations by all keys. Those without an account may use half: anybody can
/// create such keys and grant them something.
pub const REVOCATIONS_BY_KEYS_MAX: usize = 262_144;

/// Most remembered revocations by administrators. Keys cannot use up this room.
pub const REVOCATIONS_BY_ADMINISTRATOR_MAX: usize = 65_536;

/// First pause in milliseconds after records could not be stored; it doubles.
pub const STORAGE_PAUSE_FIRST_MILLISECONDS: u64 = 1_000;

/// Longest pause in milliseconds after records could not be stored. An attempt writes everything.
pub const STORAGE_PAUSE_MAX_MILLISECONDS: u64 = 60_000;

/// Most grantors under whose ids one key acts. A key with grants by more people does not get the
/// rights of the last ones.
pub const GRANTORS_PER_KEY_MAX: usize = 64;

/// Decisions cached for each key by default, about 200 bytes each. DisCFS performed best with 256.
pub const DECISIONS_DEFAULT: usize = 1024;

/// Most decisions that may be cached for each key.
pub const DECISIONS_MAX: usize = 65_536;

/// Time in milliseconds for which a decision is valid: if a program on the server moves a file, its
/// rights change within this time. Renames by clients take effect at once.
pub const DECISION_MILLISECONDS: u64 = 1_000;

/// Deepest directory whose place is searched for.
pub const DEPTH_MAX: usize = 256;

/// Most directories of one file that are considered.
pub const DIRECTORIES_PER_FILE_MAX: usize = 8;

/// Files and directories whose place is remembered.
pub const PLACES_MAX: usize = 65_536;

/// Most bytes of a line of an accounts file.
pub const ACCOUNT_LINE_BYTES_MAX: usize = 16 << 10;

/// Most granted objects of one key to which paths are searched. It reaches further ones by their
/// handles, or below one of these.
pub const WAYS_OBJECTS_MAX: usize = 4_096;

/// Time in milliseconds for which a path to a granted object is valid.
pub const WAY_MILLISECONDS: u64 = 5_000;

/// Keys whose last submission is remembered, for clients that received only an error number.
pub const SUBMISSIONS_MAX: usize = 1_024;

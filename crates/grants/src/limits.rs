//! Bounds, each with its reason.

/// Most credentials that are held for one key. A project with a grant for each of its folders has
/// hundreds; the query time does not depend on it.
pub const CREDENTIALS_PER_KEY_MAX: usize = 16_384;

/// Most bytes of credentials that are held for one key.
pub const CREDENTIAL_BYTES_PER_KEY_MAX: usize = 16 << 20;

/// Most bytes of credentials that are held in all.
pub const CREDENTIAL_BYTES_MAX: usize = 512 << 20;

/// Most keys that credentials are held for.
pub const HOLDERS_MAX: usize = 65_536;

/// Most credentials of one submission: a chain has as many as it has links.
pub const CREDENTIALS_PER_SUBMISSION_MAX: usize = 64;

/// Most objects of one creator that are remembered, about 200 bytes each: the oldest makes room. A
/// credential that was fetched and submitted counts on.
pub const CREATIONS_PER_KEY_MAX: usize = 4_096;

/// Most objects of all creators that are remembered.
pub const CREATIONS_MAX: usize = 131_072;

/// Most assertions of the policy of one export: each is evaluated for a new decision.
pub const POLICY_ASSERTIONS_MAX: usize = 1_024;

/// Most accounts with a key.
pub const ACCOUNTS_MAX: usize = 65_536;

/// Most revocations of one key without an account that are remembered at one time.
pub const REVOCATIONS_PER_KEY_MAX: usize = 1_024;

/// The same for a key with an account.
pub const REVOCATIONS_PER_ACCOUNT_MAX: usize = 16_384;

/// Most revocations of all keys. Those without an account have half of them: a key may make as
/// many keys as it likes and grant them something.
pub const REVOCATIONS_BY_KEYS_MAX: usize = 262_144;

/// Most revocations of administrators, for which nobody else can use up the room.
pub const REVOCATIONS_BY_ADMINISTRATOR_MAX: usize = 65_536;

/// First pause after records could not be stored; each one that follows is twice as long.
pub const STORAGE_PAUSE_FIRST_MILLISECONDS: u64 = 1_000;

/// Longest pause after records could not be stored. A try writes all that is known.
pub const STORAGE_PAUSE_MAX_MILLISECONDS: u64 = 60_000;

/// Most grantors whose ids one key acts under. A key with grants of more people is denied the
/// rights of those who come last.
pub const GRANTORS_PER_KEY_MAX: usize = 64;

/// Decisions that are kept for each key, unless the server is told otherwise. DisCFS reached its
/// best with 256; each takes about 200 bytes.
pub const DECISIONS_DEFAULT: usize = 1024;

/// Most decisions that may be kept for each key.
pub const DECISIONS_MAX: usize = 65_536;

/// Time in which a decision holds: a file that a program on the server moves out of a directory is
/// noticed no later. Renames by clients are noticed at once.
pub const DECISION_MILLISECONDS: u64 = 1_000;

/// Deepest directory whose place is found out.
pub const DEPTH_MAX: usize = 256;

/// Most directories of one file that are taken into account.
pub const DIRECTORIES_PER_FILE_MAX: usize = 8;

/// Files and directories whose place is remembered.
pub const PLACES_MAX: usize = 65_536;

/// Most bytes of a line of an accounts file.
pub const ACCOUNT_LINE_BYTES_MAX: usize = 16 << 10;

/// Most objects to which ways are found for one key. It reaches other granted objects by their
/// handles, or below one of these.
pub const WAYS_OBJECTS_MAX: usize = 4_096;

/// Time in which the way to what was granted holds after it was found out.
pub const WAY_MILLISECONDS: u64 = 5_000;

/// Keys whose last submission is remembered, for clients that were told no more than an error.
pub const SUBMISSIONS_MAX: usize = 1_024;

//! Bounds of what an assertion may cost. Every assertion may come from a hostile peer.

/// Longest text of an assertion, in bytes: a grant takes some hundreds, a policy with many keys
/// some thousands.
pub const TEXT_BYTES_MAX: usize = 64 << 10;

/// Most tokens in all fields of an assertion: what is kept of a token is larger than its text.
pub const TOKENS_MAX: usize = 16 << 10;

/// Deepest nesting of parentheses, braces and prefix operators, because the parser and the
/// evaluators recurse.
pub const DEPTH_MAX: usize = 64;

/// Most principals in the Licensees field.
pub const LICENSEES_MAX: usize = 1024;

/// Most names in the Local-Constants field.
pub const CONSTANTS_MAX: usize = 256;

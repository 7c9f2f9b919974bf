//! Limits on the cost of an assertion, which may come from a hostile peer.

/// Longest text of an assertion in bytes: a grant has some hundreds, a policy with many keys some
/// thousands.
pub const TEXT_BYTES_MAX: usize = 64 << 10;

/// Longest text of several assertions in bytes. Only an administrator writes such texts.
pub const FILE_BYTES_MAX: usize = 4 << 20;

/// Longest text of a signed assertion in bytes. In memory an assertion takes up to thirty times its
/// text, and a peer may send many.
pub const SIGNED_TEXT_BYTES_MAX: usize = 16 << 10;

/// Most tokens in all fields of an assertion: a token takes more memory than its text.
pub const TOKENS_MAX: usize = 16 << 10;

/// Deepest nesting of parentheses, braces and prefix operators, because the parser and the
/// evaluators are recursive.
pub const DEPTH_MAX: usize = 64;

/// Most principals in the Licensees field.
pub const LICENSEES_MAX: usize = 1024;

/// Most names in the Local-Constants field.
pub const CONSTANTS_MAX: usize = 256;

/// Most single-character tests in a regular expression after its intervals are expanded: matching
/// takes time for each of them and each character of the text.
pub const REGEX_WEIGHT_MAX: usize = 256;

/// Most groups in a regular expression, because a match copies each of them.
pub const REGEX_GROUPS_MAX: usize = 32;

/// Most memory that the program of a regular expression may take, in bytes.
pub const REGEX_PROGRAM_BYTES_MAX: usize = 64 << 10;

/// Most regular expressions of an assertion that are compiled in advance, because each use searches
/// among them; further ones are compiled when used.
pub const PATTERNS_READY_MAX: usize = 32;

/// Most prepared patterns that need an engine's program, which takes memory; the others search for
/// a plain text.
pub const PROGRAMS_READY_MAX: usize = 4;

/// Longest string that an expression may produce, in bytes. RFC 2704 requires 2,048 characters.
pub const STRING_BYTES_MAX: usize = 64 << 10;

/// Most steps of one evaluation. A step is a part of an expression, or some bytes of a string, and
/// takes about ten nanoseconds. A chain of three canonical grants takes about a hundred steps.
pub const EVALUATION_STEPS_MAX: usize = 500_000;

/// Steps to compile a regular expression that was not compiled in advance.
pub const REGEX_READING_STEPS: usize = 2_000;

/// Further steps for each single-character test in it.
pub const REGEX_WEIGHT_STEPS: usize = 50;

/// Longest comment of a grant, in bytes.
pub const COMMENT_BYTES_MAX: usize = 1024;

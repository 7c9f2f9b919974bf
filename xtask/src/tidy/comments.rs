//! Blocks of comments, and `cargo xtask comments`, which prints randomly chosen blocks, so that a
//! reviewer judges a sample that was not selected by hand.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use comity_vfs::SplitMix64;

use super::prose;
use super::sources::Tree;

/// Options of the random sample.
#[derive(Args)]
pub(crate) struct Options {
    /// The seed; the same seed chooses the same blocks of the same sources.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of blocks to print.
    #[arg(long, default_value_t = 100)]
    count: usize,
    /// Choose only from files below this folder, such as crates/state.
    #[arg(long, default_value = "")]
    under: String,
    /// Choose only blocks that begin with a relative clause instead of a sentence, also in
    /// documents and scripts.
    #[arg(long)]
    headless: bool,
}

/// Consecutive lines of comments of one kind, or a paragraph of prose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    /// The number of its first line, counted from 1.
    pub(super) line: usize,
    /// The lines without their comment signs; lines that are fenced as code are left out.
    pub(super) lines: Vec<String>,
}

/// First words of a clause that is not a sentence.
const OPENINGS: &[&str] = &[
    "What", "Whatever", "Who", "Whoever", "Whose", "Whom", "Whether", "Which", "Where", "How",
    "That",
];

/// First words of a relative clause that is used as a subject, also after another sentence, where
/// "Where there is none, ..." and "That is so" are sentences.
const RELATIVES: &[&str] = &["What", "Who", "Whoever", "Whose", "Whom", "Which"];

impl Block {
    /// Returns whether the block begins with a relative clause, or one like it, instead of a
    /// sentence or a noun, or a later sentence has a relative clause as its subject. A question is
    /// a sentence.
    pub(super) fn is_headless(&self) -> bool {
        let text = self.lines.join(" ");
        let mut sentences = text.split_inclusive(". ").flat_map(|part| part.split_inclusive("? "));
        let is_opening = sentences.next().is_some_and(|sentence| begins(sentence, OPENINGS));
        is_opening || sentences.any(|sentence| begins(sentence, RELATIVES))
    }
}

/// Returns whether a sentence that is not a question begins with one of these words.
fn begins(sentence: &str, words: &[&str]) -> bool {
    let first = sentence.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    let end = sentence.find(['?', '.']).map(|at| sentence.as_bytes()[at]);
    words.contains(&first) && end != Some(b'?')
}

/// The blocks of a Rust source.
pub(super) fn blocks(text: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut before = None;
    let mut fenced = false;
    for (number, line) in (1..).zip(text.lines()) {
        let comment = split(line.trim_start());
        let kind = comment.map(|(kind, _)| kind);
        if kind.is_some() && kind != before {
            found.push(Block { line: number, lines: Vec::new() });
            fenced = false;
        }
        if let (Some((_, text)), Some(block)) = (comment, found.last_mut()) {
            let is_fence = text.starts_with("```");
            fenced ^= is_fence;
            if !fenced && !is_fence && !text.is_empty() {
                block.lines.push(text.to_owned());
            }
        }
        before = kind;
    }
    found.retain(|block| !block.lines.is_empty());
    found
}

/// The blocks of a file by the ending of its name: comments of Rust, Python, shell and TOML, and
/// prose of markdown.
pub(super) fn blocks_of(path: &str, text: &str) -> Vec<Block> {
    match path.rsplit('.').next() {
        Some("rs") => blocks(text),
        Some("md") => prose::paragraphs(text),
        Some("py" | "sh" | "toml") => prose::hash_comments(text),
        _ => Vec::new(),
    }
}

/// Returns the slashes of a comment line and the text after them.
fn split(line: &str) -> Option<(&'static str, &str)> {
    let kinds = ["//!", "///", "//"].into_iter();
    kinds.filter_map(|kind| Some((kind, line.strip_prefix(kind)?.trim()))).next()
}

/// Prints randomly chosen blocks.
///
/// # Errors
/// A file that cannot be read, or a Rust source that cannot be parsed.
pub(crate) fn command(root: &Path, options: &Options) -> Result<ExitCode> {
    let mut all: Vec<(String, Block)> = Vec::new();
    let texts = Tree::load(root)?.texts.into_iter();
    let texts = texts.filter(|text| options.headless || text.path.ends_with(".rs"));
    for text in texts.filter(|text| text.path.starts_with(&options.under)) {
        let blocks = blocks_of(&text.path, &text.text).into_iter();
        all.extend(blocks.map(|block| (text.path.clone(), block)));
    }
    all.retain(|(_, block)| !options.headless || block.is_headless());
    let total = all.len();
    let mut drawn = draw(all, options.count, options.seed);
    drawn.sort_by(|(path, block), (other, later)| (path, block.line).cmp(&(other, later.line)));
    for (path, block) in &drawn {
        println!("{path}:{}:\n    {}", block.line, block.lines.join("\n    "));
    }
    println!("comments: {} of {total} blocks", drawn.len());
    Ok(ExitCode::SUCCESS)
}

/// Chooses `count` values at random, by the first steps of a shuffle.
fn draw<T>(mut all: Vec<T>, count: usize, seed: u64) -> Vec<T> {
    let (count, mut numbers) = (count.min(all.len()), SplitMix64::new(seed));
    for at in 0..count {
        let other = at + numbers.below((all.len() - at) as u64) as usize;
        all.swap(at, other);
    }
    all.truncate(count);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_kind_are_one_block_and_code_is_left_out() {
        let text =
            "//! A.\n//! B.\n\n/// C.\n/// ```\n/// Who();\n/// ```\n// D.\nfn f() {}\n// E.";
        let lines = |block: &Block| (block.line, block.lines.join("|"));
        let found: Vec<_> = blocks(text).iter().map(lines).collect();
        let expected = [(1, "A.|B."), (4, "C."), (8, "D."), (10, "E.")];
        assert_eq!(found, expected.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn clauses_without_a_head_are_told_from_sentences() {
        let is_headless = |text: &str| blocks(text)[0].is_headless();
        for bad in ["// Who renames.", "/// What is held\n/// by others. Why?", "// That it is so."]
        {
            assert!(is_headless(bad), "{bad}");
        }
        for bad in
            ["// Locks it.\n// Who waits is told.", "// Why? Somebody may. What is held ends."]
        {
            assert!(is_headless(bad), "{bad}");
        }
        for good in ["// Whole files.", "/// What if it fails?", "// Returns whether it is so."] {
            assert!(!is_headless(good), "{good}");
        }
        for good in ["// Locks it. What if it fails? It ends.", "// Locks it. Where it is, all is."]
        {
            assert!(!is_headless(good), "{good}");
        }
    }

    #[test]
    fn a_seed_draws_the_same_again_and_nothing_twice() {
        let all: Vec<u32> = (0..50).collect();
        let mut drawn = draw(all.clone(), 20, 7);
        assert_eq!(drawn, draw(all.clone(), 20, 7));
        assert_ne!(drawn, draw(all.clone(), 20, 8));
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn.len(), 20);
        assert_eq!(draw(all, 60, 7).len(), 50);
    }
}

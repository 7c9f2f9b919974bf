//! Blocks of text outside Rust: paragraphs of markdown, and comments that begin with `#`.

use super::comments::Block;

/// The paragraphs of a document, and the items of its lists that are sentences. Headings, tables,
/// code and other items of lists are left out.
pub(super) fn paragraphs(text: &str) -> Vec<Block> {
    let mut found: Vec<(bool, Block)> = Vec::new();
    let (mut is_open, mut is_quoted) = (false, false);
    for (number, line) in (1..).zip(text.lines()) {
        let words = line.trim_start();
        let is_fence = words.starts_with("```");
        is_quoted ^= is_fence;
        let item = item(words);
        let is_code = !is_open && item.is_none() && line.starts_with("    ");
        if is_quoted || is_fence || is_code || words.is_empty() || words.starts_with(['#', '|']) {
            is_open = false;
            continue;
        }
        if !is_open || item.is_some() {
            found.push((item.is_some(), Block { line: number, lines: Vec::new() }));
        }
        if let Some((_, block)) = found.last_mut() {
            block.lines.push(item.unwrap_or(words).to_owned());
        }
        is_open = true;
    }
    let is_whole = |block: &Block| block.lines.last().is_some_and(|line| line.ends_with('.'));
    let chosen = found.into_iter().filter(|(is_item, block)| !is_item || is_whole(block));
    chosen.map(|(_, block)| block).collect()
}

/// The text of the first line of an item of a list.
fn item(line: &str) -> Option<&str> {
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = digits.strip_prefix(". ").filter(|_| digits.len() < line.len());
    line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).or(numbered)
}

/// The comments of a file in which comments begin with `#`. Those after code are left out.
pub(super) fn hash_comments(text: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut is_open = false;
    for (number, line) in (1..).zip(text.lines()) {
        let comment = line.trim_start().strip_prefix('#').filter(|text| !text.starts_with('!'));
        let comment = comment.map(str::trim).filter(|text| !text.is_empty());
        if let Some(words) = comment {
            if !is_open {
                found.push(Block { line: number, lines: Vec::new() });
            }
            found.last_mut().into_iter().for_each(|block| block.lines.push(words.to_owned()));
        }
        is_open = comment.is_some();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(blocks: &[Block]) -> Vec<(usize, String)> {
        blocks.iter().map(|block| (block.line, block.lines.join("|"))).collect()
    }

    #[test]
    fn paragraphs_and_whole_items_of_lists_are_prose() {
        let text = "# Who\n\nA.\nB.\n\n- C\n  d.\n- Who e\n1. F.\n\n\
                    | Who |\n\n    Who()\n\n```\nWho\n```\nG.\n";
        let expected = [(3, "A.|B."), (6, "C|d."), (9, "F."), (18, "G.")];
        assert_eq!(lines(&paragraphs(text)), expected.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn comments_of_scripts_are_found() {
        let text = "#!/bin/sh\n# A.\n#\n# B\n# c.\nx=1 # Who\n  # D.\n";
        let expected = [(2, "A."), (4, "B|c."), (7, "D.")];
        let found = lines(&hash_comments(text));
        assert_eq!(found, expected.map(|(line, text)| (line, text.to_owned())));
    }
}

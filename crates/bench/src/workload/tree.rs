//! Source trees in C that follow from a seed: they can be searched, copied, unpacked and compiled,
//! and the output of the compiled program is known.

use std::fmt::Write;

use crate::rng::Rng;

/// Bytes of a line of comment that fills a source.
const FILLER: &str = " * The quick brown fox jumps over the lazy dog, and nobody is surprised.\n";

/// A tree of C sources.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    /// The number of sources.
    pub(super) files: u64,
    /// The number of directories of the tree.
    pub(super) directories: u64,
    /// The mean size of a source in bytes: sizes are between half of it and one and a half.
    pub(super) file_bytes: u64,
    /// The seed of the texts.
    pub(super) seed: u64,
    /// A word that is put into every hundredth source.
    pub(super) word: String,
}

/// The distance between sources with the word.
const WORD_EVERY: u64 = 100;

/// Numbers of a step of a function: `x = x * factor + term; x ^= x >> shift;`.
struct Step {
    factor: u32,
    term: u32,
    shift: u32,
}

impl Tree {
    /// The directory of a source, below the tree's top.
    pub(super) fn directory(&self, file: u64) -> String {
        format!("d{}", file % self.directories.max(1))
    }

    /// The path of a source, below the tree's top.
    pub(super) fn path(&self, file: u64) -> String {
        format!("{}/m{file}.c", self.directory(file))
    }

    /// The number of sources that contain the word: those it was put into, and others if it is a
    /// common word.
    pub(super) fn with_word(&self) -> u64 {
        let holds = |file: &u64| self.text(*file).contains(&self.word);
        (0..self.files).filter(holds).count() as u64
    }

    /// The text of a source: its functions, then comment up to its size.
    pub(super) fn text(&self, file: u64) -> String {
        let mut text = format!("/* Source {file}, made by comity bench. */\n");
        if file.is_multiple_of(WORD_EVERY) {
            let _ = writeln!(text, "/* {} */", self.word);
        }
        let steps = self.steps(file);
        for (number, Step { factor, term, shift }) in steps.iter().enumerate() {
            let _ = write!(
                text,
                "static unsigned f{number}(unsigned x)\n{{\n    x = x * {factor}u + {term}u;\n    \
                 return x ^ (x >> {shift});\n}}\n\n"
            );
        }
        let _ = write!(text, "unsigned m{file}(unsigned x)\n{{\n");
        (0..steps.len()).for_each(|number| {
            let _ = writeln!(text, "    x = f{number}(x);");
        });
        text.push_str("    return x;\n}\n\n/*\n");
        while (text.len() as u64) < self.size(file) {
            text.push_str(FILLER);
        }
        text.push_str(" */\n");
        text
    }

    /// A program that prints the result of applying `count` sources from `first` on to 1.
    pub(super) fn program(&self, first: u64, count: u64) -> String {
        let mut text = "#include <stdio.h>\n\n".to_owned();
        for file in first..first + count {
            let _ = writeln!(text, "unsigned m{file}(unsigned x);");
        }
        text.push_str("\nint main(void)\n{\n    unsigned x = 1;\n");
        for file in first..first + count {
            let _ = writeln!(text, "    x = m{file}(x);");
        }
        text.push_str("    printf(\"%u\\n\", x);\n    return 0;\n}\n");
        text
    }

    /// Returns the expected output of [`Self::program`].
    pub(super) fn printed(&self, first: u64, count: u64) -> String {
        let value =
            (first..first + count).flat_map(|file| self.steps(file)).fold(1_u32, |x, step| {
                let x = x.wrapping_mul(step.factor).wrapping_add(step.term);
                x ^ (x >> step.shift)
            });
        format!("{value}\n")
    }

    fn size(&self, file: u64) -> u64 {
        let mut rng = Rng::branch(self.seed, file * 2);
        self.file_bytes / 2 + rng.below(self.file_bytes + 1)
    }

    fn steps(&self, file: u64) -> Vec<Step> {
        let mut rng = Rng::branch(self.seed, file * 2 + 1);
        // A function has about 100 bytes; a third of the source is code.
        let count = (self.size(file) / 300).clamp(1, 200);
        let step = |rng: &mut Rng| Step {
            factor: rng.bits() as u32 | 1,
            term: rng.bits() as u32,
            shift: 1 + rng.below(31) as u32,
        };
        (0..count).map(|_| step(&mut rng)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Tree {
        Tree { files: 201, directories: 7, file_bytes: 4000, seed: 3, word: "needle".into() }
    }

    #[test]
    fn texts_follow_from_the_seed_and_have_their_size() {
        let tree = tree();
        assert_eq!(tree.text(5), tree.text(5));
        assert_ne!(tree.text(5), Tree { seed: 4, ..tree.clone() }.text(5));
        let total: usize = (0..tree.files).map(|file| tree.text(file).len()).sum();
        let wanted = (tree.files * tree.file_bytes) as usize;
        assert!(total.abs_diff(wanted) < wanted / 10, "{total}");
    }

    #[test]
    fn the_word_is_in_as_many_sources_as_is_said() {
        assert_eq!(tree().with_word(), 3);
        assert_eq!(Tree { word: "Source".into(), ..tree() }.with_word(), 201);
    }
}

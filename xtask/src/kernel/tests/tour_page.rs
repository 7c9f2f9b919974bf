//! A page of the documentation that shows commands and their output: a trial runs the commands, and
//! compares what they print with the page.

use std::fmt::Write;

use anyhow::{Result, ensure};

/// The page.
pub(super) struct TourPage {
    /// Its path in the checkout.
    pub(super) path: &'static str,
    pub(super) text: &'static str,
    /// The words before `$` that say where a command runs.
    pub(super) places: &'static [&'static str],
}

/// Words after a number that differs between runs, and the word that stands for both.
const UNITS: [(&str, &[&str]); 2] =
    [("TIME", &["ms", "s", "min"]), ("SIZE", &["bytes", "KiB", "MiB", "GiB", "TiB"])];

impl TourPage {
    /// Makes a shell script that prints each command of the page, and then what it prints when it
    /// runs. `as_run` gets the place and the text of a command, and returns what is run for it.
    pub(super) fn script(&self, as_run: impl Fn(&str, &str) -> String) -> Result<String> {
        let mut script = String::new();
        for (place, command) in self.shown().filter_map(|line| self.command(line)) {
            writeln!(script, "cat << 'END'\n{place}$ {command}\nEND")?;
            writeln!(script, "{}", as_run(place, command))?;
        }
        Ok(script)
    }

    /// Returns the blocks of a language, such as the configurations of servers.
    pub(super) fn blocks(&self, language: &str) -> impl Iterator<Item = &'static str> {
        let blocks = self.text.split("```").skip(1).step_by(2);
        blocks.filter_map(move |block| block.strip_prefix(language)?.strip_prefix('\n'))
    }

    /// Compares the commands and their output with the page.
    ///
    /// # Errors
    /// If they differ; the error has both.
    pub(super) fn compare(&self, printed: &str) -> Result<()> {
        let page: String = self.shown().flat_map(|line| [line, "\n"]).collect();
        let (printed, page) = (normalized(printed), normalized(&page));
        let path = self.path;
        ensure!(printed == page, "{path} shows:\n{page}\nand this was printed:\n{printed}");
        Ok(())
    }

    /// The lines of the blocks of the page that show commands.
    fn shown(&self) -> impl Iterator<Item = &'static str> {
        self.blocks("").flat_map(str::lines)
    }

    /// Returns where a command runs, and the command, if a line begins with a prompt.
    fn command(&self, line: &'static str) -> Option<(&'static str, &'static str)> {
        line.split_once("$ ").filter(|(place, _)| self.places.contains(place))
    }
}

/// Replaces names in a command by what they are in the test.
pub(super) fn replace_all(command: &str, names: &[(&str, &str)]) -> String {
    names.iter().fold(command.to_owned(), |text, (name, real)| text.replace(name, real))
}

/// Replaces what differs between runs: numbers before units of time and size, and clientids. Blanks
/// between columns are as many as the longest value needs.
fn normalized(text: &str) -> String {
    text.lines().map(|line| normalized_line(line) + "\n").collect()
}

fn normalized_line(line: &str) -> String {
    let mut words = line.split_whitespace().peekable();
    let mut level = Vec::new();
    while let Some(word) = words.next() {
        let unit = words.peek().and_then(|next| unit(next));
        match word.parse::<f64>().ok().and(unit) {
            Some(unit) => {
                level.extend(["N", unit]);
                words.next();
            }
            None if is_clientid(word) => level.push("CLIENTID"),
            None => level.push(word),
        }
    }
    level.join(" ")
}

fn unit(word: &str) -> Option<&'static str> {
    UNITS.iter().find(|(_, words)| words.contains(&word)).map(|(unit, _)| *unit)
}

fn is_clientid(word: &str) -> bool {
    word.len() == 16 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: TourPage = TourPage {
        path: "page.md",
        text: "Text.\n\n```toml\nport = 1\n```\n\n```\na$ wait\n5 s  and 3\n```\n",
        places: &["a"],
    };

    #[test]
    fn times_and_widths_may_differ_and_nothing_else() {
        assert!(PAGE.compare("a$ wait\n1.5 min and 3\n").is_ok());
        for other in ["a$ wait\n5 s and 4\n", "a$ wait\n", "a$ wait\n5 KiB and 3\n"] {
            assert!(PAGE.compare(other).is_err(), "{other}");
        }
    }

    #[test]
    fn a_command_is_printed_before_it_runs() {
        let script = PAGE.script(|place, command| format!("{command} # at {place}")).unwrap();
        assert_eq!(script, "cat << 'END'\na$ wait\nEND\nwait # at a\n");
        assert_eq!(PAGE.blocks("toml").collect::<String>(), "port = 1\n");
    }
}

//! The suites: a script for each, which prints `check NAME : PASS` or `check NAME : FAILURE`.

/// A suite.
pub(super) struct Suite {
    /// The name on the command line.
    pub(super) name: &'static str,
    /// The script that `sh` runs, after [`COMMON`].
    pub(super) script: &'static str,
    /// More files for its folder, by name.
    pub(super) files: &'static [(&'static str, &'static str)],
    /// True if the folder gets the C program of the kernel trials.
    pub(super) has_tree: bool,
    /// True if its sources are those of another project.
    pub(super) is_foreign: bool,
    /// Longest time of the suite, in seconds, on a slow machine.
    pub(super) seconds_max: u64,
}

impl Suite {
    /// The name in `docs/conformance.toml`.
    pub(super) fn run(&self) -> String {
        format!("client-{}", self.name)
    }
}

/// The beginning of all scripts.
pub(super) const COMMON: &str = include_str!("common.sh");

const OURS: Suite = Suite {
    name: "",
    script: "",
    files: &[],
    has_tree: false,
    is_foreign: false,
    seconds_max: 600,
};

/// All suites.
pub(super) const SUITES: [Suite; 6] = [
    Suite {
        name: "cthon04",
        script: include_str!("cthon04.sh"),
        is_foreign: true,
        seconds_max: 1_200,
        ..OURS
    },
    Suite {
        name: "pjdfstest",
        script: include_str!("pjdfstest.sh"),
        is_foreign: true,
        seconds_max: 3_600,
        ..OURS
    },
    Suite {
        name: "fsx",
        script: include_str!("fsx.sh"),
        files: &[("ranges.py", include_str!("ranges.py"))],
        seconds_max: 7_200,
        ..OURS
    },
    Suite { name: "git", script: include_str!("git.sh"), has_tree: true, ..OURS },
    Suite { name: "sqlite", script: include_str!("sqlite.sh"), ..OURS },
    Suite { name: "build", script: include_str!("build.sh"), has_tree: true, ..OURS },
];

use crate::suite::{Parameter, ParameterKind};

/// All parameters, in the order of the help text.
pub(super) const ALL: &[Parameter] = &[
    Parameter {
        name: "sources",
        about: "Sources of the generated tree",
        kind: ParameterKind::Count,
        paper: "425",
        quick: "60",
        modern: "2000",
    },
    Parameter {
        name: "source-size",
        about: "Bytes of a source in the mean: 4K has about 120 lines",
        kind: ParameterKind::Bytes,
        paper: "4K",
        quick: "4K",
        modern: "8K",
    },
    Parameter {
        name: "directories",
        about: "Directories they are divided among",
        kind: ParameterKind::Count,
        paper: "20",
        quick: "10",
        modern: "100",
    },
    Parameter {
        name: "probes",
        about: "Small programs that are tried first, as configure does",
        kind: ParameterKind::Count,
        paper: "300",
        quick: "40",
        modern: "300",
    },
    Parameter {
        name: "programs",
        about: "Programs that are linked",
        kind: ParameterKind::Count,
        paper: "10",
        quick: "4",
        modern: "20",
    },
    Parameter {
        name: "jobs",
        about: "Compilers at the same time",
        kind: ParameterKind::Count,
        paper: "1",
        quick: "2",
        modern: "8",
    },
    Parameter {
        name: "tree",
        about: "A tree of yours, copied in instead of the generated one",
        kind: ParameterKind::Text,
        paper: "",
        quick: "",
        modern: "",
    },
    Parameter {
        name: "command",
        about: "Command that sh runs in it",
        kind: ParameterKind::Text,
        paper: "",
        quick: "",
        modern: "",
    },
];

use crate::suite::{Parameter, ParameterKind};

/// Every operation.
const EVERY: &str = concat!(
    "null,getattr,lookup,access,read-4k,read-1m,write-4k,write-1m,",
    "create-remove,readdirplus"
);

/// All parameters, in the order of the help text.
pub(super) const ALL: &[Parameter] = &[
    Parameter {
        name: "operations",
        about: "Procedures to call, one or more, separated by commas",
        kind: ParameterKind::Text,
        paper: EVERY,
        quick: EVERY,
        modern: EVERY,
    },
    Parameter {
        name: "depths",
        about: "Calls outstanding on each connection",
        kind: ParameterKind::Counts,
        paper: "1,8",
        quick: "1,8",
        modern: "1,8,32,128",
    },
    Parameter {
        name: "connections",
        about: "Connections",
        kind: ParameterKind::Counts,
        paper: "1,4",
        quick: "1,4",
        modern: "1,4,16",
    },
    Parameter {
        name: "seconds",
        about: "Seconds for each operation, depth and number of connections",
        kind: ParameterKind::Number,
        paper: "2",
        quick: "0.5",
        modern: "10",
    },
    Parameter {
        name: "rate",
        about: "Calls a second, made when they are due (open loop); 0: each follows an answer",
        kind: ParameterKind::Number,
        paper: "0",
        quick: "0",
        modern: "0",
    },
    Parameter {
        name: "stable",
        about: "Whether a WRITE asks for stable storage",
        kind: ParameterKind::Flag,
        paper: "false",
        quick: "false",
        modern: "false",
    },
];

use crate::suite::{Parameter, ParameterKind};

/// All of them, in the order of the help text.
pub(super) const ALL: &[Parameter] = &[
    Parameter {
        name: "operations",
        about: "What is asked for: null, getattr, lookup, access, read-4k, read-1m, write-4k, write-1m, create-remove, readdirplus",
        kind: ParameterKind::Text,
        paper: "null,getattr,lookup,access,read-4k,read-1m,write-4k,write-1m,create-remove,readdirplus",
        quick: "null,getattr,lookup,access,read-4k,read-1m,write-4k,write-1m,create-remove,readdirplus",
        modern: "null,getattr,lookup,access,read-4k,read-1m,write-4k,write-1m,create-remove,readdirplus",
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
        about: "Calls a second, made when they are due whether or not answers have come (open loop); 0: the next call follows an answer (closed loop)",
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

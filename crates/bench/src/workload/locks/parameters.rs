use crate::suite::{Parameter, ParameterKind};

/// All parameters, in the order of the help text.
pub(super) const ALL: &[Parameter] = &[
    Parameter {
        name: "files",
        about: "Files that are opened and locked as a whole",
        kind: ParameterKind::Counts,
        paper: "1,10,100,1000",
        quick: "1,10,100,1000",
        modern: "1,10,100,1000,10000",
    },
    Parameter {
        name: "ranges",
        about: "Ranges into which a lock is split, and which are joined",
        kind: ParameterKind::Counts,
        paper: "3,30,300,3000,29971",
        quick: "3,30,300,3000",
        modern: "3,30,300,3000,29971",
    },
    Parameter {
        name: "file-size",
        about: "Bytes of the file that is split and joined",
        kind: ParameterKind::Bytes,
        paper: "30000000",
        quick: "30000000",
        modern: "30000000",
    },
    Parameter {
        name: "waiters",
        about: "Waiters to whom a lock is handed over",
        kind: ParameterKind::Counts,
        paper: "1,10,50,100,200,300,400,500,600,700,800,900,1000",
        quick: "1,10,100",
        modern: "1,10,100,1000",
    },
    Parameter {
        name: "settle-milliseconds",
        about: "Wait until the waiters wait",
        kind: ParameterKind::Count,
        paper: "300",
        quick: "200",
        modern: "500",
    },
    Parameter {
        name: "recall-command",
        about: "Opens $COMITY_BENCH_FILE on the server, for recalls; without it they are left out",
        kind: ParameterKind::Text,
        paper: "",
        quick: "",
        modern: "",
    },
    Parameter {
        name: "recall-locks",
        about: "Locks held when a delegation is recalled",
        kind: ParameterKind::Counts,
        paper: "0,1,2,3,4,5,10,25,50,100,250,500,1000,2500,5000,10000,15000,25000,50000",
        quick: "0,10,100",
        modern: "0,1,10,100,1000,10000",
    },
];

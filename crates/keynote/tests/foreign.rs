//! The test suite of OpenBSD's libkeynote, if it is on this machine: the variable
//! `COMITY_LIBKEYNOTE_SUITE` names its folder, which is `lib/libkeynote/testsuite` in the sources
//! of OpenBSD. Its makefile expects the result `true` in the target `regress`.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;

use comity_keynote::{Assertion, OrderedValues, PolicyAssertion, Principal, Query, tree};

const VALUES: &[&str] = &["false", "maybe", "probably", "true"];

/// The assertion of a file. libkeynote ignores everything after an empty line.
fn assertion(folder: &Path, name: &str) -> PolicyAssertion {
    let text = fs::read_to_string(folder.join(name)).unwrap();
    let text = text.split_once("\n\n").map_or(text.as_str(), |(before, _)| before);
    PolicyAssertion::trust(Assertion::parse(text).unwrap())
}

/// The principal of a file that contains one string and comments.
fn principal(folder: &Path, name: &str) -> Principal {
    let text = fs::read_to_string(folder.join(name)).unwrap();
    let text = format!("Authorizer: {}\n", text.trim_end().replace('\n', "\n\t"));
    match &Assertion::parse(text).unwrap().body().authorizer {
        tree::StringExpr::Literal(name) => Principal::named(name),
        other => panic!("{other}"),
    }
}

/// The attributes of the file `test-env`: lines of a name and a string, as in Local-Constants.
fn attributes(folder: &Path) -> Vec<(String, String)> {
    let text = fs::read_to_string(folder.join("test-env")).unwrap();
    let text = format!("Authorizer: \"\"\nLocal-Constants: {}\n", text.replace('\n', "\n\t"));
    let body = Assertion::parse(text).unwrap().body().clone();
    body.constants.into_iter().map(|constant| (constant.name, constant.value)).collect()
}

#[test]
fn the_suite_of_libkeynote_gives_true() {
    let Some(folder) = std::env::var_os("COMITY_LIBKEYNOTE_SUITE") else {
        println!("skipped: COMITY_LIBKEYNOTE_SUITE names no folder with the suite of libkeynote");
        return;
    };
    let folder = Path::new(&folder);
    let policies: Vec<_> =
        (1..=7).map(|number| assertion(folder, &format!("test-assertion{number}"))).collect();
    let requesters: Vec<_> =
        (1..=4).map(|number| principal(folder, &format!("auth{number}"))).collect();
    let attributes = attributes(folder);
    let values = OrderedValues::new(VALUES).unwrap();
    let result = |without: Option<usize>, requesters: &[Principal]| {
        let query = Query { requesters, attributes: &attributes };
        let used = policies.iter().enumerate().filter(|(at, _)| Some(*at) != without);
        let used = used.map(|(_, policy)| policy.prepared());
        values.name(query.ordered(&values, used).unwrap().policy())
    };
    assert_eq!(result(None, &requesters), "true");
    // The chain uses the first, the third and the seventh assertion.
    for needed in [0, 2, 6] {
        assert_eq!(result(Some(needed), &requesters), "false", "{needed}");
    }
    assert_eq!(result(None, &requesters[1..]), "false");
}

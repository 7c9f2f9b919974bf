//! The reasons for the rights that a chain gives.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod conditions;

use comity_keynote::{LinkReport, PolicyAssertion, Principal, Query, Reason, Rights};
use proptest::prelude::*;

const CHAIN: &str = "Authorizer: \"POLICY\"
Licensees: \"alice\"
Conditions: app_domain == \"Comity\" -> \"rwx\";

Authorizer: \"alice\"
Licensees: \"bob\"
Conditions: app_domain == \"Comity\" && (object == \"1\" || object == \"2\") &&
    now < \"2026\" -> \"rw\";
    @size / 0 == 1 -> \"x\";
    app_domain == \"Comity\" -> {
        object ~= \"^(.)\" && _1 == \"1\" -> \"c\";
        true -> \"all\";
    };

Authorizer: \"bob\"
Licensees: \"carol\"
";

fn reports(attributes: &[(&str, &str)]) -> (String, Vec<LinkReport>) {
    let policies = PolicyAssertion::parse_all(CHAIN).unwrap();
    let attributes = attributes.to_vec();
    let query = Query { requesters: &[Principal::named("carol")], attributes: &attributes };
    let (evaluation, reports) =
        query.explain(policies.iter().map(PolicyAssertion::prepared)).unwrap();
    (evaluation.policy().to_string(), reports)
}

/// The lines of a report, each with the rights that it gives or the reason why it gives none.
fn lines(report: &LinkReport) -> Vec<String> {
    let line = |(line, verdict): (u32, String)| format!("{line}: {verdict}");
    let clauses = report.clauses.iter().map(|clause| match &clause.verdict {
        Ok(rights) => (clause.line, rights.to_string()),
        Err(reason) => (clause.line, reason.to_string()),
    });
    clauses.map(line).collect()
}

#[test]
fn each_link_has_its_verdict_and_the_lines_that_decided() {
    let (rights, reports) = reports(&[("app_domain", "Comity"), ("object", "1"), ("now", "2025")]);
    assert_eq!(rights, "rw");
    assert_eq!(lines(&reports[0]), ["3: rwx"]);
    assert_eq!(
        lines(&reports[1]),
        [
            "7: rw",
            "9: `@size / 0 == 1` is false because of a division by zero",
            "10: c",
            "11: c",
            "12: the value names no right",
        ]
    );
    assert_eq!(lines(&reports[2]), [""; 0]);
    let given = reports.iter().map(|report| report.rights().to_string());
    assert_eq!(given.collect::<Vec<_>>(), ["rw", "rwc", "rwxcda"]);
    let licensees = reports.iter().map(|report| report.licensees.to_string());
    assert_eq!(licensees.collect::<Vec<_>>(), ["rwc", "rwxcda", "rwxcda"]);
}

#[test]
fn the_test_that_is_false_is_named() {
    let attributes = |object, now| [("app_domain", "Comity"), ("object", object), ("now", now)];
    let (rights, expired) = reports(&attributes("2", "2027"));
    assert_eq!(rights, "none");
    assert_eq!(lines(&expired[1])[0], "7: `now < \"2026\"` is false");
    let (_, other) = reports(&attributes("3", "2027"));
    assert_eq!(lines(&other[1])[0], "7: `object == \"1\" || object == \"2\"` is false");
    assert_eq!(lines(&other[1])[3], "11: `_1 == \"1\"` is false");
    // The first link gives nothing because the second one gives nothing.
    assert_eq!(lines(&other[0]), ["3: rwx"]);
    assert_eq!(other[0].licensees.to_string(), "none");
    let (_, nothing) = reports(&[]);
    assert_eq!(lines(&nothing[0]), ["3: `app_domain == \"Comity\"` is false"]);
}

#[test]
fn groups_of_a_match_end_with_their_clause_in_a_report_too() {
    let text = "Authorizer: \"POLICY\"\nConditions: a ~= \"(x)\" -> \"r\"; _1 == \"\" -> \"w\";\n";
    let policies = PolicyAssertion::parse_all(text).unwrap();
    let query = Query { requesters: &[], attributes: &[("a", "x")] };
    let (_, reports) = query.explain([policies[0].prepared()]).unwrap();
    assert_eq!(lines(&reports[0]), ["2: r", "2: w"]);
}

#[test]
fn a_long_test_is_cut() {
    let long = "x".repeat(5000);
    let text = format!("Authorizer: \"POLICY\"\nConditions: a == \"{long}\";\n");
    let policies = PolicyAssertion::parse_all(text).unwrap();
    let query = Query { requesters: &[], attributes: &[] };
    let (_, reports) = query.explain([policies[0].prepared()]).unwrap();
    let Err(Reason::False(test)) = &reports[0].clauses[0].verdict else { panic!("{reports:?}") };
    assert!(test.len() < 300 && test.ends_with("..."), "{test}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// The rights of all clauses in a report are those of the assertion, and the same as without
    /// the report.
    #[test]
    fn reasons_add_up_to_the_result(
        policy in conditions::policy(),
        attributes in conditions::attributes(),
    ) {
        let query = Query { requesters: &[], attributes: &attributes };
        let rights = query.rights([policy.prepared()]).unwrap().policy();
        let (evaluation, reports) = query.explain([policy.prepared()]).unwrap();
        prop_assert_eq!(evaluation.policy(), rights);
        prop_assert_eq!(reports[0].rights(), rights);
        let given = reports[0].clauses.iter().filter_map(|clause| clause.verdict.as_ref().ok());
        let given = given.fold(Rights::NONE, |all, rights| all.union(*rights));
        prop_assert_eq!(given, rights);
        for clause in &reports[0].clauses {
            prop_assert!(clause.verdict != Ok(Rights::NONE));
        }
    }
}

//! KeyNote: any text makes assertions, or an error that says where. Assertions are printed and
//! read again as the same ones, and evaluated for an action.
#![no_main]

use comity_keynote::{
    Assertion, Attributes, Grant, NeededValue, OrderedValues, PolicyAssertion, Principal, Query,
    Rights, SignedAssertion,
};
use libfuzzer_sys::fuzz_target;

const ATTRIBUTES: [(&str, &str); 6] = [
    ("app_domain", "Comity"),
    ("object", "id1"),
    ("within", "id0 id2"),
    ("kind", "x1y2"),
    ("size", "-12.75"),
    ("now", "2026-11-25T00:00:00Z"),
];

fuzz_target!(|text: &[u8]| {
    let _ = SignedAssertion::parse(text);
    let Ok(assertions) = Assertion::parse_all(text) else { return };
    assertions.iter().for_each(print);
    let policies: Vec<_> = assertions.into_iter().map(PolicyAssertion::trust).collect();
    evaluate(&policies);
    policies.iter().for_each(look_up);
});

fn print(assertion: &Assertion) {
    let printed = assertion.body().to_string();
    match Assertion::parse(&printed) {
        Ok(again) => assert_eq!(again.body(), assertion.body(), "{printed}"),
        // The canonical text may exceed the limit of texts.
        Err(error) => assert!(error.expected.starts_with("at most"), "{error}: {printed}"),
    }
    if let Some(grant) = Grant::read(assertion) {
        assert_eq!(grant.text().ok(), Some(printed));
    }
}

fn evaluate(policies: &[PolicyAssertion]) {
    let requesters = [Principal::named("a"), Principal::named("b")];
    let query = Query { requesters: &requesters, attributes: &ATTRIBUTES };
    let prepared = || policies.iter().map(PolicyAssertion::prepared);
    let rights = query.rights(prepared()).map(|evaluation| evaluation.policy());
    if let Ok((explained, reports)) = query.explain(prepared()) {
        assert_eq!(Ok(explained.policy()), rights);
        assert_eq!(reports.len(), policies.len());
    }
    let names = ["none", "r", "rw", "rwx"];
    if let Some(values) = OrderedValues::new(&names) {
        let _ = query.ordered(&values, prepared());
    }
}

/// An assertion whose needs are not met, or which has expired, gives no rights.
fn look_up(policy: &PolicyAssertion) {
    let prepared = policy.prepared();
    let requesters: Vec<Principal> =
        prepared.licensees().unwrap_or_default().into_iter().cloned().collect();
    let query = Query { requesters: &requesters, attributes: &ATTRIBUTES };
    let Ok((_, reports)) = query.explain([prepared]) else { return };
    let gives = reports.iter().any(|report| report.conditions != Rights::NONE);
    let names = ATTRIBUTES.map(|(name, _)| name);
    let value = |name: &str| ATTRIBUTES.get(name).unwrap_or_default();
    let is_met = prepared.needs(&names).is_none_or(|needs| {
        needs.iter().any(|need| match need.value {
            NeededValue::Whole(wanted) => value(need.attribute) == wanted,
            NeededValue::Part(wanted) => value(need.attribute).contains(wanted),
        })
    });
    assert!(is_met || !gives, "the needs of an assertion that gives something are not met");
    let is_over = prepared.last_moment().is_some_and(|last| last < value("now"));
    assert!(!is_over || !gives, "an assertion gives something behind its last moment");
}

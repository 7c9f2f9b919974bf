//! Facts that are known of an assertion without evaluating it, and the time for which a result
//! holds.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod conditions;

use std::cell::RefCell;

use comity_keynote::{
    Attributes, Need, NeededValue, OrderedValues, PolicyAssertion, Query, Rights, Validity,
};
use proptest::prelude::*;

fn rights(policy: &PolicyAssertion, attributes: &dyn Attributes) -> Rights {
    let query = Query { requesters: &[], attributes };
    query.rights([policy.prepared()]).unwrap().policy()
}

fn policy(conditions: &str) -> PolicyAssertion {
    let text = format!("Authorizer: \"POLICY\"\nLocal-Constants: ID = \"id\"\n{conditions}\n");
    PolicyAssertion::parse_all(text).unwrap().remove(0)
}

fn is_met(need: &Need<'_>, attributes: &dyn Attributes) -> bool {
    let value = attributes.get(need.attribute).unwrap_or_default();
    match need.value {
        NeededValue::Whole(wanted) => value == wanted,
        NeededValue::Part(wanted) => value.contains(wanted),
    }
}

/// The attributes with another value of `now`.
fn at<'a>(now: &'a str, attributes: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let others = attributes.iter().copied().filter(|(name, _)| *name != "now");
    others.chain([("now", now)]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn an_assertion_whose_needs_are_not_met_gives_nothing(
        policy in conditions::policy(),
        attributes in conditions::attributes(),
        names in prop::sample::subsequence(conditions::NAMES.to_vec(), 0..=5),
    ) {
        let needs = policy.prepared().needs(&names);
        if needs.is_some_and(|needs| !needs.iter().any(|need| is_met(need, &attributes))) {
            prop_assert_eq!(rights(&policy, &attributes), Rights::NONE);
            let values = OrderedValues::new(&["none", "?"]).unwrap();
            let query = Query { requesters: &[], attributes: &attributes };
            prop_assert_eq!(query.ordered(&values, [policy.prepared()]).unwrap().policy(), 0);
        }
    }

    #[test]
    fn an_assertion_gives_nothing_after_its_last_moment(
        policy in conditions::policy(),
        attributes in conditions::attributes(),
        now in prop::sample::select(conditions::VALUES.to_vec()),
    ) {
        if policy.prepared().last_moment().is_some_and(|last| now > last) {
            prop_assert_eq!(rights(&policy, &at(now, &attributes)), Rights::NONE);
        }
    }

    #[test]
    fn a_result_does_not_change_within_its_validity(
        policy in conditions::policy(),
        attributes in conditions::attributes(),
        now in prop::sample::select(conditions::VALUES.to_vec()),
        later in prop_oneof![prop::sample::select(conditions::VALUES.to_vec()), Just("2026!")],
    ) {
        let attributes = at(now, &attributes);
        let query = Query { requesters: &[], attributes: &attributes };
        let before = query.rights([policy.prepared()]).unwrap();
        let holds = match before.validity() {
            Validity::Unlimited => now <= later,
            Validity::Until(end) => now <= later && later < end.as_str(),
            Validity::Now => false,
        };
        if holds || !before.reads_now() {
            prop_assert_eq!(rights(&policy, &at(later, &attributes)), before.policy());
        }
    }
}

#[test]
fn required_values_are_found_in_conditions() {
    let whole = |attribute, value| Need { attribute, value: NeededValue::Whole(value) };
    let part = |attribute, value| Need { attribute, value: NeededValue::Part(value) };
    for (conditions, expected) in [
        ("", None),
        ("Conditions:", Some(vec![])),
        ("Conditions: true;", None),
        ("Conditions: false && x == \"1\";", Some(vec![])),
        ("Conditions: object == \"1\";", Some(vec![whole("object", "1")])),
        ("Conditions: x == \"1\" && ID == object;", Some(vec![whole("object", "id")])),
        ("Conditions: object == \"1\" || x == \"1\";", None),
        (
            "Conditions: (object == \"1\" || within ~= \"a\\\\.b\") && x == \"2\";",
            Some(vec![whole("object", "1"), part("within", "a.b")]),
        ),
        ("Conditions: within ~= \"a*\";", None),
        ("Conditions: within ~= \"\";", None),
        ("Conditions: within ~= \"(\";", Some(vec![])),
        ("Conditions: object != \"1\";", None),
        ("Conditions: !(object == \"1\");", None),
        ("Conditions: object < \"1\";", None),
        ("Conditions: object == x;", None),
        ("Conditions: $\"object\" == \"1\";", None),
        (
            "Conditions: object == \"1\"; object == \"2\" -> \"r\";",
            Some(vec![whole("object", "1"), whole("object", "2")]),
        ),
        ("Conditions: object == \"1\"; x == \"2\";", None),
        (
            "Conditions: x == \"1\" -> { object == \"1\"; within ~= \"2\"; };",
            Some(vec![whole("object", "1"), part("within", "2")]),
        ),
        ("Conditions: object == \"1\" -> { true; };", Some(vec![whole("object", "1")])),
    ] {
        let policy = policy(conditions);
        assert_eq!(policy.prepared().needs(&["object", "within"]), expected, "{conditions}");
    }
    let hidden = policy("Conditions: ID == \"id\" && object == \"1\";");
    assert_eq!(hidden.prepared().needs(&["ID"]), None);
}

#[test]
fn the_last_moment_is_found_in_conditions() {
    for (conditions, expected) in [
        ("", None),
        ("Conditions:", Some("")),
        ("Conditions: x == \"1\";", None),
        ("Conditions: now < \"2026\";", Some("2026")),
        ("Conditions: ID >= now && now == \"x\";", Some("id")),
        ("Conditions: now > \"2026\";", None),
        ("Conditions: \"2026\" < now;", None),
        ("Conditions: now != \"2026\";", None),
        ("Conditions: now < \"2026\" || now <= \"2027\";", Some("2027")),
        ("Conditions: now < \"2026\" || x == \"1\";", None),
        ("Conditions: now < \"2026\"; now < \"2028\" -> { now < \"2027\"; };", Some("2027")),
        ("Conditions: !(now < \"2026\");", None),
        ("Conditions: false;", Some("")),
    ] {
        assert_eq!(policy(conditions).prepared().last_moment(), expected, "{conditions}");
    }
    let text = "Authorizer: \"POLICY\"\nLocal-Constants: now = \"1\"\nConditions: now < \"2\";\n";
    let policies = PolicyAssertion::parse_all(text).unwrap();
    assert_eq!(policies[0].prepared().last_moment(), None);
}

#[test]
fn the_validity_is_the_earliest_time_that_was_compared() {
    let at_noon = [("now", "2026-06-01T12:00:00Z"), ("x", "1")];
    let validity = |conditions: &str| {
        let policy = policy(&format!("Conditions: {conditions}"));
        let query = Query { requesters: &[], attributes: &at_noon };
        let evaluation = query.rights([policy.prepared()]).unwrap();
        (evaluation.reads_now(), evaluation.validity().clone())
    };
    let until = |time: &str| (true, Validity::Until(time.into()));
    let (unlimited, now) = ((true, Validity::Unlimited), (true, Validity::Now));
    assert_eq!(validity("x == \"1\";"), (false, Validity::Unlimited));
    assert_eq!(validity("now < \"2027\";"), until("2027"));
    assert_eq!(validity("\"2028\" > now && now < \"2027\";"), until("2027"));
    assert_eq!(validity("now < \"2025\" || now >= \"2024\";"), unlimited);
    // A test that was not evaluated has no effect on the validity.
    assert_eq!(validity("x == \"2\" && now < \"2027\";"), (false, Validity::Unlimited));
    assert_eq!(validity("now < \"2026-06-01T12:00:00Z\";"), unlimited);
    assert_eq!(validity("now >= \"2026-06-01T12:00:00Z\";"), unlimited);
    assert_eq!(validity("now <= \"2026-06-01T12:00:00Z\";"), now);
    assert_eq!(validity("now == \"2026-06-01T12:00:00Z\";"), now);
    assert_eq!(validity("now ~= \"T12:\";"), now);
    assert_eq!(validity("$\"now\" < \"2027\";"), now);
    assert_eq!(validity("now . \"\" < \"2027\";"), now);
    // A constant of this name hides the attribute.
    let text =
        "Authorizer: \"POLICY\"\nLocal-Constants: now = \"1\"\nConditions: now < \"2027\";\n";
    let policies = PolicyAssertion::parse_all(text).unwrap();
    let query = Query { requesters: &[], attributes: &[("now", "3")] };
    let evaluation = query.rights([policies[0].prepared()]).unwrap();
    assert_eq!((evaluation.policy(), evaluation.reads_now()), (Rights::ALL, false));
}

/// Attributes that record the names that are asked for.
struct Noting(RefCell<Vec<String>>);

impl Attributes for Noting {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.borrow_mut().push(name.into());
        None
    }
}

#[test]
fn only_attributes_that_conditions_use_are_asked_for() {
    let noting = Noting(RefCell::default());
    let policy = policy("Conditions: a == \"1\" && b == \"2\"; ID == \"id\" && _1 == c -> \"r\";");
    assert_eq!(rights(&policy, &noting).to_string(), "r");
    assert_eq!(noting.0.into_inner(), ["a", "c"]);
}

//! Random conditions over a few attributes and values, so that many of them are true.

use comity_keynote::{Assertion, PolicyAssertion, tree};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tree::{
    Body, Clause, Comparison, Consequence, Constant, LicenseesField, Order, Predicate, SourceLine,
    StringExpr,
};

/// The names of the attributes; `fixed` is a constant of the assertions.
pub(crate) const NAMES: [&str; 5] = ["object", "within", "kind", "now", "fixed"];

/// The values of attributes and literals.
pub(crate) const VALUES: [&str; 7] = ["", "id1", "id2", "id12", "id1 id2", "2026", "2027"];

const PATTERNS: [&str; 8] = ["", "id1", "id12", "^id1$", "id.", "(", "(id)1|x", r"id\ 1"];

const COMPARISONS: [Comparison; 6] = [
    Comparison::Equal,
    Comparison::Unequal,
    Comparison::Order(Order::Less),
    Comparison::Order(Order::Greater),
    Comparison::Order(Order::AtMost),
    Comparison::Order(Order::AtLeast),
];

fn attribute() -> BoxedStrategy<StringExpr> {
    select(NAMES.to_vec()).prop_map(|name| StringExpr::Attribute(name.into())).boxed()
}

fn literal(values: &'static [&'static str]) -> BoxedStrategy<StringExpr> {
    select(values).prop_map(|value| StringExpr::Literal(value.into())).boxed()
}

fn string() -> BoxedStrategy<StringExpr> {
    let dereference = attribute().prop_map(|name| StringExpr::Dereference(Box::new(name)));
    let concatenation = (attribute(), literal(&VALUES))
        .prop_map(|(one, other)| StringExpr::Concatenation(vec![one, other]));
    prop_oneof![6 => attribute(), 6 => literal(&VALUES), 1 => dereference, 1 => concatenation]
        .boxed()
}

fn test() -> BoxedStrategy<Predicate> {
    let compared = (string(), select(COMPARISONS.to_vec()), string());
    let compared = compared.prop_map(|(left, by, right)| Predicate::Strings(left, by, right));
    let equal = (attribute(), literal(&VALUES));
    let equal = equal.prop_map(|(left, right)| Predicate::Strings(left, Comparison::Equal, right));
    let pattern = prop_oneof![6 => literal(&PATTERNS), 1 => attribute()];
    let matches = (string(), pattern).prop_map(|(text, with)| Predicate::Matches(text, with));
    let constant = any::<bool>().prop_map(Predicate::Constant);
    let leaf = prop_oneof![3 => compared, 4 => equal, 3 => matches, 1 => constant];
    let inner = leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            1 => inner.clone().prop_map(|test| Predicate::Not(Box::new(test))),
            3 => vec(inner.clone(), 2..4).prop_map(Predicate::All),
            3 => vec(inner, 2..4).prop_map(Predicate::Any),
        ]
    });
    inner.boxed()
}

fn clauses() -> BoxedStrategy<Vec<Clause>> {
    let clause = |(test, outcome)| Clause { line: SourceLine(0), test, outcome };
    let value = select(vec!["r", "w", "rwx", "none", "?"])
        .prop_map(|value| Consequence::Value(StringExpr::Literal(value.into())));
    let plain = prop_oneof![1 => Just(Consequence::Maximum), 4 => value];
    let nested = plain.prop_recursive(2, 4, 2, move |inner| {
        vec((test(), inner).prop_map(clause), 0..3).prop_map(Consequence::Program)
    });
    vec((test(), nested).prop_map(clause), 0..4).boxed()
}

/// An assertion of `POLICY` that licenses every key under some conditions.
pub(crate) fn policy() -> impl Strategy<Value = PolicyAssertion> {
    (clauses(), select(VALUES.to_vec())).prop_map(|(clauses, fixed)| {
        let body = Body {
            constants: vec![Constant { name: "fixed".into(), value: fixed.into() }],
            authorizer: StringExpr::Literal("POLICY".into()),
            licensees: LicenseesField::Missing,
            conditions: Some(clauses),
            comment: None,
        };
        PolicyAssertion::trust(Assertion::parse(body.to_string()).unwrap())
    })
}

/// Attributes of an action.
pub(crate) fn attributes() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    let value = || prop::option::of(select(VALUES.to_vec()));
    (value(), value(), value(), value()).prop_map(|(object, within, kind, now)| {
        let pairs = NAMES.into_iter().zip([object, within, kind, now]);
        pairs.filter_map(|(name, value)| Some((name, value?))).collect()
    })
}

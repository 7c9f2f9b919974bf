//! Random syntax trees.

use comity_keynote::tree::{
    Arithmetic, Body, Clause, Comparison, Consequence, Constant, Licensees, LicenseesField,
    Operator, Order, Predicate, SourceLine, StringExpr,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{0,3}",
        "[ -~]{0,6}",
        "[\n\r\t\x0c\x01\x7f\u{80}\u{e9}\u{1f600}017\"\\\\]{0,5}"
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c]", "_?[A-Za-z][A-Za-z0-9_]{0,5}", Just("true".into()), Just("of".into())]
}

fn string() -> BoxedStrategy<StringExpr> {
    let leaf =
        prop_oneof![text().prop_map(StringExpr::Literal), name().prop_map(StringExpr::Attribute)];
    let inner = leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|name| StringExpr::Dereference(Box::new(name))),
            vec(inner, 2..4).prop_map(StringExpr::Concatenation),
        ]
    });
    inner.boxed()
}

fn operators(class: usize, floats: bool) -> BoxedStrategy<Operator> {
    let all = match class {
        0 => vec![Operator::Add, Operator::Subtract],
        1 if floats => vec![Operator::Multiply, Operator::Divide],
        1 => vec![Operator::Multiply, Operator::Divide, Operator::Remainder],
        _ => vec![Operator::Power],
    };
    select(all).boxed()
}

fn number<T>(literal: BoxedStrategy<T>, floats: bool) -> BoxedStrategy<Arithmetic<T>>
where
    T: Clone + std::fmt::Debug + 'static,
{
    let leaf = prop_oneof![
        literal.prop_map(Arithmetic::Literal),
        string().prop_map(Arithmetic::Converted)
    ];
    let inner = leaf.prop_recursive(3, 12, 3, move |inner| {
        let chain = (0..3_usize, inner.clone()).prop_flat_map({
            let inner = inner.clone();
            move |(class, first)| {
                let steps = vec((operators(class, floats), inner.clone()), 1..3);
                steps.prop_map(move |steps| Arithmetic::Chain(Box::new(first.clone()), steps))
            }
        });
        prop_oneof![inner.prop_map(|number| Arithmetic::Negated(Box::new(number))), chain]
    });
    inner.boxed()
}

fn integer() -> BoxedStrategy<Arithmetic<i32>> {
    number((0..=i32::MAX).boxed(), false)
}

fn float() -> BoxedStrategy<Arithmetic<f32>> {
    let literal = prop_oneof![(0..100_u8).prop_map(f32::from), 0.0..f32::MAX, 0.0..1e-30_f32];
    number(literal.boxed(), true)
}

fn order() -> impl Strategy<Value = Order> {
    select(vec![Order::Less, Order::Greater, Order::AtMost, Order::AtLeast])
}

fn comparison() -> impl Strategy<Value = Comparison> {
    let order = order().prop_map(Comparison::Order);
    prop_oneof![Just(Comparison::Equal), Just(Comparison::Unequal), order]
}

fn test() -> BoxedStrategy<Predicate> {
    let strings = (string(), comparison(), string());
    let integers = (integer(), comparison(), integer());
    let leaf = prop_oneof![
        any::<bool>().prop_map(Predicate::Constant),
        strings.prop_map(|(left, by, right)| Predicate::Strings(left, by, right)),
        integers.prop_map(|(left, by, right)| Predicate::Integers(left, by, right)),
        (float(), order(), float())
            .prop_map(|(left, by, right)| Predicate::Floats(left, by, right)),
        (string(), string()).prop_map(|(left, right)| Predicate::Matches(left, right)),
    ];
    let inner = leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|test| Predicate::Not(Box::new(test))),
            vec(inner.clone(), 2..4).prop_map(Predicate::All),
            vec(inner, 2..4).prop_map(Predicate::Any),
        ]
    });
    inner.boxed()
}

fn clauses() -> BoxedStrategy<Vec<Clause>> {
    let clause = |(test, outcome)| Clause { line: SourceLine(0), test, outcome };
    let plain = prop_oneof![Just(Consequence::Maximum), string().prop_map(Consequence::Value)];
    let nested = plain.prop_recursive(2, 6, 2, move |inner| {
        vec((test(), inner).prop_map(clause), 0..3).prop_map(Consequence::Program)
    });
    vec((test(), nested).prop_map(clause), 0..4).boxed()
}

fn licensees() -> BoxedStrategy<LicenseesField> {
    let threshold = vec(string(), 1..4).prop_flat_map(|principals| {
        let least = 1..=principals.len() as u32;
        least.prop_map(move |least| Licensees::AtLeast(least, principals.clone()))
    });
    let leaf = prop_oneof![string().prop_map(Licensees::Principal), threshold];
    let inner = leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 2..4).prop_map(Licensees::All),
            vec(inner, 2..4).prop_map(Licensees::Any),
        ]
    });
    let missing = Just(LicenseesField::Missing);
    prop_oneof![missing, Just(LicenseesField::Empty), inner.prop_map(LicenseesField::Given)].boxed()
}

fn constants() -> impl Strategy<Value = Vec<Constant>> {
    let names = proptest::collection::btree_map("[a-z][a-z0-9_]{0,2}", text(), 0..4);
    names.prop_map(|map| map.into_iter().map(|(name, value)| Constant { name, value }).collect())
}

/// Any tree that has a text.
pub(crate) fn body() -> impl Strategy<Value = Body> {
    let comment = option::of("[!-~]{1,5}(\n[!-~][ -~]{0,5}[!-~]){0,2}");
    (constants(), string(), licensees(), option::of(clauses()), comment).prop_map(
        |(constants, authorizer, licensees, conditions, comment)| Body {
            constants,
            authorizer,
            licensees,
            conditions,
            comment,
        },
    )
}

//! Numeric expressions, compared with arithmetic that does not overflow.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use comity_keynote::tree::{Arithmetic, Operator, StringExpr};
use comity_keynote::{PolicyAssertion, Query};
use proptest::prelude::*;
use proptest::sample::select;

/// The value of an expression; `None` if a part of it does not fit in 32 bits.
fn reference(expression: &Arithmetic<i32>, number: i128) -> Option<i128> {
    let in_range = |value: i128| i32::try_from(value).ok().map(i128::from);
    match expression {
        Arithmetic::Literal(value) => Some(i128::from(*value)),
        Arithmetic::Converted(_) => Some(number),
        Arithmetic::Negated(inner) => in_range(-reference(inner, number)?),
        Arithmetic::Chain(first, steps) => {
            let first = reference(first, number)?;
            steps.iter().try_fold(first, |left, (operator, right)| {
                in_range(combined(left, *operator, reference(right, number)?)?)
            })
        }
    }
}

fn combined(left: i128, operator: Operator, right: i128) -> Option<i128> {
    match operator {
        Operator::Add => Some(left + right),
        Operator::Subtract => Some(left - right),
        Operator::Multiply => Some(left * right),
        Operator::Divide => left.checked_div(right),
        Operator::Remainder if (left, right) == (i128::from(i32::MIN), -1) => None,
        Operator::Remainder => left.checked_rem(right),
        Operator::Power if right < 0 => match left {
            0 => None,
            1 => Some(1),
            -1 => Some(if right % 2 == 0 { 1 } else { -1 }),
            _ => Some(0),
        },
        // Each multiplication by a factor other than 0, 1 and -1 at least doubles the value.
        Operator::Power if left.abs() > 1 && right > 32 => None,
        Operator::Power if left.abs() > 1 => {
            (0..right).try_fold(1_i128, |power, _| power.checked_mul(left))
        }
        Operator::Power if right == 0 => Some(1),
        Operator::Power if left == -1 && right % 2 == 0 => Some(1),
        Operator::Power => Some(left),
    }
}

fn expressions() -> impl Strategy<Value = Arithmetic<i32>> {
    let literal = prop_oneof![0..5, 0..=i32::MAX, Just(i32::MAX)].prop_map(Arithmetic::Literal);
    let attribute = Just(Arithmetic::Converted(StringExpr::Attribute("n".into())));
    let leaf = prop_oneof![3 => literal, 1 => attribute];
    leaf.prop_recursive(4, 16, 3, |inner| {
        let operators = [
            vec![Operator::Add, Operator::Subtract],
            vec![Operator::Multiply, Operator::Divide, Operator::Remainder],
            vec![Operator::Power],
        ];
        let chain = (select(operators.to_vec()), inner.clone()).prop_flat_map({
            let inner = inner.clone();
            move |(operators, first)| {
                let steps = prop::collection::vec((select(operators), inner.clone()), 1..3);
                steps.prop_map(move |steps| Arithmetic::Chain(Box::new(first.clone()), steps))
            }
        });
        prop_oneof![1 => inner.prop_map(|inner| Arithmetic::Negated(Box::new(inner))), 4 => chain]
    })
}

fn holds(test: &str, n: &str) -> bool {
    let text = format!("Authorizer: \"POLICY\"\nConditions: {test} -> \"r\";\n");
    let policies = PolicyAssertion::parse_all(text).unwrap();
    let attributes = [("n", n)];
    let query = Query { requesters: &[], attributes: &attributes };
    !query.rights([policies[0].prepared()]).unwrap().policy().is_none()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn integer_results_are_exact_or_an_error(
        expression in expressions(),
        number in prop_oneof![-3..4_i32, any::<i32>()],
    ) {
        let n = number.to_string();
        match reference(&expression, i128::from(number)) {
            Some(value) => {
                // The lowest number cannot be written as a literal.
                let text = format!("({expression}) + 0 == {} - 1", value + 1);
                if value < i128::from(i32::MAX) {
                    prop_assert!(holds(&text.replace("== -", "== 0 - "), &n), "{}", text);
                }
                let not = format!("({expression}) != ({expression})");
                prop_assert!(!holds(&not, &n));
            }
            None => {
                let test = format!("({expression}) == 0");
                prop_assert!(!holds(&test, &n) && !holds(&format!("!({test})"), &n), "{}", test);
            }
        }
    }

    #[test]
    fn numbers_are_compared_by_their_values(one in -9..9_i32, other in -9..9_i32) {
        for (symbol, expected) in [
            ("==", one == other), ("!=", one != other), ("<", one < other),
            (">", one > other), ("<=", one <= other), (">=", one >= other),
        ] {
            let test = format!("@n {symbol} @(\"\" . \"{other}\")");
            prop_assert_eq!(holds(&test, &one.to_string()), expected, "{}", test);
            if !matches!(symbol, "==" | "!=") {
                let test = test.replace('@', "&");
                prop_assert_eq!(holds(&test, &format!("{one}.0")), expected, "{}", test);
            }
        }
    }
}

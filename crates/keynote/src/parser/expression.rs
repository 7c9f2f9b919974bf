//! Expressions of all types (RFC 2704, section 4.6.5). Types are found from the operands upwards,
//! because an opening parenthesis does not say whether a test, a number or a string follows.

use crate::lexer::Token;
use crate::parse_error::{ParseError, Position};
use crate::tree::{Arithmetic, Comparison, Operator, Order, Predicate, StringExpr};

use super::cursor::Cursor;

/// A part of an expression, with its position.
struct Operand {
    value: Value,
    at: Position,
}

enum Value {
    Text(StringExpr),
    Integer(Arithmetic<i32>),
    Float(Arithmetic<f32>),
    Predicate(Predicate),
}

/// Parses a string expression.
pub(super) fn string(cursor: &mut Cursor) -> Result<StringExpr, ParseError> {
    chain(cursor, 0)?.text()
}

/// Parses a test.
pub(super) fn test(cursor: &mut Cursor) -> Result<Predicate, ParseError> {
    any(cursor)?.test()
}

/// Parses the rest of a concatenation after its first part.
pub(super) fn concatenation(
    cursor: &mut Cursor,
    first: StringExpr,
) -> Result<StringExpr, ParseError> {
    let mut parts = vec![first];
    while cursor.take(".") {
        parts.push(unary(cursor)?.text()?);
    }
    Ok(one_or(parts, StringExpr::Concatenation))
}

/// The only part, or all parts combined.
pub(super) fn one_or<T>(mut parts: Vec<T>, many: impl FnOnce(Vec<T>) -> T) -> T {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        last => {
            parts.extend(last);
            many(parts)
        }
    }
}

impl Operand {
    fn error(&self, expected: &str) -> ParseError {
        ParseError::new(self.at, expected, self.described())
    }

    const fn described(&self) -> &'static str {
        match self.value {
            Value::Text(_) => "a string",
            Value::Integer(_) => "an integer",
            Value::Float(_) => "a floating point number",
            Value::Predicate(_) => "a test",
        }
    }

    fn text(self) -> Result<StringExpr, ParseError> {
        match self.value {
            Value::Text(text) => Ok(text),
            _ => Err(self.error("a string")),
        }
    }

    fn integer(self) -> Result<Arithmetic<i32>, ParseError> {
        match self.value {
            Value::Integer(number) => Ok(number),
            _ => Err(self.error("an integer")),
        }
    }

    fn float(self) -> Result<Arithmetic<f32>, ParseError> {
        match self.value {
            Value::Float(number) => Ok(number),
            _ => Err(self.error("a floating point number")),
        }
    }

    /// The words `true` and `false` are not reserved: they are tests where a test is expected, and
    /// attributes elsewhere.
    fn test(self) -> Result<Predicate, ParseError> {
        let is_word = |name: &str, word| name.eq_ignore_ascii_case(word);
        match self.value {
            Value::Predicate(test) => Ok(test),
            Value::Text(StringExpr::Attribute(ref name)) if is_word(name, "true") => {
                Ok(Predicate::Constant(true))
            }
            Value::Text(StringExpr::Attribute(ref name)) if is_word(name, "false") => {
                Ok(Predicate::Constant(false))
            }
            _ => Err(self.error("a test")),
        }
    }
}

fn any(cursor: &mut Cursor) -> Result<Operand, ParseError> {
    joined(cursor, "||", all, Predicate::Any)
}

fn all(cursor: &mut Cursor) -> Result<Operand, ParseError> {
    joined(cursor, "&&", not, Predicate::All)
}

/// Parses operands that are separated by a symbol; a single one need not be a test.
fn joined(
    cursor: &mut Cursor,
    symbol: &str,
    read: fn(&mut Cursor) -> Result<Operand, ParseError>,
    many: fn(Vec<Predicate>) -> Predicate,
) -> Result<Operand, ParseError> {
    let at = cursor.at();
    let mut operands = cursor.separated(symbol, read)?;
    match operands.pop() {
        Some(only) if operands.is_empty() => Ok(only),
        last => {
            operands.extend(last);
            let tests: Result<_, _> = operands.into_iter().map(Operand::test).collect();
            Ok(Operand { value: Value::Predicate(many(tests?)), at })
        }
    }
}

fn not(cursor: &mut Cursor) -> Result<Operand, ParseError> {
    let at = cursor.at();
    if !cursor.take("!") {
        return relation(cursor);
    }
    let test = cursor.deeper(not)?.test()?;
    Ok(Operand { value: Value::Predicate(Predicate::Not(Box::new(test))), at })
}

/// The operator of a relation.
enum Relation {
    Compared(Comparison),
    Matched,
}

fn relation(cursor: &mut Cursor) -> Result<Operand, ParseError> {
    let left = chain(cursor, 0)?;
    let Some(relation) = relation_symbol(cursor.peek()) else { return Ok(left) };
    let operator = cursor.at();
    cursor.next();
    let right = chain(cursor, 0)?;
    let at = left.at;
    let test = match (relation, left.value) {
        (Relation::Matched, Value::Text(left)) => Predicate::Matches(left, right.text()?),
        (Relation::Compared(by), Value::Text(left)) => Predicate::Strings(left, by, right.text()?),
        (Relation::Compared(by), Value::Integer(left)) => {
            Predicate::Integers(left, by, right.integer()?)
        }
        (Relation::Compared(Comparison::Order(by)), Value::Float(left)) => {
            Predicate::Floats(left, by, right.float()?)
        }
        (_, value) => return Err(unrelated(&Operand { value, at }, operator)),
    };
    Ok(Operand { value: Value::Predicate(test), at })
}

/// Makes the error for an operator that the type of its left side does not support: floating point
/// numbers have no equality, numbers no regular expressions, and tests no comparison.
fn unrelated(left: &Operand, operator: Position) -> ParseError {
    let expected = match left.value {
        Value::Float(_) => "`<`, `>`, `<=` or `>=`",
        Value::Integer(_) => "an operator between integers",
        Value::Text(_) | Value::Predicate(_) => "`&&` or `||`",
    };
    ParseError::new(operator, expected, format!("another operator after {}", left.described()))
}

fn relation_symbol(token: &Token) -> Option<Relation> {
    let Token::Symbol(symbol) = token else { return None };
    let comparison = match *symbol {
        "==" => Comparison::Equal,
        "!=" => Comparison::Unequal,
        "<" => Comparison::Order(Order::Less),
        ">" => Comparison::Order(Order::Greater),
        "<=" => Comparison::Order(Order::AtMost),
        ">=" => Comparison::Order(Order::AtLeast),
        "~=" => return Some(Relation::Matched),
        _ => return None,
    };
    Some(Relation::Compared(comparison))
}

/// Number of precedence classes of binary operators (section 4.6.5), from the lowest.
const CLASSES: usize = 3;

/// A binary operator on strings or numbers.
#[derive(Clone, Copy)]
enum Binary {
    Concatenate,
    Number(Operator),
}

impl Binary {
    const fn class(self) -> usize {
        match self {
            Self::Concatenate => 0,
            Self::Number(operator) => operator.class(),
        }
    }
}

fn binary(token: &Token) -> Option<Binary> {
    let Token::Symbol(symbol) = token else { return None };
    let operator = match *symbol {
        "." => return Some(Binary::Concatenate),
        "+" => Operator::Add,
        "-" => Operator::Subtract,
        "*" => Operator::Multiply,
        "/" => Operator::Divide,
        "%" => Operator::Remainder,
        "^" => Operator::Power,
        _ => return None,
    };
    Some(Binary::Number(operator))
}

/// Parses operands that are joined by binary operators of one class or higher ones.
fn chain(cursor: &mut Cursor, class: usize) -> Result<Operand, ParseError> {
    if class == CLASSES {
        return unary(cursor);
    }
    let first = chain(cursor, class + 1)?;
    let mut rest = Vec::new();
    while let Some(operator) = binary(cursor.peek()).filter(|found| found.class() == class) {
        cursor.next();
        rest.push((operator, chain(cursor, class + 1)?));
    }
    if rest.is_empty() {
        return Ok(first);
    }
    let at = first.at;
    let value = match first.value {
        Value::Text(text) => Value::Text(concatenated(text, rest)?),
        Value::Integer(number) => Value::Integer(calculated(number, rest, Operand::integer)?),
        Value::Float(number) => Value::Float(calculated(number, rest, Operand::float)?),
        Value::Predicate(_) => return Err(first.error("a string or a number")),
    };
    let operand = Operand { value, at };
    check_remainder(&operand)?;
    Ok(operand)
}

fn concatenated(first: StringExpr, rest: Vec<(Binary, Operand)>) -> Result<StringExpr, ParseError> {
    let mut parts = vec![first];
    for (operator, operand) in rest {
        match operator {
            Binary::Concatenate => parts.push(operand.text()?),
            Binary::Number(_) => return Err(operand.error("numbers around the operator")),
        }
    }
    Ok(StringExpr::Concatenation(parts))
}

fn calculated<T>(
    first: Arithmetic<T>,
    rest: Vec<(Binary, Operand)>,
    typed: fn(Operand) -> Result<Arithmetic<T>, ParseError>,
) -> Result<Arithmetic<T>, ParseError> {
    let mut steps = Vec::new();
    for (operator, operand) in rest {
        match operator {
            Binary::Number(operator) => steps.push((operator, typed(operand)?)),
            Binary::Concatenate => return Err(operand.error("strings around the `.`")),
        }
    }
    Ok(Arithmetic::Chain(Box::new(first), steps))
}

/// The grammar allows `%` between integers only.
fn check_remainder(operand: &Operand) -> Result<(), ParseError> {
    match &operand.value {
        Value::Float(Arithmetic::Chain(_, steps))
            if steps.iter().any(|(operator, _)| *operator == Operator::Remainder) =>
        {
            Err(operand.error("integers around the `%`"))
        }
        _ => Ok(()),
    }
}

fn unary(cursor: &mut Cursor) -> Result<Operand, ParseError> {
    let at = cursor.at();
    let value = match cursor.peek() {
        Token::Symbol("-") => negated(inner(cursor)?)?,
        Token::Symbol("@") => Value::Integer(Arithmetic::Converted(inner(cursor)?.text()?)),
        Token::Symbol("&") => Value::Float(Arithmetic::Converted(inner(cursor)?.text()?)),
        Token::Symbol("$") => {
            Value::Text(StringExpr::Dereference(Box::new(inner(cursor)?.text()?)))
        }
        _ => return primary(cursor),
    };
    Ok(Operand { value, at })
}

/// Parses the operand of a prefix operator.
fn inner(cursor: &mut Cursor) -> Result<Operand, ParseError> {
    cursor.next();
    cursor.deeper(unary)
}

fn negated(operand: Operand) -> Result<Value, ParseError> {
    match operand.value {
        Value::Integer(number) => Ok(Value::Integer(Arithmetic::Negated(Box::new(number)))),
        Value::Float(number) => Ok(Value::Float(Arithmetic::Negated(Box::new(number)))),
        _ => Err(operand.error("a number")),
    }
}

fn primary(cursor: &mut Cursor) -> Result<Operand, ParseError> {
    let at = cursor.at();
    let value = match cursor.peek().clone() {
        Token::Name(name) => Value::Text(StringExpr::Attribute(name)),
        Token::Text(text) => Value::Text(StringExpr::Literal(text)),
        Token::Integer(number) => Value::Integer(Arithmetic::Literal(number)),
        Token::Float(number) => Value::Float(Arithmetic::Literal(number)),
        Token::Symbol("(") => {
            cursor.next();
            let operand = cursor.deeper(any)?;
            cursor.expect(")")?;
            return Ok(Operand { at, ..operand });
        }
        _ => return Err(cursor.error("a string, an attribute, a number or `(`")),
    };
    cursor.next();
    Ok(Operand { value, at })
}

//! The content of an assertion as a syntax tree (RFC 2704, section 4).
//!
//! Chains of one operator are lists instead of nested pairs, so that the depth of a tree is limited
//! by the nesting of its text.

/// The fields of an assertion except for KeyNote-Version, which is always 2, and Signature.
#[derive(Debug, Clone, PartialEq)]
pub struct Body {
    /// Local-Constants (section 4.6.2), in the order of the text; no name appears twice.
    pub constants: Vec<Constant>,
    /// Authorizer (section 4.6.3).
    pub authorizer: StringExpr,
    /// Licensees (section 4.6.4).
    pub licensees: LicenseesField,
    /// Conditions (section 4.6.5); `None` if the field is missing.
    pub conditions: Option<Vec<Clause>>,
    /// Comment (section 4.6.6), one or more lines.
    pub comment: Option<String>,
}

/// A name of Local-Constants and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constant {
    /// An attribute name that does not begin with an underscore.
    pub name: String,
    /// Its value in this assertion.
    pub value: String,
}

/// The Licensees field. If it is missing everybody is licensed, if it is empty nobody (section
/// 5.3.5).
#[derive(Debug, Clone, PartialEq)]
pub enum LicenseesField {
    /// The assertion has no Licensees field.
    Missing,
    /// The field is empty.
    Empty,
    /// The field names principals.
    Given(Licensees),
}

/// An expression over principals.
#[derive(Debug, Clone, PartialEq)]
pub enum Licensees {
    /// One principal.
    Principal(StringExpr),
    /// `&&`: two or more, all of them.
    All(Vec<Licensees>),
    /// `||`: two or more, any of them.
    Any(Vec<Licensees>),
    /// `K-of(...)`: at least this many of them; there are never fewer principals than the number.
    AtLeast(u32, Vec<StringExpr>),
}

/// An expression whose value is a string (section 4.3.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StringExpr {
    /// A quoted string without its escapes.
    Literal(String),
    /// The value of the attribute of this name.
    Attribute(String),
    /// `$`: the value of the attribute whose name is the value of the expression.
    Dereference(Box<StringExpr>),
    /// `.`: two or more strings, concatenated.
    Concatenation(Vec<StringExpr>),
}

/// A test, and the value if it is true.
#[derive(Debug, Clone, PartialEq)]
pub struct Clause {
    /// Line of the text at which the clause begins.
    pub line: SourceLine,
    /// The test.
    pub test: Predicate,
    /// The value of the clause if the test is true.
    pub outcome: Consequence,
}

/// A line of the text, from 1. It is ignored when trees are compared.
#[derive(Debug, Clone, Copy, Default)]
pub struct SourceLine(pub u32);

impl PartialEq for SourceLine {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The value of a clause whose test is true.
#[derive(Debug, Clone, PartialEq)]
pub enum Consequence {
    /// The highest value of the query, because there is no `->`.
    Maximum,
    /// The value that a string expression names.
    Value(StringExpr),
    /// The value of the clauses between braces.
    Program(Vec<Clause>),
}

/// A predicate over the attributes of the action.
#[derive(Debug, Clone, PartialEq)]
pub enum Predicate {
    /// `true` or `false`.
    Constant(bool),
    /// `!`
    Not(Box<Predicate>),
    /// `&&`: two or more.
    All(Vec<Predicate>),
    /// `||`: two or more.
    Any(Vec<Predicate>),
    /// Two strings compared by their characters.
    Strings(StringExpr, Comparison, StringExpr),
    /// Two integers compared.
    Integers(Arithmetic<i32>, Comparison, Arithmetic<i32>),
    /// Two floating point numbers compared; never for equality.
    Floats(Arithmetic<f32>, Order, Arithmetic<f32>),
    /// `~=`: the string on the left matches the regular expression on the right.
    Matches(StringExpr, StringExpr),
}

/// An operator that compares strings or integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    Unequal,
    /// A comparison of the order.
    Order(Order),
}

/// An operator that compares the order of two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// `<`
    Less,
    /// `>`
    Greater,
    /// `<=`
    AtMost,
    /// `>=`
    AtLeast,
}

/// An expression whose value is a number.
#[derive(Debug, Clone, PartialEq)]
pub enum Arithmetic<T> {
    /// A literal; never negative.
    Literal(T),
    /// `@` or `&`: the number in a string, or zero.
    Converted(StringExpr),
    /// Unary `-`.
    Negated(Box<Arithmetic<T>>),
    /// Operators of one class of precedence, applied from left to right.
    Chain(Box<Arithmetic<T>>, Vec<(Operator, Arithmetic<T>)>),
}

/// A binary operator on numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`, on integers only.
    Remainder,
    /// `^`
    Power,
}

impl Operator {
    /// Its precedence class: a higher one binds tighter (section 4.6.5).
    #[must_use]
    pub const fn class(self) -> usize {
        match self {
            Self::Add | Self::Subtract => 0,
            Self::Multiply | Self::Divide | Self::Remainder => 1,
            Self::Power => 2,
        }
    }
}

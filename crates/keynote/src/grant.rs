//! The canonical grant: the assertion that `comity grant` signs.
//!
//! ```text
//! KeyNote-Version: 2
//! Authorizer: "ed25519-base64:..."
//! Licensees: "ed25519-base64:..."
//! Conditions: app_domain == "Comity" &&
//!     export == "/srv/p" &&
//!     (object == "x0123456789abcdefz" || within ~= "x0123456789abcdefz") &&
//!     now < "2026-12-25T00:00:00Z" &&
//!     requester == "ed25519-base64:..." -> "rwx";
//! Comment: report
//! ```
//!
//! The attribute `within` contains the ids of the folders above the object, separated by spaces. An
//! id begins with `x` and ends with `z`, so that no id is part of another.

use comity_keys::{PublicKey, Signer};

use crate::assertion::Assertion;
use crate::evaluate::NOW;
use crate::limits::COMMENT_BYTES_MAX;
use crate::rights::Rights;
use crate::signed::{UnsignedReason, sign};
use crate::tree::{
    Body, Clause, Comparison, Consequence, Licensees, LicenseesField, Order, Predicate, SourceLine,
    StringExpr,
};

/// The value of the attribute `app_domain`.
const APP_DOMAIN: &str = "Comity";

/// Most digits of an id: handles of NFSv4 have at most 128 bytes.
const OBJECT_DIGITS_MAX: usize = 256;

/// The format of a time.
const TIME_FORM: &str = "0000-00-00T00:00:00Z";

/// A grant of rights to an object and everything below it, from one key to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The key that grants the rights and signs.
    pub authorizer: PublicKey,
    /// The key that receives them.
    pub licensee: PublicKey,
    /// The value of the attribute `export` to which the grant is limited; `None` if it applies to
    /// every export that shows the object.
    pub export: Option<String>,
    /// The id of the object: `x`, pairs of hexadecimal digits in lower case, `z`.
    pub object: String,
    /// The rights; at least one.
    pub rights: Rights,
    /// The moment at which the grant expires, such as `2026-12-25T00:00:00Z`.
    pub expires: Option<String>,
    /// True if the licensee may not grant the rights to others: the requester must be the licensee.
    pub is_final: bool,
    /// A comment without effect.
    pub comment: Option<String>,
}

impl Grant {
    /// The text to sign.
    ///
    /// # Errors
    /// A field has an invalid value.
    pub fn text(&self) -> Result<String, GrantError> {
        Ok(self.checked()?.body().to_string())
    }

    /// The text with the signature of the authorizer.
    ///
    /// # Errors
    /// A field has an invalid value, or the key is not the authorizer's or cannot be used.
    pub fn sign(&self, signer: &dyn Signer) -> Result<String, GrantError> {
        Ok(sign(&self.text()?, signer)?)
    }

    /// Reads a canonical grant from an assertion; `None` if it is not one.
    #[must_use]
    pub fn read(assertion: &Assertion) -> Option<Self> {
        let body = assertion.body();
        let LicenseesField::Given(Licensees::Principal(licensee)) = &body.licensees else {
            return None;
        };
        let [Clause { test: Predicate::All(tests), outcome: Consequence::Value(rights), .. }] =
            body.conditions.as_deref()?
        else {
            return None;
        };
        let (object, expires) = tests.iter().fold((None, None), |(object, expires), test| {
            (object.or(object_of(test)), expires.or(expiry_of(test)))
        });
        let grant = Self {
            authorizer: key(&body.authorizer)?,
            licensee: key(licensee)?,
            export: tests.iter().find_map(|test| equal_to(test, "export")).map(str::to_owned),
            object: object?.to_owned(),
            rights: literal(rights)?.parse().ok()?,
            expires: expires.map(str::to_owned),
            is_final: tests.iter().any(|test| equal_to(test, "requester").is_some()),
            comment: body.comment.clone(),
        };
        let is_canonical = grant.checked().is_ok() && grant.body() == *body;
        is_canonical.then_some(grant)
    }

    fn checked(&self) -> Result<&Self, GrantError> {
        if !is_id(&self.object) {
            return Err(GrantError::Object);
        }
        if self.rights.is_none() {
            return Err(GrantError::NoRights);
        }
        if self.export.as_ref().is_some_and(|export| export.is_empty() || export.contains('\0')) {
            return Err(GrantError::Export);
        }
        if !self.expires.as_deref().is_none_or(is_time) {
            return Err(GrantError::Expiry);
        }
        if self.comment.as_ref().is_some_and(|comment| comment.len() > COMMENT_BYTES_MAX) {
            return Err(GrantError::Comment);
        }
        Ok(self)
    }

    fn body(&self) -> Body {
        let attribute = |name: &str| StringExpr::Attribute(name.into());
        let text = |value: &str| StringExpr::Literal(value.into());
        let equal =
            |name, value: &str| Predicate::Strings(attribute(name), Comparison::Equal, text(value));
        let mut tests = vec![equal("app_domain", APP_DOMAIN)];
        tests.extend(self.export.as_ref().map(|export| equal("export", export)));
        tests.push(Predicate::Any(vec![
            equal("object", &self.object),
            Predicate::Matches(attribute("within"), text(&self.object)),
        ]));
        if let Some(expires) = &self.expires {
            let before = Comparison::Order(Order::Less);
            tests.push(Predicate::Strings(attribute(NOW), before, text(expires)));
        }
        if self.is_final {
            tests.push(equal("requester", &self.licensee.to_keynote()));
        }
        let outcome = Consequence::Value(text(&self.rights.to_string()));
        let clause = Clause { line: SourceLine(0), test: Predicate::All(tests), outcome };
        Body {
            constants: Vec::new(),
            authorizer: text(&self.authorizer.to_keynote()),
            licensees: LicenseesField::Given(Licensees::Principal(text(
                &self.licensee.to_keynote(),
            ))),
            conditions: Some(vec![clause]),
            comment: self.comment.clone(),
        }
    }
}

/// Returns whether a text is an object's id. `x` and `z` are not digits, so no id is part of
/// another.
fn is_id(text: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let digits = text.strip_prefix('x').and_then(|text| text.strip_suffix('z')).unwrap_or_default();
    let fits = (2..=OBJECT_DIGITS_MAX).contains(&digits.len()) && digits.len().is_multiple_of(2);
    fits && digits.bytes().all(is_digit)
}

fn literal(expression: &StringExpr) -> Option<&str> {
    match expression {
        StringExpr::Literal(text) => Some(text),
        _ => None,
    }
}

fn key(expression: &StringExpr) -> Option<PublicKey> {
    PublicKey::from_keynote(literal(expression)?).ok()?
}

/// The value that a test requires an attribute to have.
fn equal_to<'a>(test: &'a Predicate, name: &str) -> Option<&'a str> {
    match test {
        Predicate::Strings(StringExpr::Attribute(attribute), Comparison::Equal, value)
            if attribute == name =>
        {
            literal(value)
        }
        _ => None,
    }
}

fn object_of(test: &Predicate) -> Option<&str> {
    match test {
        Predicate::Any(tests) => tests.iter().find_map(|test| equal_to(test, "object")),
        _ => None,
    }
}

fn expiry_of(test: &Predicate) -> Option<&str> {
    match test {
        Predicate::Strings(StringExpr::Attribute(name), _, value) if name == NOW => literal(value),
        _ => None,
    }
}

/// Returns whether a text has the format of a time. The day need not exist, because only the order
/// of such texts matters.
fn is_time(text: &str) -> bool {
    let fits = |(byte, form): (u8, u8)| match form {
        b'0' => byte.is_ascii_digit(),
        form => byte == form,
    };
    text.len() == TIME_FORM.len() && text.bytes().zip(TIME_FORM.bytes()).all(fits)
}

/// The reason why a grant cannot be written or signed.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    /// The object is not an id.
    #[error("the id of an object is x, pairs of hexadecimal digits in lower case, and z")]
    Object,
    /// The grant gives no rights.
    #[error("a grant needs at least one right of r, w, x, c, d and a")]
    NoRights,
    /// The export's name is empty or contains a NUL.
    #[error("the name of the export is empty or has a NUL in it")]
    Export,
    /// The expiry has another format.
    #[error("an expiry has the form 2026-12-25T00:00:00Z, in UTC")]
    Expiry,
    /// The comment is too long.
    #[error("a comment has at most {COMMENT_BYTES_MAX} bytes")]
    Comment,
    /// Signing failed.
    #[error(transparent)]
    Unsigned(#[from] UnsignedReason),
}

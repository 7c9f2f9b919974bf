//! The syntax of exports(5): [`lexer`] splits it into words, [`parser`] makes declarations of them,
//! [`options`] applies the options.

mod ceph_options;
mod idmap_options;
mod lexer;
pub(crate) mod options;
mod parser;
pub(crate) mod table;
#[cfg(test)]
mod tests;

pub(crate) use parser::parse;

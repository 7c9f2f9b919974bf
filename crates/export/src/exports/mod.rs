//! The text of exports(5): [`lexer`] makes words of it, [`parser`] makes declarations of them,
//! [`options`] knows every option and what becomes of it.

mod idmap_options;
mod lexer;
pub(crate) mod options;
mod parser;
pub(crate) mod table;
#[cfg(test)]
mod tests;

pub(crate) use parser::parse;

//! The text of exports(5): [`lexer`] makes words of it, [`parser`] makes declarations of them,
//! [`options`] knows every option and what becomes of it.

mod lexer;
pub(crate) mod options;
mod parser;
mod rooms;
pub(crate) mod table;
#[cfg(test)]
mod tests;

pub(crate) use parser::parse;

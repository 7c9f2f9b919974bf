//! State that moves to another engine.

mod clients;

//! Tests of each kind of recovery, and random combinations of them.

mod callbacks;
mod connections;
mod directories;
mod leaving;
mod locks;
mod restarts;
mod revocations;
mod seeds;
mod sessions;

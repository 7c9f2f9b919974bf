//! Each way of recovery, by name, and many ways at once by chance.

mod callbacks;
mod connections;
mod directories;
mod locks;
mod restarts;
mod revocations;
mod seeds;
mod sessions;

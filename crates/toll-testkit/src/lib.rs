// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fixtures and helpers of the tests of all crates.
//!
//! | module | content |
//! |---|---|
//! | [`actions`] | action files of the preload library |
//! | [`compiler`] | test programs in C |
//! | [`directory`] | the directory of one test, also as the root of a fictional machine |
//! | [`machine`] | properties of the machine that runs the tests |
//! | [`model`] | sites, profiles, plans, costs |
//! | [`output`] | what a command printed, and its exit code |
//! | [`pool`] | the machine's pool of huge pages |
//! | [`process`] | running programs: their lines, signals to them, waiting for events |
//! | [`recorded`] | the events that the preload library recorded |
//! | [`schema`] | JSON against the schemas of the repository |
//! | [`terminal`] | pseudo-terminals |
//! | [`tool`] | the built program and its preload library |
//! | [`trace`] | the system calls of a program |

pub mod actions;
pub mod compiler;
pub mod directory;
pub mod machine;
pub mod model;
pub mod output;
pub mod pool;
pub mod process;
pub mod recorded;
pub mod schema;
pub mod terminal;
pub mod tool;
pub mod trace;

pub use directory::Directory;

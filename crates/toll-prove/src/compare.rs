// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interleaved comparison: the program as it is, under a plan, and all huge; or two commands.
//!
//! | file | holds |
//! |---|---|
//! | `variant` | the compared ways of running the program |
//! | `invocation` | one of two commands, with its environment |
//! | `sample` | the measurements of one run |
//! | [`schedule`] | the order of runs, and the stopping rule (pure) |
//! | `judge` | runs the variants, and computes the result |
//! | `outputs` | compares the output of the runs |
//! | [`result`] | the result of all runs: intervals and a verdict |
//! | `notes` | notes for the reader of a result |
//! | [`metric`] | the number that --metric captures |
//! | `input` | the stdin of every run |
//! | [`warm`] | memory touched before every run, and freed as the program grows |
//! | `prepared` | the variants of one command, prepared for runs |
//! | [`runner`] | starts a run, and does what is due while it lasts |
//! | `program` | checks the runs of a program that ends by itself |
//! | `server` | drives a load against each run of a server |
//! | `last_words` | the last lines of a program's stderr, for messages |
//! | [`load`] | what drives the load, and its output |
//! | `driver` | drives a load in a thread of its own |
//! | [`subject`] | either of them |
//! | [`table`] | the result as text |
//! | `truth` | simulated comparisons with a known truth (tests) |

pub(crate) mod driver;
mod input;
mod invocation;
mod judge;
mod last_words;
pub mod load;
pub mod metric;
#[cfg(test)]
pub(crate) mod mock;
mod notes;
pub(crate) mod outputs;
mod prepared;
mod program;
pub mod result;
pub mod runner;
mod sample;
pub mod schedule;
mod server;
pub mod subject;
pub mod table;
#[cfg(test)]
mod truth;
mod variant;
pub mod warm;

pub use invocation::Invocation;
pub(crate) use judge::go_on;
pub use judge::{compare, predicted};
pub use result::Comparison;
pub use sample::{Resource, Sample};
pub use variant::Variant;

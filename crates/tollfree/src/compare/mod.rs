// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interleaved comparison: the program as it is, under a plan, and all huge.
//!
//! | file | holds |
//! |---|---|
//! | [`variant`] | the compared ways of running the program |
//! | [`sample`] | the measurements of one run |
//! | [`schedule`] | the order of runs, and the stopping rule (pure) |
//! | [`outputs`] | compares the output of the runs |
//! | [`result`] | the results of all runs, with intervals and a verdict |
//! | [`metric`] | the number that --metric captures |
//! | [`input`] | the stdin of every run |
//! | [`warm`] | memory touched before every run, and freed as the program grows |
//! | [`runner`] | code shared by the two kinds of runs below |
//! | [`program`] | runs a program that ends by itself |
//! | [`server`] | runs a server and drives a load against it |
//! | [`subject`] | either of them |
//! | [`table`] | the result as text |
//! | `truth` | simulated comparisons with a known truth (tests) |

pub mod input;
pub mod metric;
pub mod outputs;
pub mod program;
pub mod result;
pub mod runner;
pub mod sample;
pub mod schedule;
pub mod server;
pub mod subject;
pub mod table;
#[cfg(test)]
mod truth;
pub mod variant;
pub mod warm;

pub use result::{Comparison, compare, go_on, predicted};
pub use sample::{Resource, Sample};
pub use variant::Variant;

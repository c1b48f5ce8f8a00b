// SPDX-License-Identifier: MIT OR Apache-2.0
//! Side by side: the program as it is, under a plan, and all huge, in turn.
//!
//! | file | holds |
//! |---|---|
//! | [`arm`] | the ways of running that are compared |
//! | [`sample`] | what one run gave |
//! | [`schedule`] | which arm runs when, and when it is enough (pure) |
//! | [`observe`] | a look at a program while it runs |
//! | [`outputs`] | whether every run printed the same |
//! | [`result`] | the numbers of all runs, with intervals and a verdict |
//! | [`metric`] | the number that --metric captures |
//! | [`input`] | the stdin that every run gets |
//! | [`warm`] | memory touched before every run, and freed as it grows |
//! | [`runner`] | what the two kinds of runs below have in common |
//! | [`program`] | runs a program that ends by itself |
//! | [`server`] | runs a server and drives a load against it |
//! | [`table`] | the result for people |
//! | `truth` | simulated comparisons whose truth is known (tests) |

pub mod arm;
pub mod input;
pub mod metric;
pub mod observe;
pub mod outputs;
pub mod program;
pub mod result;
pub mod runner;
pub mod sample;
pub mod schedule;
pub mod server;
pub mod table;
#[cfg(test)]
mod truth;
pub mod warm;

pub use arm::{Arm, Change};
pub use result::{Comparison, compare, go_on, predicted};
pub use sample::{Resource, Sample};

/// Whether the machine makes all memory huge unasked, so that the arm "none" is huge already.
pub fn thp_is_always() -> bool {
    use toll_linux::{Root, sys};
    let thp = sys::Thp::read(&Root::system());
    thp.is_some_and(|thp| thp.region_mode() == sys::Mode::Always)
}

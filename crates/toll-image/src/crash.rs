// SPDX-License-Identifier: MIT OR Apache-2.0
//! The search for crash states.
//!
//! A [`trace`] of an operation gives the states that x86 allows after a crash ([`lines`]): of each
//! cache line, the stores up to any point since its last flush that a fence followed, in any
//! combination. Each state is recovered, with a second crash at any point of the recovery, and
//! compared with a [`model`] in memory by the [`judge`]. [`search`] does this for sequences of
//! operations; [`all`] has the searches that the format is checked by.

pub mod all;
pub mod judge;
pub mod lines;
pub mod model;
pub mod op;
pub mod random;
pub mod search;
pub mod trace;
pub mod workload;
pub mod world;

pub use op::Op;
pub use search::{Report, Search, Violation};

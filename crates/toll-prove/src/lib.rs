// SPDX-License-Identifier: MIT OR Apache-2.0
//! Proves what huge pages gain: by runs of the compared variants in turn, with an interval.
//!
//! | module | does |
//! |---|---|
//! | [`compare`] | runs variants of a program in turn, and judges them |
//! | [`verify`] | measures what single lines of a plan save |
//! | [`tune`] | observes, estimates, acts and compares within a time limit, and decides |
//! | [`ratio`] | ratios with their intervals, as text |
//! | `fnv` | fingerprints of files and command lines |

pub mod compare;
mod fnv;
pub mod ratio;
pub mod tune;
pub mod verify;

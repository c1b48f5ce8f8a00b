// SPDX-License-Identifier: MIT OR Apache-2.0
//! Regions, sites, profiles, cost tables, plans and statistics.
//!
//! This crate does not call the operating system: everything is a function of its arguments, so
//! that it can be tested with property tests. Binary layouts are those of [`wire`].
//!
//! | module | holds |
//! |---|---|
//! | [`actions`] | converts a plan to actions of the preload library and the parent |
//! | [`site`] | identifies memory across runs and ASLR |
//! | [`builder`] | builds a profile from single observations |
//! | [`profile`] | observed counts per byte interval of a site |
//! | [`cost`] | the costs of one machine |
//! | [`eligibility`] | why memory of a mapping is in 4 KiB pages |
//! | [`error`] | why a file cannot be used |
//! | [`intervals`] | arithmetic of byte intervals |
//! | [`largepages`] | lists of fixed addresses |
//! | [`kernel`] | profiles for the kernel's estimator |
//! | [`kernel_costs`] | cost files for the kernel's estimator |
//! | [`losses`] | what virtual memory costs: counters with estimates of the CPU time lost |
//! | [`lines`] | a plan in few lines |
//! | [`names`] | names that others chose, for terminals |
//! | [`numbers`] | numbers for readers |
//! | [`pages`] | kinds of large pages |
//! | [`plan`] | estimated regions with a verdict, and the speed-up they predict |
//! | [`estimate`] | computes a plan from a profile and a cost table |
//! | [`random`] | random numbers for resampling |
//! | [`stats`] | intervals and verdicts from interleaved runs |
//! | [`units`] | parses and formats sizes, times and ranges |

pub mod actions;
pub mod builder;
pub mod cost;
pub mod eligibility;
pub mod error;
pub mod estimate;
mod format;
pub mod intervals;
pub mod kernel;
pub mod kernel_costs;
pub mod largepages;
pub mod lines;
pub mod losses;
pub mod names;
pub mod numbers;
pub mod pages;
pub mod plan;
pub mod profile;
pub mod random;
pub mod site;
pub mod stats;
pub mod units;

pub use toll_wire::{self as wire, PAGE, REGION};

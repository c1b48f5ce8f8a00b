// SPDX-License-Identifier: MIT OR Apache-2.0
//! Regions, sites, profiles, cost tables, plans and statistics.
//!
//! This crate does not call the operating system: everything is a function of its arguments, so
//! that it can be tested with property tests.
//!
//! | module | holds |
//! |---|---|
//! | [`actions`] | converts a plan to actions of the preload library and the parent |
//! | [`site`] | identifies memory across runs and ASLR |
//! | [`builder`] | builds a profile from single observations |
//! | [`profile`] | observed counts per byte interval of a site |
//! | [`cost`] | the costs of one machine |
//! | [`largepages`] | lists of fixed addresses |
//! | [`kernel`] | profiles for the kernel's estimator |
//! | [`kernel_costs`] | cost files for the kernel's estimator |
//! | [`lines`] | a plan in few lines |
//! | [`numbers`] | numbers for readers |
//! | [`plan`] | estimated regions with a verdict, and the speed-up they predict |
//! | [`estimate`] | computes a plan from a profile and a cost table |
//! | [`stats`] | intervals and verdicts from interleaved runs |
//! | [`units`] | parses and formats sizes, times and ranges |
//! | [`wire`] | binary layouts shared with the preload library and the simulator |

#[cfg(feature = "formats")]
pub mod actions;
#[cfg(feature = "formats")]
pub mod builder;
#[cfg(feature = "formats")]
pub mod cost;
#[cfg(feature = "formats")]
pub mod error;
#[cfg(feature = "formats")]
pub mod estimate;
#[cfg(feature = "formats")]
mod format;
#[cfg(feature = "formats")]
pub mod kernel;
#[cfg(feature = "formats")]
pub mod kernel_costs;
#[cfg(feature = "formats")]
pub mod largepages;
#[cfg(feature = "formats")]
pub mod lines;
#[cfg(feature = "formats")]
pub mod numbers;
#[cfg(feature = "formats")]
pub mod plan;
#[cfg(feature = "formats")]
pub mod profile;
#[cfg(feature = "formats")]
pub mod site;
#[cfg(feature = "formats")]
pub mod stats;
#[cfg(feature = "formats")]
mod stored;
#[cfg(feature = "formats")]
pub mod units;
pub mod wire;

/// Size of a base page in bytes (x86-64).
pub const PAGE: u64 = 4096;
/// Size of a region in bytes: the reach of one PMD entry (x86-64).
pub const REGION: u64 = 2 << 20;

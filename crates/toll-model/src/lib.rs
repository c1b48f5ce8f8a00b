// SPDX-License-Identifier: MIT OR Apache-2.0
//! Regions, anchors, profiles, cost tables, plans and statistics.
//!
//! This crate makes no call to the operating system: everything here is a
//! function of its arguments, which is what makes it testable by property.
//!
//! | module | holds |
//! |---|---|
//! | [`actions`] | from a plan to what the preload library and the parent do |
//! | [`anchor`] | what names a piece of memory across runs and ASLR |
//! | [`builder`] | from single observations to a profile |
//! | [`profile`] | what was observed: counts per byte interval of an anchor |
//! | [`cost`] | the prices of one machine |
//! | [`largepages`] | lists of fixed addresses |
//! | [`kernel`] | profiles for the kernel's estimator |
//! | [`kernel_costs`] | prices for it |
//! | [`plan`] | priced regions with a verdict, and the speed-up they predict |
//! | [`price`] | from a profile and a cost table to a plan |
//! | [`stats`] | intervals and verdicts from interleaved runs |
//! | [`units`] | sizes, times and ranges as people write them |
//! | [`wire`] | the layouts that the preload library and the simulator share |

#[cfg(feature = "formats")]
pub mod actions;
#[cfg(feature = "formats")]
pub mod anchor;
#[cfg(feature = "formats")]
pub mod builder;
#[cfg(feature = "formats")]
pub mod cost;
#[cfg(feature = "formats")]
pub mod error;
#[cfg(feature = "formats")]
mod format;
#[cfg(feature = "formats")]
pub mod kernel;
#[cfg(feature = "formats")]
pub mod kernel_costs;
#[cfg(feature = "formats")]
pub mod largepages;
#[cfg(feature = "formats")]
pub mod plan;
#[cfg(feature = "formats")]
pub mod price;
#[cfg(feature = "formats")]
pub mod profile;
#[cfg(feature = "formats")]
pub mod stats;
#[cfg(feature = "formats")]
mod stored;
#[cfg(feature = "formats")]
pub mod units;
pub mod wire;

/// Size of a base page in bytes (x86-64).
pub const PAGE: u64 = 4096;
/// Size of a region in bytes: what one PMD entry maps (x86-64).
pub const REGION: u64 = 2 << 20;

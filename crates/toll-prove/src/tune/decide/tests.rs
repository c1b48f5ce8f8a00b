// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps on a mock machine with given times.

mod early;
pub(crate) mod mock;
mod pages;
mod settings;
mod time;
mod verdicts;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps on a mock machine with given times.

mod early;
mod mock;
mod settings;
mod time;
mod verdicts;

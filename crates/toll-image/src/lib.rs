// SPDX-License-Identifier: MIT OR Apache-2.0
//! The format of persistent morsels, version 1, and what works on it offline.
//!
//! `kernel/tree/Documentation/filesystems/morselfs-format.rst` describes the format and the order of
//! the stores of every operation. [`survey()`] reads a range and checks all of it before anything is
//! used; [`recover`] completes what a crash interrupted; [`ops`] performs the operations of the file
//! system; [`crash`] searches the states that a crash can leave for one that is wrong.
#![forbid(unsafe_code)]

pub mod crash;
pub mod fault;
pub mod finding;
pub mod layout;
pub mod make;
pub mod medium;
pub mod ops;
pub mod owned;
pub mod recover;
pub mod superblock;
pub mod survey;
pub mod word;
pub mod xattr;

pub use finding::{Finding, Fix, Severity};
pub use medium::{Image, Medium, Source};
pub use recover::{recover, repair};
pub use superblock::{Refusal, Superblock};
pub use survey::{Survey, survey};

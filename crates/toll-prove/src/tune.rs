// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tune`: finds out whether and where huge pages pay, and what to do about it.
//!
//! | file | holds |
//! |---|---|
//! | [`decide`] | the five steps and their early ends (pure, behind a trait) |
//! | [`budget`] | the division of the time limit (pure) |
//! | [`findings`] | the answer, as `tune --json` prints it |
//! | `experiment` | the trait: all access to the machine |
//! | [`machine`] | the machine behind the trait |
//! | [`kinds`] | which kinds of large pages are tried |
//! | `today` | the huge pages of a program without tollfree |
//! | [`live`] | `--pid`: a running process |
//! | [`directory`] | the directory of the results |
//! | [`resume`] | `--resume`: the state of an earlier tune |
//! | [`text`] | the answer as text |

pub mod budget;
pub mod decide;
pub mod directory;
mod experiment;
pub mod findings;
pub mod kinds;
pub mod live;
pub mod machine;
pub mod resume;
pub mod text;
mod today;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Observes programs: where they touch memory, and where they miss the TLB.
//!
//! The results are profiles, whatever the source of the counts. Targets are started by `toll-act`.
//!
//! | module | does |
//! |---|---|
//! | [`record`] | records a profile: by perf, in the simulator, or by accessed bits |
//! | [`import`] | makes a profile of a recording of perf |
//! | [`heat`] | a profile's counts per region |
//! | [`observer`] | observes the memory of a running program, without a profile |
//! | [`observation`] | what an observer found |
//! | [`machine`] | this machine's costs and settings, for estimates |

pub mod heat;
pub mod import;
pub mod machine;
pub mod observation;
pub mod observer;
pub mod record;

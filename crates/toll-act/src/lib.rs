// SPDX-License-Identifier: MIT OR Apache-2.0
//! Acts on programs: starts them under a plan, and makes memory of running processes huge.
//!
//! No other crate of the advisor starts a target.
//!
//! | module | does |
//! |---|---|
//! | [`actuate`] | turns a plan into actions on a program that is about to run |
//! | [`apply`] | applies a plan to a running process |
//! | [`switch`] | switches memory of a running process between huge and 4 KiB pages, and back |
//! | [`serve`] | serves a program's mappings of large files from morsels |
//! | [`morsel`] | opens the directory of morsels, and copies files into it |
//! | [`permanent`] | lists changes that keep the gain without tollfree |
//! | [`traits`] | what a program is: its name, libraries and allocator |
//! | [`settings`] | settings of a program that decide about huge pages |
//! | [`target`] | starts a target, waits for it, and forwards signals |
//! | [`machine`] | changes a setting of the machine for a run |
//! | [`executable`] | finds the file that a command really executes |
//! | [`search`] | finds the file of a program by its name |
//! | [`install`] | finds the preload library, the simulator and its plugin |
//! | [`thp`] | whether programs get huge pages without advice |
//! | [`signals`] | records signals while a target runs |
//! | [`inherited`] | keeps the state of this process before Rust's runtime changed it |
//! | [`error`] | errors with an exit code of their own |
//! | [`files`] | reads input files, and writes results atomically |
//! | [`messages`] | messages and progress lines on stderr |

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("tollfree supports only Linux on x86-64");

pub mod actuate;
pub mod apply;
pub mod error;
pub mod executable;
pub mod files;
pub mod inherited;
pub mod install;
pub mod machine;
pub mod messages;
pub mod morsel;
pub mod permanent;
pub mod search;
pub mod serve;
pub mod settings;
pub mod signals;
pub mod switch;
pub mod target;
pub mod thp;
pub mod traits;

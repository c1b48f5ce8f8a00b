// SPDX-License-Identifier: MIT OR Apache-2.0
//! Failures, end to end: bad files, odd programs, limited machines, Ctrl-C at any time. Each must
//! end in a clear error or in the right answer, with nothing lost, half-written or left running.

mod files;
mod interrupts;
mod live;
mod machines;
mod place;
mod programs;
mod simulated;
mod terminal;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The call stack of an allocation, without the allocator.
//!
//! The same unwinder (libgcc's) runs natively and inside the simulator, so that both name a call
//! site identically. The walk starts at the first frame that is neither in this library nor in an
//! allocator, and ends at the next frame of the C library (the caller of `main`, or of a thread's
//! start routine).

use core::ffi::{c_int, c_void};

use toll_wire::{ANY, MAX_FRAMES};

use crate::hash::mix;
use crate::modules::{self, Info, Owner};
use crate::{log, plan};

/// Maximum number of frames inspected, including allocators'.
const VISITED_MAX: u32 = 40;

/// A return address outside the allocator.
#[derive(Clone, Copy)]
pub struct Frame {
    pub module: &'static Info,
    pub offset: u64,
}

impl Frame {
    /// Returns the frame in the form of the action file.
    pub fn planned(&self) -> plan::Frame {
        plan::Frame {
            module: self.module.in_plan,
            offset: self.offset,
        }
    }
}

/// The frames of one event, innermost first.
pub struct Stack {
    frames: [Option<Frame>; MAX_FRAMES],
    used: usize,
    visited: u32,
    /// Called for the first frame: false ends the walk.
    wanted: fn(&Frame) -> bool,
    rejected: bool,
}

// The unwinder is linked in: a C program would have to load libgcc_s for it, which takes as long as
// this library itself.
#[link(name = "gcc_eh", kind = "static", modifiers = "-bundle")]
unsafe extern "C" {
    fn _Unwind_Backtrace(
        step: extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

/// Walks the caller's stack; `None` if the first frame is rejected.
pub fn walk(wanted: fn(&Frame) -> bool) -> Option<Stack> {
    let mut stack = Stack {
        frames: [None; MAX_FRAMES],
        used: 0,
        visited: 0,
        wanted,
        rejected: false,
    };
    // SAFETY: `step` gets the stack back, and there is no other reference to it meanwhile.
    unsafe { _Unwind_Backtrace(step, (&raw mut stack).cast()) };
    (!stack.rejected).then_some(stack)
}

impl Stack {
    fn frames(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter().flatten()
    }

    /// Returns the frames in the form of the event file.
    pub fn logged(&self) -> log::Frames {
        let mut logged = log::Frames {
            used: self.used as u32,
            ..log::Frames::UNKNOWN
        };
        let places = logged.module.iter_mut().zip(&mut logged.offset);
        for ((module, offset), frame) in places.zip(self.frames()) {
            *module = frame.module.in_log;
            *offset = frame.offset;
        }
        logged
    }

    /// Calls `with` with the frames in the form of the action file.
    pub fn planned<R>(&self, with: impl FnOnce(&[plan::Frame]) -> R) -> R {
        let mut planned = [plan::Frame {
            module: ANY,
            offset: 0,
        }; MAX_FRAMES];
        for (place, frame) in planned.iter_mut().zip(self.frames()) {
            *place = frame.planned();
        }
        with(planned.get(..self.used).unwrap_or_default())
    }

    /// Hash of the call site: the same in each run of the same binaries.
    pub fn call_site(&self) -> u64 {
        self.frames().fold(0, |call_site, frame| {
            mix(call_site ^ frame.module.hash.wrapping_add(frame.offset))
        })
    }

    /// Adds a frame; false if no further frames are needed.
    fn push(&mut self, code: usize) -> bool {
        self.visited += 1;
        // A return address may already lie behind its module: look up the call instruction.
        let Some(module) = modules::find(code.wrapping_sub(1)) else {
            return false;
        };
        match module.owner {
            Owner::Ourselves => return self.visited < VISITED_MAX,
            Owner::CLibrary | Owner::Allocator if self.used == 0 => {
                return self.visited < VISITED_MAX;
            }
            Owner::CLibrary => return false,
            Owner::Allocator | Owner::Program => (),
        }
        let frame = Frame {
            module,
            offset: module.offset(code),
        };
        if self.used == 0 && !(self.wanted)(&frame) {
            self.rejected = true;
            return false;
        }
        if let Some(place) = self.frames.get_mut(self.used) {
            *place = Some(frame);
            self.used += 1;
        }
        self.used < MAX_FRAMES && self.visited < VISITED_MAX
    }
}

extern "C" fn step(context: *mut c_void, stack: *mut c_void) -> c_int {
    const GO_ON: c_int = 0;
    const END_OF_STACK: c_int = 5;
    // SAFETY: the unwinder passes on what `walk` gave it, and a valid context.
    let (stack, code) = unsafe { (&mut *stack.cast::<Stack>(), _Unwind_GetIP(context)) };
    if code != 0 && stack.push(code) {
        GO_ON
    } else {
        END_OF_STACK
    }
}

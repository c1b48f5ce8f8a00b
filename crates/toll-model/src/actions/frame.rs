// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames of a plan in the current modules.

use crate::site::Frame;

/// Location of a plan's frame in a current module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameRange {
    /// As [`Frame::module`].
    pub module: String,
    /// Return addresses `low..=high`, as offsets in the module.
    pub low: u64,
    pub high: u64,
    /// False if the program was rebuilt: the site then matches only as a class.
    pub exact: bool,
}

impl FrameRange {
    /// The same return address in the same build.
    pub fn exact(module: String, offset: u64) -> FrameRange {
        FrameRange {
            module,
            low: offset,
            high: offset,
            exact: true,
        }
    }

    /// A function in another build: the return address is after its first byte and at most at its
    /// end (`low..high` is the function).
    pub fn function(module: String, low: u64, high: u64) -> FrameRange {
        FrameRange {
            module,
            low,
            high,
            exact: false,
        }
    }

    /// The recorded frame.
    pub fn recorded(frame: &Frame) -> FrameRange {
        FrameRange::exact(frame.module.clone(), frame.offset)
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames of call stacks.

use serde::{Deserialize, Serialize};

/// A code address as module and offset, independent of ASLR.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "StoredFrame")]
pub struct Frame {
    /// GNU build-id in lower-case hex; `"path:BASENAME"` for a module without one.
    pub module: String,
    /// Path of the module at the time of the recording (for display; never compared).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Offset of the return address from the module's load address (its first PT_LOAD's vaddr 0).
    pub offset: u64,
    /// Demangled or raw symbol that covers `offset`, if one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// `file:line` of the call, if debug information has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Start and end offset of the function in the module, if a symbol is known: identifies the
    /// same function in a rebuilt binary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<(u64, u64)>,
    /// If no symbol covers `offset`: the last one before it, and the distance from its start, as
    /// `NAME+0xDISTANCE` (for display; a function without a symbol may lie between).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nearest: Option<String>,
}

impl Frame {
    /// Formats the call for display: `main (skew.c:40)`; without source lines `main+0x1f3`; without
    /// a symbol for the function `python3.13 after PyObject_Free+0x3d1d`, else
    /// `python3.13+0x52853d`.
    pub fn name(&self) -> String {
        let module = self.path.rsplit('/').next().unwrap_or(&self.module);
        let mut name = match (&self.symbol, &self.nearest) {
            (Some(symbol), _) => symbol.clone(),
            (None, Some(nearest)) => format!("{module} after {nearest}"),
            (None, None) => format!("{module}+{:#x}", self.offset),
        };
        match (&self.source, &self.symbol, self.function) {
            (Some(source), _, _) => name += &format!(" ({source})"),
            (None, Some(_), Some((start, _))) if start <= self.offset => {
                name += &format!("+{:#x}", self.offset - start);
            }
            _ => {}
        }
        name
    }

    /// Index in a profile's table of frames that this frame refers to while the profile is read.
    pub(crate) fn place(&self) -> Option<u64> {
        self.module.is_empty().then_some(self.offset)
    }
}

/// A frame as a profile stores it: itself, or its index in the profile's table of frames.
#[derive(Deserialize)]
#[serde(untagged)]
enum StoredFrame {
    Place(u64),
    Whole {
        module: String,
        #[serde(default)]
        path: String,
        offset: u64,
        symbol: Option<String>,
        source: Option<String>,
        function: Option<(u64, u64)>,
        nearest: Option<String>,
    },
}

impl From<StoredFrame> for Frame {
    /// An index is stored in a frame without a module until the reader of the profile resolves it.
    fn from(stored: StoredFrame) -> Frame {
        match stored {
            StoredFrame::Place(place) => Frame {
                offset: place,
                ..Frame::default()
            },
            StoredFrame::Whole {
                module,
                path,
                offset,
                symbol,
                source,
                function,
                nearest,
            } => Frame {
                module,
                path,
                offset,
                symbol,
                source,
                function,
                nearest,
            },
        }
    }
}

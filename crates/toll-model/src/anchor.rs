// SPDX-License-Identifier: MIT OR Apache-2.0
//! Anchors: what names a piece of memory across runs and ASLR.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// One code address, as module and offset, so that ASLR does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "crate::stored::StoredFrame")]
pub struct Frame {
    /// GNU build-id in lower-case hex; `"path:BASENAME"` for a module without one.
    pub module: String,
    /// Path of the module when it was recorded (for people; never compared).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Offset of the return address from the module's load address (its first PT_LOAD's vaddr 0).
    pub offset: u64,
    /// Demangled or raw symbol that covers `offset`, if one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// `file:line` of the call, if debug information says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Start and end offset of the function in the module, if a symbol is known:
    /// finds the same function again in a rebuilt binary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<(u64, u64)>,
    /// Where no symbol covers `offset`: the last one before it, and the distance from its start, as
    /// `NAME+0xDISTANCE` (for people; a function without a symbol may lie between).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nearest: Option<String>,
}

/// What the name of an allocation says, for the top of a list of such names.
pub const LEGEND: &str = "FUNCTION+OFFSET 2^N #K: a block of 2^N bytes or more (less than 2^(N+1)), \
     allocated by the call there; K such blocks came before it";

impl Frame {
    /// The call for people: `main (skew.c:40)`; without source lines `main+0x1f3`; without a symbol
    /// for the function `python3.13 after PyObject_Free+0x3d1d`, else `python3.13+0x52853d`.
    fn name(&self) -> String {
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

    /// The place in a profile's table of frames that this one stands for, while it is read.
    pub(crate) fn place(&self) -> Option<u64> {
        self.module.is_empty().then_some(self.offset)
    }
}

/// What kind of thing an anchor names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum AnchorKind {
    /// An allocation event: a call of malloc, mmap or a relative of at least 1 MiB.
    Alloc {
        /// First frames outside the allocator, innermost first (at most [`crate::wire::MAX_FRAMES`]).
        /// Thousands of events come from few call sites, so each frame is held once.
        frames: Vec<Arc<Frame>>,
        /// `floor(log2(length))`.
        class: u8,
        /// How many earlier events this thread had at this site and class.
        ordinal: u32,
        /// Creation ordinal of the thread; 0 is the first thread.
        thread: u32,
    },
    /// The brk heap; offsets count from its start.
    Heap,
    /// The main thread's stack; offsets count *down* from its top.
    Stack,
    /// A reservation by a managed runtime (`"jvm"`, `"go"`).
    Reservation { runtime: String },
    /// A file mapping; offsets count from the start of the file.
    File {
        /// Build-id in hex, empty if the file has none.
        build_id: String,
        path: String,
    },
    /// A named VMA, for instance `[anon:heap-a]`; offsets count from its start.
    Vma { name: String },
    /// All other large anonymous memory, taken together.
    Anonymous,
    /// A fixed address (the way of `largepages.txt`); offsets count from `start`.
    Address { start: u64 },
}

/// How well an anchor of a profile was found again in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// The same event: site, length class, ordinal and thread.
    Exact,
    /// The same site and at least the same length class.
    Class,
    /// The same kind of memory only.
    Kind,
    /// Not found: named to the user, never advised.
    NotFound,
}

/// A named piece of memory in a profile or a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// Unique within the file; what rows and regions refer to.
    pub id: u32,
    #[serde(flatten)]
    pub kind: AnchorKind,
    /// Length in bytes as recorded (the largest, if it grew).
    pub length: u64,
    /// Distance in bytes from the last 2 MiB boundary to the anchor's start, as recorded.
    pub misalignment: u64,
    /// The best level at which this anchor may be matched in another run.
    pub level: Level,
}

/// No anchor is longer: the user half of a 57-bit address space.
pub const MAX_LENGTH: u64 = 1 << 56;

impl Anchor {
    /// The name of all allocations of this one's call site and length class: `new_arena+0x2c 2^20`;
    /// `None` for what is no allocation.
    pub fn site(&self) -> Option<String> {
        let AnchorKind::Alloc { frames, class, .. } = &self.kind else {
            return None;
        };
        let call = match frames.first() {
            None => "unknown site".to_owned(),
            Some(frame) => frame.name(),
        };
        Some(format!("{call} 2^{class}"))
    }

    /// Says what is impossible about this anchor, if anything is.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.length > MAX_LENGTH {
            return Err(format!("length {:#x} is no length of memory", self.length));
        }
        if self.misalignment >= crate::REGION {
            return Err(format!(
                "misalignment {:#x} is not below 2 MiB",
                self.misalignment
            ));
        }
        match &self.kind {
            AnchorKind::Address { start } if *start > MAX_LENGTH => {
                Err(format!("start {start:#x} is no user address"))
            }
            AnchorKind::Alloc { frames, .. } if frames.len() > crate::wire::MAX_FRAMES => {
                Err(format!(
                    "{} frames, more than {}",
                    frames.len(),
                    crate::wire::MAX_FRAMES
                ))
            }
            AnchorKind::Alloc { frames, .. }
                if frames.iter().any(|frame| frame.module.is_empty()) =>
            {
                Err("a frame without a module".to_owned())
            }
            AnchorKind::Alloc { class, .. } if *class > 63 => {
                Err(format!("class {class} is no power of two of bytes"))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Anchor {
    /// The name that reports, plans and JSON use: `main (skew.c:40) 2^27 #0`; see [`LEGEND`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            AnchorKind::Alloc {
                ordinal, thread, ..
            } => {
                write!(f, "{} #{ordinal}", self.site().unwrap_or_default())?;
                if *thread != 0 {
                    write!(f, " thread {thread}")?;
                }
                Ok(())
            }
            AnchorKind::Heap => write!(f, "heap"),
            AnchorKind::Stack => write!(f, "stack"),
            AnchorKind::Reservation { runtime } => write!(f, "{runtime} reservation"),
            AnchorKind::File { path, .. } => write!(f, "file {path}"),
            AnchorKind::Vma { name } => write!(f, "{name}"),
            AnchorKind::Anonymous => write!(f, "other anonymous memory"),
            AnchorKind::Address { start } => write!(f, "address {start:#x}"),
        }
    }
}

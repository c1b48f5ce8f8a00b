// SPDX-License-Identifier: MIT OR Apache-2.0
//! Anchors: what names a piece of memory across runs and ASLR.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// One code address, as module and offset, so that ASLR does not matter.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
}

impl Frame {
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
    /// The name that reports, plans and JSON use: `main+0x1f3 (skew.c:40) #0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            AnchorKind::Alloc {
                frames,
                class,
                ordinal,
                thread,
            } => {
                match frames.first() {
                    None => write!(f, "unknown site")?,
                    Some(frame) => {
                        let name = frame.path.rsplit('/').next().unwrap_or(&frame.module);
                        match &frame.symbol {
                            Some(symbol) => write!(f, "{symbol}")?,
                            None => write!(f, "{name}+{:#x}", frame.offset)?,
                        }
                        if let Some(source) = &frame.source {
                            write!(f, " ({source})")?;
                        }
                    }
                }
                write!(f, " 2^{class} #{ordinal}")?;
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

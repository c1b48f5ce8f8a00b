// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was observed of a program's memory while it ran.

use serde::{Deserialize, Serialize};
use toll_act::permanent::Traits;
use toll_linux::proc::{Kind, Mapping, Smap};
use toll_model::numbers;

/// Share of huge-page-backed memory from which a program counts as huge already.
const ALREADY_HUGE: f64 = 0.5;

/// The observations. Sizes are bytes, of the process with the most memory, and in every other
/// window of the one with the most CPU time: a server's children may do the work with less memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// Number of windows in which touches were counted.
    pub windows: u32,
    /// Largest amount of memory touched within one window.
    pub working_set: u64,
    /// Largest resident memory.
    pub resident: u64,
    /// Largest anonymous memory, and the huge part of it at that time.
    pub anonymous: u64,
    pub huge: u64,
    /// Anonymous memory of the brk heap at that time.
    #[serde(default)]
    pub heap: u64,
    /// madvise hints on its anonymous memory at that time, from itself or a library.
    #[serde(default)]
    pub hints: Hints,
    /// Program text of files, the most touched first, within the last window: in the first ones,
    /// the kernel maps pages around each that is touched.
    #[serde(default)]
    pub text: Vec<TextUse>,
    /// Whether the program (or its parent) disabled huge pages for it.
    pub switched_off: bool,
    pub traits: Traits,
}

impl Observation {
    /// Whether most of the program's anonymous memory is huge without tollfree.
    pub fn is_huge(&self) -> bool {
        is_mostly_huge(self.huge, self.anonymous)
    }
}

/// Program text of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextUse {
    pub path: String,
    /// Touched within the window, in 4 KiB pages.
    pub touched: u64,
    /// In huge pages already: the page cache has large pages of files that were written at once.
    pub huge: u64,
    /// Length of its longest mapping.
    pub length: u64,
}

impl TextUse {
    /// Returns the text of a process, by file.
    pub(crate) fn of(smaps: &[Smap]) -> Vec<TextUse> {
        let mut all: Vec<TextUse> = Vec::new();
        for smap in smaps.iter().filter(|smap| is_text(&smap.mapping)) {
            let (path, length) = (&*smap.mapping.name, smap.mapping.len());
            let touched = smap.referenced.saturating_sub(smap.file_huge);
            match all.iter_mut().find(|text| text.path == path) {
                Some(text) => {
                    text.touched += touched;
                    text.huge += smap.file_huge;
                    text.length = text.length.max(length);
                }
                None => all.push(TextUse {
                    path: path.to_owned(),
                    touched,
                    huge: smap.file_huge,
                    length,
                }),
            }
        }
        all.sort_by_key(|text| std::cmp::Reverse(text.touched));
        all
    }
}

fn is_text(mapping: &Mapping) -> bool {
    let is_file = matches!(mapping.kind(), Kind::File(_));
    is_file && mapping.execute && !mapping.write && !mapping.shared
}

/// Whether most of some anonymous memory is huge.
pub fn is_mostly_huge(huge: u64, anonymous: u64) -> bool {
    anonymous > 0 && huge as f64 >= ALREADY_HUGE * anonymous as f64
}

/// madvise hints on private anonymous mappings. A hint stays with its addresses: freed memory that
/// is reused still has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hints {
    /// Mappings with MADV_HUGEPAGE, and their bytes.
    pub huge_mappings: u64,
    pub huge_bytes: u64,
    /// Mappings with MADV_NOHUGEPAGE, and their bytes.
    pub never_mappings: u64,
    pub never_bytes: u64,
}

impl Hints {
    pub(crate) fn of(smaps: &[Smap]) -> Hints {
        let mut hints = Hints::default();
        let memory = smaps.iter().filter(|it| it.mapping.is_private_anonymous());
        for smap in memory {
            let bytes = smap.mapping.len();
            if smap.advised_huge {
                hints.huge_mappings += 1;
                hints.huge_bytes += bytes;
            }
            if smap.advised_never {
                hints.never_mappings += 1;
                hints.never_bytes += bytes;
            }
        }
        hints
    }

    /// Describes the hints; `None` if there are none. `planned`: some may come from a plan.
    pub fn text(&self, planned: bool) -> Option<String> {
        let some = |mappings: u64, bytes: u64, advice: &str| {
            let number = numbers::of(mappings as usize, "mapping");
            (mappings > 0).then(|| format!("{number} ({}) with {advice}", numbers::bytes(bytes)))
        };
        let said: Vec<String> = [
            some(self.huge_mappings, self.huge_bytes, "MADV_HUGEPAGE"),
            some(self.never_mappings, self.never_bytes, "MADV_NOHUGEPAGE"),
        ]
        .into_iter()
        .flatten()
        .collect();
        let by = match planned {
            true => "its plan, the program itself or a library",
            false => "the program itself or a library, no plan",
        };
        (!said.is_empty()).then(|| {
            format!(
                "hints by {by}: {}; a hint stays with its addresses when the memory is freed and \
                 reused",
                said.join(", ")
            )
        })
    }
}

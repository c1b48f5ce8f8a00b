// SPDX-License-Identifier: MIT OR Apache-2.0
//! NUL-terminated paths of modules.

use toll_wire::{MODULE_PATH, until_nul};

/// Copies a path, cut at the front if it is too long.
pub fn copy(to: &mut [u8; MODULE_PATH], from: &[u8]) {
    let path = until_nul(from);
    let cut = path.len().saturating_sub(MODULE_PATH - 1);
    let kept = path.get(cut..).unwrap_or_default();
    for (to, from) in to.iter_mut().zip(kept) {
        *to = *from;
    }
}

/// Returns the part after the last slash.
pub fn base_name(path: &[u8]) -> &[u8] {
    let path = until_nul(path);
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

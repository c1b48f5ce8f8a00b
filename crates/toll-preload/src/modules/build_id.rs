// SPDX-License-Identifier: MIT OR Apache-2.0
//! The GNU build-id of a loaded module.

use core::mem::size_of;

use super::linker::Mapped;
use crate::os::PAGE;

/// Returns the build-id in a module's memory.
pub fn find(mapped: &Mapped) -> Option<&'static [u8]> {
    let header = mapped.start as *const libc::Elf64_Ehdr;
    // SAFETY: the first page of a module is mapped and readable, and all reads are checked to lie
    // inside the module.
    unsafe {
        if (*header).e_ident.get(..4) != Some(b"\x7fELF") {
            return None;
        }
        let count = usize::from((*header).e_phnum);
        let first = (*header).e_phoff as usize;
        if first.checked_add(count * size_of::<libc::Elf64_Phdr>())? > PAGE {
            return None;
        }
        let headers = (mapped.start + first) as *const libc::Elf64_Phdr;
        let headers = core::slice::from_raw_parts(headers, count);
        headers
            .iter()
            .filter(|header| header.p_type == libc::PT_NOTE)
            .find_map(|header| {
                let start = mapped.bias.wrapping_add(header.p_vaddr as usize);
                let end = start.checked_add(header.p_memsz as usize)?;
                if start < mapped.start || end > mapped.end {
                    return None;
                }
                let bytes = core::slice::from_raw_parts(start as *const u8, end - start);
                id_in_notes(bytes, header.p_align as usize)
            })
    }
}

/// Returns the GNU build-id among the notes of one segment.
fn id_in_notes(mut notes: &'static [u8], align: usize) -> Option<&'static [u8]> {
    const BUILD_ID: u32 = 3;
    let align = if align == 8 { 8 } else { 4 };
    let padded = |length: usize| length.checked_next_multiple_of(align);
    loop {
        let word = |at: usize| -> Option<u32> {
            Some(u32::from_le_bytes(notes.get(at..at + 4)?.try_into().ok()?))
        };
        let (name_length, length, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
        let name = notes.get(12..)?.get(..name_length)?;
        let start = padded(12usize.checked_add(name_length)?)?;
        let content = notes.get(start..)?.get(..length)?;
        if kind == BUILD_ID && name == b"GNU\0" && !content.is_empty() {
            return Some(content);
        }
        notes = notes.get(padded(start.checked_add(length)?)?..)?;
    }
}

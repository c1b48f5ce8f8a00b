// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn finds_one_in_this_process() {
    let place = syscall_instruction(std::process::id()).expect("a vdso");
    // SAFETY: the vdso is permanently mapped and readable.
    assert_eq!(unsafe { *(place as *const [u8; 2]) }, SYSCALL);
}

#[test]
fn a_vector_without_a_vdso_has_none() {
    assert_eq!(address(&[]), None);
    assert_eq!(address(&[0; 32]), None);
    let mut cut = vec![0; 20];
    cut[0] = VDSO_ENTRY as u8;
    assert_eq!(address(&cut), None, "address 0 is none");
}

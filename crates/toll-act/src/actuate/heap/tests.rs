// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

fn program(name: &str) -> Executable {
    Executable::of(&[name.into()]).unwrap()
}

#[test]
fn the_switch_is_heeded_under_madvise_only() {
    let sh = program("sh");
    // The machine determines whether glibc is new enough.
    let known = mentions(&sh.loader().unwrap(), SWITCH);
    assert_eq!(has_switch(&sh, Some(Mode::Madvise)), known);
    for other in [None, Some(Mode::Always), Some(Mode::Never)] {
        assert!(!has_switch(&sh, other), "{other:?}");
    }
    let privileged = Executable {
        obstacle: Some(Obstacle::Privileged),
        ..sh
    };
    assert!(!has_switch(&privileged, Some(Mode::Madvise)));
}

#[test]
fn a_program_without_a_loader_is_searched_itself() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("static");
    let mut executable = program("sh");
    executable.path = path.clone();
    for (content, expected) in [("\0glibc.malloc.check\0", false), (SWITCH, true)] {
        std::fs::write(&path, content).unwrap();
        assert_eq!(has_switch(&executable, Some(Mode::Madvise)), expected);
    }
}

#[test]
fn a_word_is_found_across_borders() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    for before in [0, (1 << 20) - 1, (1 << 20) - SWITCH.len(), 5 << 19] {
        std::fs::write(&path, [&vec![b'g'; before], SWITCH.as_bytes()].concat()).unwrap();
        assert!(mentions(&path, SWITCH), "{before}");
    }
    std::fs::write(&path, vec![b'g'; 3 << 20]).unwrap();
    assert!(!mentions(&path, SWITCH));
    assert!(!mentions(directory.path(), SWITCH));
}

#[test]
fn what_the_user_set_stays() {
    assert_eq!(tunables(None), "glibc.malloc.hugetlb=1");
    let theirs = OsStr::new("glibc.malloc.check=0");
    assert_eq!(
        tunables(Some(theirs)),
        "glibc.malloc.check=0:glibc.malloc.hugetlb=1"
    );
}

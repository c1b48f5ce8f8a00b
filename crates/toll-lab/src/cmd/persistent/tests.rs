// SPDX-License-Identifier: MIT OR Apache-2.0
use toll_image::layout::{PAGE, Time, inode, kind, seal};
use toll_image::make::{Template, make};
use toll_image::ops::Fs;

use super::*;

/// An empty range.
pub fn empty(pages: u64) -> Vec<u8> {
    let mut image = vec![0; (pages * PAGE) as usize];
    let template = Template {
        uuid: [0; 16],
        pages,
        now: Time::default(),
        mode: 0o755,
        uid: 0,
        gid: 0,
    };
    make(&mut image, &template).unwrap();
    image
}

/// A range with these files.
fn range(files: &[(&str, &[u8], bool)]) -> Vec<u8> {
    let mut fs = Fs::mount(empty(2048)).unwrap();
    for (name, bytes, is_sealed) in files {
        let mode = kind::FILE | 0o444;
        let number = fs.create(inode::FIRST, name.as_bytes(), mode, 0).unwrap();
        fs.write(number, 0, bytes).unwrap();
        if *is_sealed {
            fs.seal(number, seal::ALL).unwrap();
        }
    }
    fs.into_medium()
}

/// What is found after the guest told this.
fn checked(console: &str, files: &[(&str, &[u8], bool)]) -> Result<[u64; NAMES.len()], String> {
    let mut known = Files::default();
    let mut tally = Tally::default();
    known.note(console, &mut tally)?;
    known.check(&range(files), &mut tally)?;
    Ok(known.files.map(|file| file.done))
}

const DONE: &str =
    "[1.0] power-cuts: begin a 2\npower-cuts: done a 2\npower-cuts: begin b 3\npower-cuts: do";

#[test]
fn what_was_done_is_there_and_the_rest_is_there_or_not() {
    let (a, b) = (content("a", 2), content("b", 3));
    assert_eq!(checked(DONE, &[("a", &a, true)]), Ok([2, 0, 0, 0]));
    assert_eq!(
        checked(DONE, &[("a", &a, true), ("b", &b, true)]),
        Ok([2, 3, 0, 0])
    );
    // A new version is not there yet, and the old one is removed already.
    let later = format!("{DONE}\npower-cuts: begin a 4");
    assert_eq!(checked(&later, &[]), Ok([0, 0, 0, 0]));
    assert_eq!(
        checked(&later, &[("a", &content("a", 4), true)]),
        Ok([4, 0, 0, 0])
    );
}

#[test]
fn what_is_lost_or_half_there_is_found() {
    let (a, b) = (content("a", 2), content("b", 3));
    let error = |files: &[(&str, &[u8], bool)]| checked(DONE, files).unwrap_err();
    assert_eq!(error(&[]), "a 2 is lost");
    assert_eq!(error(&[("a", &a, false)]), "a is not sealed");
    assert!(error(&[("a", &a[1..], true)]).contains("neither version"));
    assert!(error(&[("a", &a, true), ("b", &b[..b.len() - 1], true)]).starts_with("b has"));
    // An older one, or one that the guest has not begun.
    assert!(error(&[("a", &content("a", 4), true)]).contains("neither version"));
    let bad = format!("{DONE}\npower-cuts: bad mount");
    assert!(
        checked(&bad, &[("a", &a, true)])
            .unwrap_err()
            .contains("bad mount")
    );
}

#[test]
fn the_numbers_of_the_open_file_are_those_that_were_made_persistent() {
    let log = |first: u64, second: u64| {
        let mut bytes = vec![0; 8192];
        bytes[..8].copy_from_slice(&first.to_le_bytes());
        bytes[4096..4104].copy_from_slice(&second.to_le_bytes());
        bytes
    };
    let check = |console: &str, bytes: &[u8]| checked(console, &[("l", bytes, false)]);
    let begun = "power-cuts: begin l 3";
    let done = format!("{begun}\npower-cuts: done l 3");
    for (console, files) in [(begun, log(0, 3)), (begun, log(3, 0)), (&done, log(3, 3))] {
        assert_eq!(check(console, &files), Ok([0; NAMES.len()]));
    }
    assert_eq!(checked(begun, &[]), Ok([0; NAMES.len()]));
    for (console, files) in [(begun, log(0, 4)), (&done, log(3, 0)), (&done, log(0, 3))] {
        let why = check(console, &files).unwrap_err();
        assert!(why.starts_with("l has the numbers"), "{why}");
    }
    assert!(checked(&done, &[]).is_err());
    let mut other = log(3, 3);
    other[5000] = 7;
    assert_eq!(
        check(&done, &other).unwrap_err(),
        "l has 0x7 at byte 5000, not 0"
    );
    // Of the next version each number may be there alone.
    let next = format!("{done}\npower-cuts: begin l 6");
    assert_eq!(check(&next, &log(6, 3)), Ok([0; NAMES.len()]));
    assert!(check(&next, &log(6, 0)).is_err());
}

#[test]
fn the_range_starts_behind_the_header() {
    let mut bytes = vec![0; 3 << 20];
    assert!(start_of_range(&bytes).is_err());
    bytes[4096..4111].copy_from_slice(b"NVDIMM_PFN_INFO");
    bytes[4152..4160].copy_from_slice(&(2u64 << 20).to_le_bytes());
    assert_eq!(start_of_range(&bytes).unwrap(), 2 << 20);
    bytes[4152..4160].copy_from_slice(&(3u64 << 20).to_le_bytes());
    assert!(start_of_range(&bytes).is_err());
}

#[test]
fn the_shell_makes_files_of_the_same_size() {
    for version in [1, 4, 5, 77, 1234, 65_535] {
        let line = format!("n={version}; echo $(({SIZE}))");
        let output = std::process::Command::new("sh")
            .args(["-c", &line])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.trim(), size(version).to_string());
    }
}

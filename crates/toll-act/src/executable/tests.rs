// SPDX-License-Identifier: MIT OR Apache-2.0

use std::os::unix::fs::PermissionsExt;

use super::*;

fn command(name: &str) -> Vec<OsString> {
    vec![name.into()]
}

/// An executable file with this content.
fn file(directory: &Path, name: &str, content: &[u8]) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, content).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn a_script_is_its_interpreter() {
    let directory = tempfile::tempdir().unwrap();
    let shell = find_program(OsStr::new("sh"))
        .unwrap()
        .canonicalize()
        .unwrap();
    for line in [
        "#!/bin/sh",
        "#! /bin/sh -e",
        "#!/usr/bin/env sh",
        "#!/usr/bin/env -S sh -e",
    ] {
        let script = file(
            directory.path(),
            "script",
            format!("{line}\n:\n").as_bytes(),
        );
        let executable = Executable::of(&[script.clone().into()]).unwrap();
        assert_eq!(executable.path, shell, "{line}");
        assert_eq!(executable.named, script);
    }
}

#[test]
fn a_script_that_names_itself_ends() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("loop");
    let script = file(
        directory.path(),
        "loop",
        format!("#!{}\n", path.display()).as_bytes(),
    );
    assert_eq!(
        Executable::of(&[script.clone().into()]).unwrap().path,
        script.canonicalize().unwrap()
    );
}

#[test]
fn dynamic_programs_can_be_entered() {
    assert_eq!(Executable::of(&command("sh")).unwrap().obstacle, None);
}

#[test]
fn headers_tell_what_cannot_be_entered() {
    let directory = tempfile::tempdir().unwrap();
    let mut header = [0u8; 64];
    header[..5].copy_from_slice(b"\x7fELF\x01");
    header[18] = 3;
    let path = file(directory.path(), "i386", &header);
    assert_eq!(obstacle(&path), Some(Obstacle::ThirtyTwoBit));
    // 64 bits, little-endian, version 1.
    header[4..7].copy_from_slice(&[2, 1, 1]);
    header[18] = 62;
    let path = file(directory.path(), "static", &header);
    assert_eq!(obstacle(&path), Some(Obstacle::Static));
    let path = file(
        directory.path(),
        "musl",
        &with_loader(header, "/lib/ld-musl-x86_64.so.1"),
    );
    assert_eq!(obstacle(&path), Some(Obstacle::OtherLoader));
    let path = file(
        directory.path(),
        "glibc",
        &with_loader(header, "/lib64/ld-linux-x86-64.so.2"),
    );
    assert_eq!(obstacle(&path), None);
}

#[test]
fn damaged_headers_are_no_obstacle_and_no_panic() {
    let directory = tempfile::tempdir().unwrap();
    for content in [&b""[..], b"\x7fELF", b"#!", b"#!\n", &[0xff; 64]] {
        assert_eq!(obstacle(&file(directory.path(), "x", content)), None);
    }
    let mut header = [0xff; 64];
    header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    header[18..20].copy_from_slice(&62u16.to_le_bytes());
    assert_eq!(
        obstacle(&file(directory.path(), "x", &header)),
        Some(Obstacle::Static)
    );
}

fn with_loader(mut header: [u8; 64], loader: &str) -> Vec<u8> {
    header[32] = 64;
    header[54] = 56;
    header[56] = 1;
    let mut entry = [0u8; 56];
    entry[0] = 3;
    entry[8] = 120;
    entry[32] = loader.len() as u8 + 1;
    [&header[..], &entry, loader.as_bytes(), b"\0"].concat()
}

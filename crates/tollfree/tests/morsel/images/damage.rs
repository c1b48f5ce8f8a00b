// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images that a crash left, damaged ones, and devices.

use std::fs;
use std::path::Path;
use std::process::Command;

use toll_image::layout::inode;
use toll_testkit::machine::is_root;
use toll_testkit::output::{stderr, stdout};

use super::Images;

#[test]
fn leftovers_are_no_damage() {
    let images = Images::with_image();
    images.fill();
    let mut fs = images.mount();
    fs.unnamed(0o600).unwrap();
    let check = images.json(&["fsck", "image"]);
    assert_eq!(check["state"], "leftovers");
    let text = stdout(&images.run(&["fsck", "image"]));
    assert!(
        text.contains("an inode has no name (a mount completes it)"),
        "{text}"
    );
    let repaired = images.json(&["fsck", "image", "--repair"]);
    assert_eq!(
        (
            &repaired["state"],
            repaired["repaired"].as_array().unwrap().len()
        ),
        (&"whole".into(), 1)
    );
}

#[test]
fn a_repair_drops_what_was_open_and_keeps_what_was_sealed() {
    let images = Images::with_image();
    images.fill();
    images.flip(images.place("open", inode::SIZE));
    let said = images.fails(&["fsck", "image"], 3);
    assert!(said.contains("is damaged: 2 findings"), "{said}");
    assert!(stderr(&images.run(&["ls", "image"])).contains("morsel fsck image"));
    let repaired = images.json(&["fsck", "image", "--repair"]);
    assert_eq!(
        (&repaired["state"], &repaired["names"]),
        (&"whole".into(), &3.into())
    );

    images.flip(images.place("models/a\x1b[31m", inode::SIZE));
    let before = fs::read(images.path()).unwrap();
    let output = images.run(&["fsck", "image", "--repair"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        stdout(&output).contains("(not repairable)"),
        "{}",
        stdout(&output)
    );
    assert_eq!(fs::read(images.path()).unwrap(), before);
}

#[test]
fn a_device_works_and_is_refused_while_it_is_in_use() {
    if !is_root() {
        eprintln!("skipped: a loop device needs root");
        return;
    }
    let images = Images::with_image();
    let Some(device) = Loop::over(&images.path()) else {
        eprintln!("skipped: no loop device");
        return;
    };
    assert_eq!(images.json(&["fsck", &*device.0])["state"], "whole");
    images.json(&["mkfs", &*device.0, "--force"]);
    let ext4 = Command::new("mkfs.ext4")
        .args(["-q", "-F", &*device.0])
        .output();
    if !ext4.is_ok_and(|it| it.status.success()) {
        eprintln!("skipped: no mkfs.ext4");
        return;
    }
    assert!(
        images
            .fails(&["mkfs", &*device.0], 3)
            .contains("is not empty")
    );
    let at = images.directory.path("mount");
    fs::create_dir(&at).unwrap();
    let mounted = Command::new("mount").arg(&*device.0).arg(&at).status();
    if !mounted.is_ok_and(|it| it.success()) {
        eprintln!("skipped: cannot mount");
        return;
    }
    for command in [
        &["mkfs", &*device.0, "--force"][..],
        &["fsck", &*device.0],
        &["ls", &*device.0],
    ] {
        assert!(
            images.fails(command, 4).contains("is in use"),
            "{command:?}"
        );
    }
    assert!(Command::new("umount").arg(&at).status().unwrap().success());
}

/// A loop device, which is detached at the end.
struct Loop(String);

impl Loop {
    fn over(file: &Path) -> Option<Loop> {
        let output = Command::new("losetup")
            .args(["-f", "--show"])
            .arg(file)
            .output()
            .ok()?;
        let device = stdout(&output).trim().to_owned();
        output.status.success().then_some(Loop(device))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.0]).status();
    }
}

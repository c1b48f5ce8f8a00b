// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree morsel put` into images, and `rm`.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use toll_image::layout::{PAGE, inode};
use toll_image::{Image, survey};
use toll_testkit::output::{stderr, stdout};

use super::Images;

impl Images {
    /// With a large empty image, and a file.
    fn with_file(bytes: &[u8]) -> Images {
        let images = Images::new();
        let made = images.run(&["mkfs", "image", "--size", "64M"]);
        assert!(made.status.success(), "{}", stderr(&made));
        images.write_file(bytes);
        images
    }

    fn write_file(&self, bytes: &[u8]) {
        let path = self.directory.path("model");
        let _ = fs::remove_file(&path);
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    }

    fn put(&self, more: &[&str]) -> Value {
        self.json(&[&["put", "model", "--to", "image"], more].concat())
    }

    /// The content of a path of the image.
    fn content(&self, path: &str) -> Vec<u8> {
        let image = Image::new(fs::File::open(self.path()).unwrap()).unwrap();
        let survey = survey(&image).unwrap();
        assert!(survey.findings.is_empty());
        let number = survey.lookup(path.as_bytes()).unwrap();
        survey.content(&image, number).unwrap()
    }
}

/// Bytes that differ from page to page.
fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at / 4096 + at) as u8).collect()
}

#[test]
fn a_file_is_copied_sealed_and_found_again() {
    let content = bytes((5 << 20) + 4097);
    let images = Images::with_file(&content);
    let first = images.put(&[]);
    assert_eq!(
        (&first["filled"], &first["state"]),
        (&true.into(), &"whole".into())
    );
    let copy = &first["entries"][0];
    assert_eq!(
        (&copy["path"], &copy["sealed"]),
        (&"model".into(), &true.into())
    );
    assert_eq!(copy["blocks"], serde_json::json!([258, 2, 0]));
    assert_eq!(images.content("model"), content);
    let text = stdout(&images.run(&["ls", "image"]));
    assert!(
        text.contains("model") && !text.contains(".tollfree"),
        "{text}"
    );

    let again = images.put(&[]);
    assert_eq!(again["filled"], false);
    assert_eq!(again["free"], first["free"]);
    let other = images.put(&["--name", "chat"]);
    assert_eq!(
        (&other["filled"], &other["entries"][0]["path"]),
        (&false.into(), &"chat".into())
    );
    assert_eq!(images.content("chat"), content);
}

#[test]
fn a_newer_file_replaces_its_copy() {
    let images = Images::with_file(&bytes(3 << 20));
    let empty = images.json(&["fsck", "image"])["free"].clone();
    images.put(&[]);
    images.write_file(&bytes(9));
    let newer = images.put(&[]);
    assert_eq!(newer["removed"], serde_json::json!(["model"]));
    assert_eq!(images.content("model"), bytes(9));
    let rest = images.json(&["rm", "--in", "image", "model"]);
    assert_eq!(
        (&rest["state"], &rest["removed"]),
        (&"whole".into(), &newer["removed"])
    );
    // The directories for records, and the pages of inodes and names, stay.
    let lost = empty.as_u64().unwrap() - rest["free"].as_u64().unwrap();
    assert!(lost <= 4 * PAGE, "{lost}");
}

/// A crash in the middle of a removal leaves names of the copy, its record among them.
#[test]
fn a_copy_that_was_removed_in_part_is_known() {
    let images = Images::with_file(&bytes(9));
    images.put(&["--name", "first"]);
    images.put(&["--name", "second"]);
    let mut fs = images.mount();
    let number = fs.lookup(inode::FIRST, b"first").unwrap();
    let names = fs.names_for(number).len();
    // What a removal does first.
    fs.unlink(inode::FIRST, b"first").unwrap();
    drop(fs);
    images.write_file(&bytes(7));
    assert_eq!(
        images.put(&["--name", "first"])["removed"],
        serde_json::json!(["second"])
    );
    let fs = images.mount();
    let number = fs.lookup(inode::FIRST, b"first").unwrap();
    assert_eq!(fs.names_for(number).len(), names - 1);
    assert!(fs.lookup(inode::FIRST, b"second").is_err());
}

/// After a reboot the inode may have the number that another file had before.
#[test]
fn another_file_with_the_same_inode_replaces_no_copy() {
    let images = Images::with_file(&bytes(9));
    images.put(&[]);
    let other = images.directory.path("other");
    fs::rename(images.directory.path("model"), &other).unwrap();
    fs::write(&other, bytes(7)).unwrap();
    let put = images.json(&["put", "other", "--to", "image"]);
    assert_eq!(put["removed"], serde_json::json!([]));
    assert_eq!(images.content("model"), bytes(9));
}

#[test]
fn a_copy_has_no_more_readers_than_the_file() {
    let images = Images::with_file(&bytes(9));
    let path = images.directory.path("model");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    let private = images.put(&["--name", "private"]);
    assert_eq!(private["entries"][0]["mode"], "0400");
    let own = format!(".tollfree/{}", rustix::process::geteuid().as_raw());
    let records = images.json(&["stat", "--in", "image", &own]);
    assert_eq!(records["entries"][0]["mode"], "0700");
}

#[test]
fn what_cannot_be_done_changes_nothing() {
    let images = Images::with_file(&bytes(60 << 20));
    images.put(&[]);
    let before = images.json(&["ls", "image"]);
    fs::write(images.directory.path("other"), bytes(9 << 20)).unwrap();
    let other = ["put", "other", "--to", "image"];
    let message = images.fails(&other, 4);
    assert!(message.contains("image: no room for 9 MiB"), "{message}");
    fs::write(images.directory.path("other"), b"x").unwrap();
    let taken = images.fails(&[&other[..], &["--name", "model"]].concat(), 2);
    assert!(taken.contains("model: exists already in image"), "{taken}");
    images.fails(&[&other[..], &["--name", "a/b"]].concat(), 2);
    images.fails(&[&other[..], &["--limit", "1G"]].concat(), 2);
    fs::write(images.directory.path("empty"), b"").unwrap();
    images.fails(&["put", "empty", "--to", "image"], 3);
    images.fails(&["put", "nothing", "--to", "image"], 1);
    images.fails(&["rm", "--in", "image", "nothing"], 4);
    images.fails(&["rm", "--in", "image", "model", ".tollfree"], 2);
    assert_eq!(images.json(&["ls", "image"]), before);
    images.flip(images.place("model", inode::SIZE));
    let damaged = images.fails(&other, 3);
    assert!(damaged.contains("tollfree morsel fsck image"), "{damaged}");
}

#[test]
fn a_signal_leaves_nothing_behind() {
    let images = Images::with_file(&bytes(50 << 20));
    images.write_file(b"older");
    images.put(&["--name", "older"]);
    images.run(&["rm", "--in", "image", "older"]);
    let free = images.json(&["fsck", "image"])["free"].clone();
    images.write_file(&bytes(50 << 20));
    let line = ["morsel", "put", "model", "--to", "image"];
    let mut command = images.directory.tollfree(&line);
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    // Until it writes: the image has more blocks then.
    let blocks = || fs::metadata(images.path()).unwrap().blocks();
    let begun = blocks();
    while blocks() < begun + 1000 && child.try_wait().unwrap().is_none() {
        sleep(Duration::from_millis(1));
    }
    let id = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    let _ = rustix::process::kill_process(id, rustix::process::Signal::INT);
    let status = child.wait().unwrap();
    let after = images.json(&["fsck", "image"]);
    assert_eq!(after["state"], "whole");
    if status.success() {
        eprintln!("skipped: the copy was faster than the signal");
        return;
    }
    assert_eq!(status.code(), Some(130));
    assert_eq!(after["free"], free);
}

#[test]
fn an_image_is_for_one_command_at_a_time() {
    let images = Images::with_file(b"x");
    let file = fs::File::open(images.path()).unwrap();
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let message = images.fails(&["put", "model", "--to", "image"], 4);
    assert!(message.contains("image: is in use"), "{message}");
    drop(file);
    images.put(&[]);
}

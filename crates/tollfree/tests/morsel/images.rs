// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree morsel mkfs`, `fsck`, `ls` and `stat` of images and devices.

mod damage;
mod put;

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Output;

use serde_json::Value;
use toll_image::layout::{inode, kind, seal};
use toll_image::ops::Fs;
use toll_image::{Image, survey};
use toll_testkit::output::{stderr, stdout};
use toll_testkit::{Directory, schema};

struct Images {
    directory: Directory,
}

impl Images {
    fn new() -> Images {
        Images {
            directory: Directory::empty(),
        }
    }

    /// With an empty image.
    fn with_image() -> Images {
        let images = Images::new();
        let made = images.run(&["mkfs", "image", "--size", "1M"]);
        assert!(made.status.success(), "{}", stderr(&made));
        images
    }

    fn path(&self) -> PathBuf {
        self.directory.path("image")
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let arguments = [&["morsel"], arguments].concat();
        self.directory.tollfree(&arguments).output().unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["--json"]].concat());
        schema::json("morsel-image", &output)
    }

    /// Runs a command that fails with a code, and returns its message.
    fn fails(&self, arguments: &[&str], code: i32) -> String {
        let output = self.run(arguments);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}: {}",
            stderr(&output)
        );
        stderr(&output)
    }

    fn mount(&self) -> Fs<Image> {
        let file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(self.path());
        Fs::mount(Image::new(file.unwrap()).unwrap()).unwrap()
    }

    /// A directory with a sealed file and an open one, and a link.
    fn fill(&self) {
        let mut fs = self.mount();
        let directory = fs
            .create(inode::FIRST, b"models", kind::DIRECTORY | 0o755, 0)
            .unwrap();
        let sealed = fs
            .create(directory, b"a\x1b[31m", kind::FILE | 0o444, 0)
            .unwrap();
        fs.write(sealed, 0, &[7; 9000]).unwrap();
        fs.seal(sealed, seal::WRITE).unwrap();
        let open = fs
            .create(inode::FIRST, b"open", kind::FILE | 0o600, 0)
            .unwrap();
        fs.write(open, 0, &[1; 5000]).unwrap();
        fs.symlink(inode::FIRST, b"link", b"models").unwrap();
    }

    /// The place of a word of an inode.
    fn place(&self, path: &str, field: u64) -> u64 {
        let image = Image::new(fs::File::open(self.path()).unwrap()).unwrap();
        let survey = survey(&image).unwrap();
        survey.inodes[&survey.lookup(path.as_bytes()).unwrap()].at + field
    }

    /// Flips a bit of a byte.
    fn flip(&self, offset: u64) {
        let file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(self.path())
            .unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, offset).unwrap();
        file.write_all_at(&[byte[0] ^ 1], offset).unwrap();
    }
}

#[test]
fn an_image_is_made_listed_and_checked() {
    let images = Images::with_image();
    assert_eq!(fs::metadata(images.path()).unwrap().len(), 1 << 20);
    assert!(
        images.json(&["ls", "image"])["entries"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    images.fill();
    let list = images.json(&["ls", "image"]);
    let entries = list["entries"].as_array().unwrap();
    let paths: Vec<&str> = entries
        .iter()
        .map(|it| it["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths, ["link", "models", "models/a\x1b[31m", "open"]);
    assert_eq!(
        (&entries[2]["sealed"], &entries[2]["size"]),
        (&true.into(), &9000.into())
    );
    assert_eq!(entries[0]["target"], "models");
    let check = images.json(&["fsck", "image"]);
    assert_eq!(
        (&check["state"], &check["names"]),
        (&"whole".into(), &4.into())
    );
}

#[test]
fn the_text_is_plain() {
    let images = Images::with_image();
    images.fill();
    let text = stdout(&images.run(&["ls", "image"]));
    assert!(text.starts_with("image: 1 MiB, "), "{text}");
    assert!(
        text.contains("models/a?[31m") && !text.contains('\x1b'),
        "{text}"
    );
    assert!(
        text.contains("link -> models") && text.contains("models/ "),
        "{text}"
    );
    let text = stdout(&images.run(&["stat", "--in", "image", "open", "models"]));
    assert!(
        text.contains("blocks  2 of 4 KiB, 0 of 2 MiB, 0 of 1 GiB\n"),
        "{text}"
    );
    assert!(
        text.contains("seals   none\n") && text.contains("links   2\n"),
        "{text}"
    );
    let text = stdout(&images.run(&["stat", "--in", "image"]));
    assert!(
        text.contains("state   whole\n") && text.contains("names   4\n"),
        "{text}"
    );
    assert!(
        images
            .fails(&["stat", "--in", "image", "no"], 4)
            .contains("has no no")
    );
    assert!(images.fails(&["stat"], 2).contains("--in"));
}

#[test]
fn mkfs_overwrites_nothing_by_itself() {
    let images = Images::with_image();
    images.fill();
    let said = images.fails(&["mkfs", "image"], 3);
    assert!(said.contains("holds persistent morsels; --force"), "{said}");
    let said = images.fails(&["mkfs", "image", "--size", "1M"], 2);
    assert!(said.contains("exists"), "{said}");
    let first = images.json(&["stat", "--in", "image"]);
    let second = images.json(&["mkfs", "image", "--force"]);
    assert_eq!((&first["names"], &second["names"]), (&4.into(), &0.into()));
    assert_ne!(first["uuid"], second["uuid"]);
    // A signature at the end, as of a partition table.
    let mut bytes = vec![0; 1 << 20];
    bytes[(1 << 20) - 512] = b'E';
    images.directory.write("image", &bytes);
    let said = images.fails(&["mkfs", "image"], 3);
    assert!(said.contains("is not empty"), "{said}");
    images.json(&["mkfs", "image", "--force"]);
    assert_eq!(fs::read(images.path()).unwrap()[(1 << 20) - 512], 0);
}

#[test]
fn what_cannot_be_an_image_is_refused() {
    let images = Images::with_image();
    let whole = fs::read(images.path()).unwrap();
    for (bytes, said) in [
        (
            whole[..whole.len() / 2].to_vec(),
            "is cut off: 128 of 256 pages are there",
        ),
        (vec![7; 1 << 20], "holds no persistent morsels"),
        (vec![0; 8192], "has 2 pages"),
        (vec![], "has 0 pages"),
        (newer(&whole), "has version 2 of the format"),
    ] {
        images.directory.write("image", &bytes);
        for command in [
            &["fsck", "image"][..],
            &["ls", "image"],
            &["stat", "--in", "image"],
        ] {
            let message = images.fails(command, 3);
            assert!(message.contains(said), "{command:?}: {message}");
        }
        assert_eq!(fs::read(images.path()).unwrap(), bytes);
    }
    assert!(images.fails(&["fsck", "nothing"], 1).contains("nothing"));
    assert!(
        images
            .fails(&["fsck", "/dev/null"], 3)
            .contains("neither a file nor")
    );
    assert!(images.fails(&["mkfs", "nothing"], 2).contains("--size"));
    assert!(
        images
            .fails(&["mkfs", "new", "--size", "60K"], 2)
            .contains("64K")
    );
    assert!(!images.directory.path("new").exists());
}

/// The image with another version, correctly summed.
fn newer(image: &[u8]) -> Vec<u8> {
    let mut newer = image.to_vec();
    for page in [0, 4096] {
        newer[page + 8] = 2;
        let sum = toll_image::word::crc32c(&newer[page..page + 252]);
        newer[page + 252..page + 256].copy_from_slice(&sum.to_le_bytes());
    }
    newer
}

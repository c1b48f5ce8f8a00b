// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's reader of the format, built for user space under sanitizers, finds in each image
//! what this crate finds.

mod images;

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use images::{PAGES, image, mutate, words};
use toll_image::crash::random::Random;
use toll_image::crash::trace::Trace;
use toll_image::finding::Fix;
use toll_image::layout::{PAGE, inode, kind, seal};
use toll_image::make::{Template, make};
use toll_image::ops::Fs;
use toll_image::{Refusal, Survey, survey};
use toll_testkit::compiler::compile_where_possible;

const SOURCE: &str = "../../kernel/tree/tools/testing/tollfree/morsel_reader.c";

/// The kernel's reader.
struct Kernel {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Kernel {
    /// `None` where there is no compiler with sanitizers.
    fn start(directory: &Path) -> Option<Kernel> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(SOURCE);
        let include = format!("-I{}", source.with_file_name("include").display());
        let program: PathBuf = directory.join("reader");
        let options = [
            "-std=gnu11",
            "-O1",
            "-g",
            "-fsanitize=address,undefined",
            "-fno-sanitize-recover=all",
            &include,
        ];
        if !compile_where_possible(&source, &program, &options) {
            return None;
        }
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Some(Kernel {
            child,
            input,
            output,
        })
    }

    /// What it finds in an image.
    fn read(&mut self, image: &[u8]) -> String {
        let length = (image.len() as u64).to_le_bytes();
        let sent = self
            .input
            .write_all(&length)
            .and_then(|()| self.input.write_all(image));
        sent.expect("the reader runs");
        let mut found = String::new();
        loop {
            let begin = found.len();
            let read = self.output.read_line(&mut found).unwrap();
            assert!(read > 0, "the reader ended");
            if &found[begin..] == "\n" {
                found.truncate(begin);
                return found;
            }
        }
    }

    fn end(self) {
        drop(self.input);
        let mut child = self.child;
        assert!(child.wait().unwrap().success());
    }
}

/// What this crate finds, in the same form. A damaged copy of the superblock is counted, and
/// otherwise of no effect.
fn ours(image: &[u8]) -> String {
    let mut image = image.to_vec();
    let mut copies = 0;
    let found = survey(&image).and_then(|found| {
        for finding in &found.findings.list {
            if let Some(Fix::Superblock { page }) = finding.fix {
                let at = (page * PAGE) as usize;
                image[at..at + 256].copy_from_slice(&found.superblock.encode());
                copies += 1;
            }
        }
        survey(&image)
    });
    match found {
        Err(Refusal::Io(error)) => panic!("{error}"),
        Err(_) => "refused".to_owned(),
        Ok(found) if found.findings.is_damaged() => "damaged".to_owned(),
        Ok(found) => whole(&found, copies),
    }
}

fn whole(found: &Survey, copies: u32) -> String {
    let mut text = format!(
        "whole {} damaged copies {copies} leftovers {} owned {}\n",
        found.superblock.pages,
        found.findings.leftovers(),
        found.owned.count()
    );
    for (number, it) in &found.inodes {
        let [small, large, giant] = it.blocks;
        let pages = small + 512 * large + 512 * 512 * giant;
        let root = match it.root.pack() {
            0 => "0".to_owned(),
            root => format!("{root:#x}"),
        };
        writeln!(
            text,
            "inode {number} {:o} {} {} {} {root} {} {} {} {} {} {} {pages}",
            it.mode,
            it.uid,
            it.gid,
            it.size,
            it.xattr,
            it.mtime.pack(),
            it.ctime.pack(),
            it.rdev,
            it.generation,
            it.links,
        )
        .unwrap();
    }
    for (slot, name) in &found.names {
        write!(text, "name {slot} {} {} ", name.parent, name.inode).unwrap();
        for byte in &name.text {
            write!(text, "{byte:02x}").unwrap();
        }
        text.push('\n');
    }
    text
}

/// Both readers find the same; returns the first word of it.
fn agree(kernel: &mut Kernel, image: &[u8]) -> &'static str {
    let (theirs, ours) = (kernel.read(image), ours(image));
    for word in ["refused", "damaged"] {
        if ours == word {
            assert!(theirs.starts_with(&format!("{word}: ")), "{theirs}");
            return word;
        }
    }
    assert_eq!(theirs, ours);
    match theirs.contains("leftovers 0") {
        true => "whole",
        false => "leftovers",
    }
}

/// Images with one to four changes each.
fn agree_on_changed_images(kernel: &mut Kernel, image: &mut Trace, images: u64) {
    let words = words(&survey(image).unwrap(), image);
    let mut random = Random::new(images);
    let mut counts = std::collections::BTreeMap::new();
    for _ in 0..images {
        let mark = image.mark();
        for _ in 0..=random.below(4) {
            mutate(image, &words, &mut random);
        }
        *counts.entry(agree(kernel, image.bytes())).or_insert(0) += 1;
        image.rewind(mark);
    }
    eprintln!("{images} images: {counts:?}");
    assert_eq!(counts.len(), 4, "{counts:?}");
}

/// An image with blocks of 2 MiB, sealed and open.
fn image_with_blocks() -> Trace {
    let template = Template {
        uuid: [9; 16],
        pages: 2048,
        now: toll_image::layout::Time::default(),
        mode: 0o700,
        uid: 1,
        gid: 2,
    };
    let mut bytes = vec![0; (template.pages * PAGE) as usize];
    make(&mut bytes, &template).unwrap();
    let mut fs = Fs::mount(bytes).unwrap();
    for (name, seals) in [(b"sealed", seal::WRITE), (b"open..", 0)] {
        let made = fs
            .create(inode::FIRST, name, kind::FILE | 0o600, 0)
            .unwrap();
        fs.populate(made, 512, 1).unwrap();
        fs.write(made, (4 << 20) + 5, b"beyond the block").unwrap();
        fs.seal(made, seals).unwrap();
    }
    Trace::new(fs.medium().clone())
}

#[test]
fn both_readers_find_the_same_in_changed_images() {
    let directory = tempfile::tempdir().unwrap();
    let Some(mut kernel) = Kernel::start(directory.path()) else {
        return;
    };
    let mut image = image();
    assert_eq!(agree(&mut kernel, image.bytes()), "whole");
    agree_on_changed_images(&mut kernel, &mut image, 30_000);
    let mut blocks = image_with_blocks();
    assert_eq!(agree(&mut kernel, blocks.bytes()), "whole");
    agree_on_changed_images(&mut kernel, &mut blocks, 500);
    kernel.end();
}

#[test]
fn both_readers_find_the_same_in_images_of_other_lengths() {
    let directory = tempfile::tempdir().unwrap();
    let Some(mut kernel) = Kernel::start(directory.path()) else {
        return;
    };
    let image = image().bytes().clone();
    for pages in 0..PAGES {
        let cut = &image[..(pages * PAGE) as usize];
        assert_eq!(agree(&mut kernel, cut), "refused", "{pages} pages");
    }
    let longer = [image.clone(), vec![0xff; 3 * PAGE as usize + 9]].concat();
    assert_eq!(agree(&mut kernel, &longer), "whole");
    kernel.end();
}

#[test]
fn both_readers_find_each_flipped_bit_of_the_superblocks() {
    let directory = tempfile::tempdir().unwrap();
    let Some(mut kernel) = Kernel::start(directory.path()) else {
        return;
    };
    let mut image = image().bytes().clone();
    for at in (0..256).chain(PAGE as usize..PAGE as usize + 256) {
        image[at] ^= 0x20;
        let found = kernel.read(&image);
        assert!(found.contains("damaged copies 1"), "{at}: {found}");
        assert_eq!(found, ours(&image));
        image[at] ^= 0x20;
    }
    kernel.end();
}

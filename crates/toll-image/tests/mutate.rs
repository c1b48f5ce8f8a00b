// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changed images: reading and repairing one never fails in another way than it should.

mod images;

use std::time::Instant;

use images::{PAGES, image, mutate, value, words};
use toll_image::crash::model;
use toll_image::crash::random::Random;
use toll_image::crash::trace::Trace;
use toll_image::layout::inode;
use toll_image::medium::{Medium, Source};
use toll_image::ops::Fs;
use toll_image::{repair, survey};

#[test]
fn each_flipped_bit_of_a_word_in_use_is_found() {
    let mut image = image();
    let found = survey(&image).unwrap();
    for at in words(&found, &image) {
        for bit in 0..64 {
            let mark = image.mark();
            let flipped = value(&image, at) ^ 1 << bit;
            image.poke(at, flipped);
            assert!(
                survey(&image).unwrap().findings.is_damaged(),
                "{at:#x} bit {bit}"
            );
            image.rewind(mark);
        }
    }
}

/// Kinds of results, to show that mutations reach all of them.
#[derive(Debug, Default)]
struct Count {
    refused: u64,
    whole: u64,
    leftovers: u64,
    damaged: u64,
    repaired: u64,
    mounted: u64,
}

/// Reads, repairs and uses an image.
fn try_image(image: &mut Trace, count: &mut Count) {
    let Ok(first) = survey(image) else {
        count.refused += 1;
        return;
    };
    let findings = &first.findings;
    match findings.is_damaged() {
        true => count.damaged += 1,
        false if findings.is_empty() => count.whole += 1,
        false => count.leftovers += 1,
    }
    let was_damaged = findings.is_damaged();
    let repaired = repair(image).unwrap();
    if !repaired.fixed.is_empty() {
        let again = repair(image).unwrap();
        let (first, again) = (&repaired.fixed, &again.fixed);
        assert!(again.is_empty(), "{first:?}\n{again:?}");
    }
    if repaired.survey.findings.is_damaged() {
        return;
    }
    count.repaired += u64::from(was_damaged);
    model::read(image, &repaired.survey).unwrap();
    // To copy it takes longer than all else.
    if count.whole % 8 == 0 || was_damaged && count.damaged % 8 == 0 {
        use_image(image, count);
    }
}

/// An image without damage can be used.
fn use_image(image: &mut Trace, count: &mut Count) {
    let mut fs = Fs::mount(image.clone()).expect("no damage");
    count.mounted += 1;
    if fs.lookup(inode::FIRST, b"new").is_ok() {
        return;
    }
    if let Ok(number) = fs.create(inode::FIRST, b"new", 0o100_600, 0) {
        let _ = fs.write(number, 5000, b"content");
    }
    let after = survey(fs.medium()).unwrap();
    assert!(!after.findings.is_damaged(), "{:?}", after.findings);
}

/// Each image has one to four changes.
fn try_images(images: u64) {
    let begin = Instant::now();
    let mut image = image();
    let words = words(&survey(&image).unwrap(), &image);
    let mut random = Random::new(images);
    let mut count = Count::default();
    for _ in 0..images {
        let mark = image.mark();
        for _ in 0..=random.below(4) {
            mutate(&mut image, &words, &mut random);
        }
        try_image(&mut image, &mut count);
        image.rewind(mark);
    }
    eprintln!(
        "{images} images: {count:?}; {:.1} s",
        begin.elapsed().as_secs_f64()
    );
    let Count {
        refused,
        whole,
        leftovers,
        damaged,
        repaired,
        mounted,
    } = count;
    let least = refused
        .min(whole)
        .min(leftovers)
        .min(damaged)
        .min(repaired)
        .min(mounted);
    assert!(least > images / 1000, "{least}");
}

#[test]
fn changed_images_are_read_and_repaired() {
    try_images(50_000);
}

/// `cargo test -p toll-image --test mutate -- --ignored`
#[test]
#[ignore = "takes most of a minute"]
fn a_million_changed_images_are_read_and_repaired() {
    try_images(1_000_000);
}

#[test]
fn any_bytes_behind_a_superblock_are_read() {
    let mut random = Random::new(5);
    let image = image();
    let bytes = image.bytes();
    for _ in 0..200 {
        let mut noise = bytes.clone();
        for at in (256..noise.len())
            .step_by(8)
            .filter(|at| *at < 4096 || *at >= 8192)
        {
            noise[at..at + 8].copy_from_slice(&random.number().to_le_bytes());
        }
        let found = survey(&noise).unwrap();
        assert!(found.findings.is_damaged());
        assert_eq!(noise.pages(), PAGES);
        repair(&mut noise).unwrap();
    }
}

#[test]
fn a_medium_writes_words() {
    let mut bytes = vec![0; 65536];
    bytes.publish(4096, 5).unwrap();
    assert_eq!(
        toll_image::medium::payload_at(&bytes, 4096).unwrap(),
        Some(5)
    );
}

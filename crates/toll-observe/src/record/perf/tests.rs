// SPDX-License-Identifier: MIT OR Apache-2.0
//! Complete texts, and damaged texts.

use super::reader::MAX_LINE;
use super::reading::Kind;
use super::*;

fn read(text: &str) -> Result<Imported, FormatError> {
    from_text(text.as_bytes(), &Reading::default())
}

fn line(address: u64, tlb: &str, period: u64) -> String {
    format!(
        "main 7/7 1.000001: {period} cpu/mem-loads/P: {address:x} 10268100142 |OP LOAD|LVL L1 or L1 hit|SNP None|TLB {tlb}|LCK No|BLK  N/A 12 401000 f+0x0 (/tmp/p)\n"
    )
}

#[test]
fn counts_are_samples_times_period() {
    let text = line(0x1878_0000_0000, "L2 miss", 64) + &line(0x1878_0000_0000, "L1 or L2 hit", 64);
    let imported = read(&text).unwrap();
    let row = &imported.profile.sites[0].rows[0];
    assert_eq!((row.misses, row.accesses), (64.0, 128.0));
    assert_eq!(imported.profile.observations, 1);
    assert_eq!(imported.profile.sampled, 1.0 / 64.0);
    assert_eq!(imported.kind, Kind::Script);
}

#[test]
fn kernel_addresses_and_those_out_of_range_do_not_count() {
    let reading = Reading {
        only: Some(0x1000_0000..0x2000_0000),
        ..Reading::default()
    };
    let text = line(0xffff_8880_0000_0000, "L2 miss", 1)
        + &line(0, "L2 miss", 1)
        + &line(0x1000_0000, "L2 miss", 1)
        + &line(0x2000_0000, "L2 miss", 1);
    let tally = from_text(text.as_bytes(), &reading).unwrap().tally;
    assert_eq!((tally.misses, tally.outside, tally.elsewhere), (1, 1, 2));
}

#[test]
fn recordings_without_an_answer_are_refused() {
    let none = |text: String| read(&text).unwrap_err().to_string();
    assert!(
        none(line(0x1000, "N/A", 1).replace("10268100142", "1e05080021")).contains("TLB level")
    );
    assert!(
        none("main 7/7 1.5: 1 page-faults: 7f00 401000 f (/p)\n".into())
            .contains("perf mem record")
    );
    assert!(none(String::new()).contains("nothing"));
    assert!(none("hello\nworld\n".into()).contains("line 1 is \"hello\""));
    assert!(none("a\0b\n".into()).contains("line 1 is binary"));
    let cut = line(0x1000, "L2 miss", 1);
    let error = none(cut.clone() + &cut[..cut.len() - 45]);
    assert!(error.contains("line 2:"), "{error}");
    let long = "x".repeat(MAX_LINE + 1);
    assert!(none(long).contains("longer"));
}

#[test]
fn comments_and_blank_lines_are_passed_over() {
    let text = format!(
        "# ========\n# cmdline : /usr/bin/perf mem record ./p\n\n{}\t    401000 f+0x0 (/tmp/p)\n\t    7f00 main (/tmp/p)\n\n{}",
        line(0x1000_0000, "L2 miss", 1),
        line(0x1000_0000, "L2 miss", 1)
    );
    let imported = read(&text).unwrap();
    assert_eq!(imported.tally.misses, 2);
    assert!(
        imported
            .profile
            .source_detail
            .contains("perf mem record ./p")
    );
}

/// A sample with a call chain and the size of the data's page, as perf prints them.
fn chained(address: u64, tlb: &str, functions: [&str; 2], size: &str) -> String {
    let [inner, outer] = functions;
    let sample = line(address, tlb, 64).replace("401000 f+0x0 (/tmp/p)", "");
    format!("{sample}\t 1000 {inner} (/tmp/p)\n\t 1010 {outer} (/tmp/p)\n {size}\n")
}

#[test]
fn a_call_chain_and_a_page_size_belong_to_the_sample_before_them() {
    let reading = Reading {
        only: Some(0x1000_0000..0x2000_0000),
        ..Reading::default()
    };
    let text = chained(0x1000_0000, "L2 miss", ["f", "main"], "2M")
        + &chained(0x1020_0000, "L2 miss", ["g", "main"], "4K")
        + &chained(0x1020_0000, "L1 or L2 hit", ["hit", "main"], "4K")
        + &chained(0x3000_0000, "L2 miss", ["outside", "main"], "4K")
        + &chained(0x1020_0000, "L2 miss", ["g", "main"], "4K");
    let profile = from_text(text.as_bytes(), &reading).unwrap().profile;
    let huge: Vec<bool> = profile.rows().map(|row| row.huge).collect();
    assert_eq!(huge, [true, false]);
    let stacks: Vec<String> = profile
        .stacks
        .iter()
        .map(|stack| format!("{} {}", stack.frames.join(","), stack.misses))
        .collect();
    assert_eq!(stacks, ["g,main 128", "f,main 64"]);
}

/// Every fixture text with bytes changed, removed and doubled: a result or an error, no panic.
#[test]
fn damaged_texts_never_panic() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tollfree/tests/data/perf");
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below.max(1) as u64) as usize
    };
    let mut texts = 0;
    for entry in std::fs::read_dir(directory).expect("fixtures") {
        let path = entry.expect("entry").path();
        if path.extension().is_none_or(|e| e != "txt") {
            continue;
        }
        texts += 1;
        let original = std::fs::read(&path).expect("fixture");
        for _ in 0..60 {
            let mut bytes = original.clone();
            for _ in 0..=random(6) {
                let at = random(bytes.len());
                match random(4) {
                    0 => bytes[at] = random(256) as u8,
                    1 => bytes.truncate(at.max(1)),
                    2 => drop(bytes.drain(at..(at + random(40)).min(bytes.len()))),
                    _ => bytes
                        .splice(
                            at..at,
                            b"|OP |TLB \n 0x:[.]/".iter().copied().take(random(18)),
                        )
                        .for_each(drop),
                }
                if bytes.is_empty() {
                    bytes.push(b'\n');
                }
            }
            if let Ok(imported) = from_text(bytes.as_slice(), &Reading::default()) {
                imported.profile.to_json().expect("a possible profile");
            }
        }
    }
    assert!(texts >= 4, "the fixtures are there");
}

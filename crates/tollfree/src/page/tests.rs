// SPDX-License-Identifier: MIT OR Apache-2.0
//! A page with all parts. To view it: `PAGE_OUT=/tmp/page.html cargo test page`.

use std::sync::Arc;

use toll_model::REGION;
use toll_model::builder::{Counts, Meta, ProfileBuilder};
use toll_model::plan::{Estimate, Plan, Region, Verdict, Why};
use toll_model::profile::{Profile, Program, Source};
use toll_model::site::{Frame, Level, SiteKind};
use toll_observe::heat::Strip;

use super::*;

const EVIL: &str = "/tmp/<script>alert(1)</script>\"'&";

fn meta(detail: &str) -> Meta {
    Meta {
        source: Source::Sim,
        source_detail: detail.to_owned(),
        program: Program {
            path: EVIL.to_owned(),
            build_id: "ab12".to_owned(),
        },
        command: vec!["secret-argument".to_owned()],
        complete: true,
        sampled: 0.1,
        observations: 123_456,
        instructions: None,
        native_ns: Some(30_608_161_194),
        footprint: Some(1 << 30),
        warnings: vec![format!("children of {EVIL} were not profiled")],
    }
}

fn call_site(symbol: &str, source: &str, ordinal: u32) -> SiteKind {
    let frame = |symbol: &str, source: &str| {
        Arc::new(Frame {
            module: "ab12".to_owned(),
            path: "/usr/bin/skew".to_owned(),
            offset: 0x11f3,
            symbol: Some(symbol.to_owned()),
            source: Some(source.to_owned()),
            function: None,
            nearest: None,
        })
    };
    SiteKind::Alloc {
        frames: vec![frame(symbol, source), frame("main", "skew.c:88")],
        class: 30,
        ordinal,
        thread: 0,
        shared: false,
    }
}

/// A skewed recording: a few hot regions, a slope, a quiet heap. `left`: fraction of hot misses
/// left.
fn profile(regions: u64, left: f64) -> Profile {
    let mut builder = ProfileBuilder::new();
    let table = builder.site(
        call_site("make_table", "skew.c:40", 0),
        regions * REGION,
        0x10,
        Level::Exact,
    );
    let index = builder.site(
        call_site("Index::grow<std::vector<int>>", "index.cc:121", 3),
        64 << 20,
        4096,
        Level::Class,
    );
    let heap = builder.site(SiteKind::Heap, 24 << 20, 0x9000, Level::Exact);
    let mut count = |site, offset, misses: f64| {
        let counts = Counts {
            accesses: misses * 9.0,
            misses,
            ..Counts::default()
        };
        builder.count(site, offset, &counts);
    };
    for region in 0..regions {
        let hot = [5, 130, 131, 300, 301, 302, 440].contains(&(region % 512));
        let misses = match hot {
            true => 4200.0 * left,
            false => 40.0 + ((region * 7919) % 97) as f64 * 3.0,
        };
        for page in 0..8 {
            count(table, region * REGION + page * 64 * 4096, misses / 8.0);
        }
    }
    for page in 0..16_384 {
        count(index, page * 4096, (16_384.0 - page as f64) / 1500.0 * left);
    }
    for page in 0..600 {
        count(heap, page * 4096, 0.4);
    }
    builder.finish(meta("simulator, preset zen4, 10 % sampled"))
}

fn plan(profile: &Profile) -> Plan {
    let estimate = |median: f64, low: f64, high: f64| Estimate { median, low, high };
    let mut regions = Vec::new();
    for rows in &profile.sites {
        let strip = Strip::new(rows, 1 << 20);
        for (i, cell) in strip.cells.iter().enumerate() {
            let huge = cell.misses > 1000.0;
            regions.push(Region {
                site: rows.site.id,
                offset: strip.offset(i),
                length: REGION,
                level: rows.site.level,
                misses: cell.misses,
                benefit_ns: cell.misses * 31_000.0,
                cost_ns: 220_000.0,
                verdict: if huge { Verdict::Huge } else { Verdict::Leave },
                touched_pages: 8,
                why: if huge { Why::Pays } else { Why::Spare },
            });
        }
    }
    Plan {
        format: toll_model::plan::FORMAT.to_owned(),
        version: toll_model::plan::VERSION,
        program: profile.program.clone(),
        source: profile.source,
        cpu: "AMD EPYC (Zen 4), Linux 6.18, 24 GiB".to_owned(),
        saved_ns: estimate(7.9e9, 5.1e9, 11.0e9),
        saved_all_ns: estimate(8.4e9, 5.4e9, 12.0e9),
        baseline_ns: Some(30.6e9),
        predicted_speedup: estimate(1.35, 1.20, 1.56),
        reason: "24 of 551 regions hold 91 % of what huge pages can save here.".to_owned(),
        warnings: vec![],
        thp_always: false,
        whole_heap: false,
        text: Vec::new(),
        sites: profile.sites.iter().map(|a| a.site.clone()).collect(),
        regions,
    }
}

fn measured() -> Measured {
    let samples = |centre: f64| {
        (0..9)
            .map(|i| centre * (1.0 + (f64::from(i * 37 % 11) - 5.0) * 0.004))
            .collect::<Vec<_>>()
    };
    let variant = |name: &str, meaning: &str, centre: f64, predicted| Variant {
        name: name.to_owned(),
        meaning: meaning.to_owned(),
        samples: samples(centre),
        median: centre,
        low: centre * 0.992,
        high: centre * 1.011,
        speedup: (name != "none").then(|| Estimate {
            median: 30.6 / centre,
            low: 30.6 / centre * 0.985,
            high: 30.6 / centre * 1.02,
        }),
        predicted,
    };
    let predicted = |median, low, high| Some(Estimate { median, low, high });
    Measured {
        metric: "elapsed time".to_owned(),
        unit: "s".to_owned(),
        larger_is_better: false,
        confidence: 0.95,
        pairs: 9,
        variants: vec![
            variant("none", "as it is run today", 30.6, None),
            variant("plan", "24 regions huge", 22.9, predicted(1.35, 1.20, 1.56)),
            variant("all", "everything huge", 22.4, predicted(1.38, 1.21, 1.65)),
            variant("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1", 23.1, None),
        ],
        smallest_visible: Some(0.011),
        counters: vec![
            counter(
                "Modelled TLB misses",
                CounterUnit::Count,
                &[Some(2.4e8), Some(2.2e7), Some(1.8e7), None],
            ),
            counter(
                "Page faults",
                CounterUnit::Count,
                &[
                    Some(262_411.0),
                    Some(250_100.0),
                    Some(1_204.0),
                    Some(1_310.0),
                ],
            ),
            counter(
                "Elapsed",
                CounterUnit::Seconds,
                &[Some(30.6), Some(22.9), Some(22.4), Some(23.1)],
            ),
            counter(
                "System time",
                CounterUnit::Seconds,
                &[Some(0.61), Some(0.64), Some(0.35), Some(0.4)],
            ),
            counter(
                "Peak memory",
                CounterUnit::Bytes,
                &[Some(1.07e9), Some(1.08e9), Some(1.2e9), Some(1.2e9)],
            ),
        ],
    }
}

fn counter(name: &str, unit: CounterUnit, values: &[Option<f64>]) -> Counter {
    Counter {
        name: name.to_owned(),
        unit,
        values: values.to_vec(),
    }
}

fn everything<'a>(before: &'a Profile, after: &'a Profile, plan: &'a Plan) -> PageData<'a> {
    PageData {
        program: "skew".to_owned(),
        verdict: Some(VerdictBox {
            tone: Tone::Apply,
            headline: "Apply the plan: 1.34 times as fast (1.32 to 1.36)".to_owned(),
            details: vec![
                "24 of 551 regions made huge bring 96 % of what everything huge would bring, with 48 MiB instead of 1.1 GiB.".to_owned(),
                "To keep it without tollfree, see “Make it permanent” below.".to_owned(),
            ],
        }),
        before: Some(before),
        after: Some(after),
        plan: Some(plan),
        measured: Some(measured()),
        permanent: vec![
            Permanent {
                title: "glibc: huge pages for malloc".to_owned(),
                paste: "GLIBC_TUNABLES=glibc.malloc.hugetlb=1 ./skew".to_owned(),
                note: "Advises every large block, not only the planned ones.".to_owned(),
                speedup: Some(Estimate { median: 1.32, low: 1.30, high: 1.35 }),
            },
            Permanent {
                title: "In the source: skew.c:40, make_table".to_owned(),
                paste: "madvise(table, bytes, MADV_HUGEPAGE);".to_owned(),
                note: "Right behind the allocation, before the first touch.".to_owned(),
                speedup: None,
            },
        ],
        environment: vec![
            ("CPU".to_owned(), "AMD EPYC (Zen 4), 2 cores, virtual machine".to_owned()),
            ("Kernel".to_owned(), "Linux 6.18, THP madvise".to_owned()),
            ("Memory".to_owned(), "24 GiB, no limit".to_owned()),
        ],
        method: vec![
            "Each round ran every variant once, in alternating order; the first round was dropped.".to_owned(),
            "Intervals are bootstrap intervals of the ratio of medians.".to_owned(),
        ],
        warnings: vec!["Seconds come from a virtual machine with other load.".to_owned()],
        command: None,
    }
}

fn page(regions: u64) -> String {
    let (before, after) = (profile(regions, 1.0), profile(regions, 0.06));
    let plan = plan(&before);
    render(&everything(&before, &after, &plan))
}

#[test]
fn everything_is_there_and_it_is_one_file() {
    let page = page(512);
    if let Some(path) = std::env::var_os("PAGE_OUT") {
        std::fs::write(path, &page).expect("PAGE_OUT");
    }
    for part in [
        "Apply the plan: 1.34 times as fast",
        "Measured by interleaved runs",
        "before and after",
        "Counters before and after",
        "make_table (skew.c:40)",
        "Index::grow&lt;std::vector&lt;int&gt;&gt;",
        "Make it permanent",
        "measured speed-up 1.32 (1.30 to 1.35)",
        "not measured",
        "Glossary",
        "prefers-color-scheme: dark",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for outside in ["http:", "https:", "src=", "href=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert_eq!(page, self::page(512), "equal data give an equal page");
}

#[test]
fn tags_are_balanced() {
    let page = page(64);
    for tag in [
        "section", "figure", "table", "div", "svg", "details", "ul", "dl", "main", "tbody",
        "thead", "tr", "td", "th", "p", "span", "h2", "h3", "pre", "script", "style",
    ] {
        let opened =
            page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
    }
}

#[test]
fn text_from_outside_is_escaped() {
    let page = page(64);
    assert!(!page.contains("<script>alert"));
    assert!(page.contains("&lt;script&gt;alert(1)"));
    assert_eq!(
        escape("a<b>&\"'\u{7}"),
        "a&lt;b&gt;&amp;&quot;&#39;\u{fffd}"
    );

    let profile = profile(64, 1.0);
    let data = PageData {
        program: EVIL.to_owned(),
        before: Some(&profile),
        command: Some(Command {
            arguments: vec![EVIL.to_owned()],
            environment: vec![format!("A={EVIL}")],
        }),
        ..PageData::default()
    };
    assert!(!render(&data).contains("<script>alert"));
}

#[test]
fn the_command_is_shown_only_if_asked_for() {
    assert!(!page(64).contains("secret-argument"));
    let data = PageData {
        command: Some(Command {
            arguments: vec!["prog".to_owned(), "secret-argument".to_owned()],
            environment: vec!["TOKEN=x".to_owned()],
        }),
        ..PageData::default()
    };
    let page = render(&data);
    assert!(page.contains("prog secret-argument") && page.contains("TOKEN=x"));
}

#[test]
fn a_page_of_32768_regions_stays_small() {
    let size = page(32_768).len();
    assert!(size < 500_000, "{size} bytes");
}

#[test]
fn little_data_makes_a_small_whole_page() {
    let page = render(&PageData {
        program: "prog".to_owned(),
        verdict: Some(VerdictBox {
            tone: Tone::DoNothing,
            headline: "Do nothing".to_owned(),
            details: vec![],
        }),
        ..PageData::default()
    });
    assert!(page.contains("Do nothing") && page.ends_with("</html>\n"));
    assert!(!page.contains("Measured by interleaved runs") && !page.contains("<figure"));
    let empty = ProfileBuilder::new().finish(meta("nothing seen"));
    let data = PageData {
        before: Some(&empty),
        ..PageData::default()
    };
    assert!(render(&data).contains("No miss was counted"));
}

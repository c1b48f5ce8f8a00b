// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::report::tests::{Made, results};

fn example() -> Results {
    let counters = [
        ("latency_base_1000", 9.0),
        ("latency_fell_back_2048", 1.0),
        ("latency_base_4096", 1.0),
        ("latency_huge_8192", 0.0),
        ("page_faults", 11.0),
    ];
    let made = |policy| Made::new("tollfree", policy, "main", &counters);
    results("fault-kinds", &["never", "always-defrag", "econ"].map(made))
}

#[test]
fn kinds_are_read_from_the_names_of_the_counters() {
    let results = example();
    let found = kinds(&results.results[0], LATENCY);
    let names: Vec<&&str> = found.keys().collect();
    assert_eq!(names, [&"base", &"fell_back"]);
    assert_eq!(found["base"], [(1000, 9.0), (4096, 1.0)]);
    assert_eq!(found["fell_back"], [(2048, 1.0)]);
    assert!(is_measured(&results));
    assert_eq!(median(&found["base"]), 1000);
    let text = table(&results);
    assert!(
        text.contains("| never         |      base |     10 |     1,000 |      4,096 |"),
        "{text}"
    );
}

#[test]
fn a_tail_starts_at_the_share_of_its_kind_and_ends_at_none() {
    let results = example();
    let tail = tail(&kinds(&results.results[0], LATENCY)["base"], 11.0);
    let share = |count: f64| count / 11.0;
    let last = 4096.0 * WIDTH_OF_BUCKET;
    assert_eq!(
        tail,
        [(1000.0, share(10.0)), (4096.0, share(1.0)), (last, 0.0)]
    );
}

#[test]
fn every_kind_of_every_policy_is_drawn() {
    let drawn = pictures(&example());
    assert_eq!(drawn.len(), 1);
    let (end, drawn) = &drawn[0];
    assert_eq!(end, "");
    assert_eq!(drawn.matches("class=\"curve\"").count(), 6, "{drawn}");
    assert!(drawn.ends_with("</svg>\n"));
    for tag in ["svg", "text"] {
        let opened = drawn.matches(&format!("<{tag} ")).count();
        let closed = drawn.matches(&format!("</{tag}>")).count();
        assert_eq!(opened, closed, "{tag}");
    }
    assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
}

#[test]
fn the_touches_of_each_kernel_and_section_are_drawn() {
    let counters = [
        ("touches_plain_1024", 90.0),
        ("touches_advised_4096", 10.0),
        ("touches_over_1ms", 1.0),
        ("touches_over_1ms_plain", 1.0),
    ];
    let made = |(variant, policy, section)| Made::new(variant, policy, section, &counters);
    let places = [
        ("vanilla", "never", "main"),
        ("vanilla", "never", "unprofiled"),
        ("vanilla", "always", "main"),
        ("tollfree", "econ", "main"),
    ];
    let results = results("fault-tail-wait", &places.map(made));
    assert!(!is_measured(&results));
    let drawn = pictures(&results);
    let ends: Vec<&str> = drawn.iter().map(|(end, _)| end.as_str()).collect();
    assert_eq!(ends, ["-tollfree", "-vanilla"]);
    let curves = |(_, drawn): &(String, String)| drawn.matches("class=\"curve\"").count();
    assert_eq!(drawn.iter().map(curves).collect::<Vec<_>>(), [2, 6]);
    for text in [">never<", ">never, unprofiled<", ">plain<", ">advised<"] {
        assert_eq!(drawn[1].1.matches(text).count(), 1, "{text}");
    }
    assert!(is_of_a_kind("touches_plain_1024") && !is_of_a_kind("touches_over_1ms"));
}

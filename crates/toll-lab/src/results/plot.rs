// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws results as SVG: bars of counters, and the tail of the page faults.

use std::fmt::Write as _;

use super::{Entry, Results};
use crate::svg::{TailChart, colour, document, escaped, key};

const WIDTH: f64 = 720.0;
/// Draws bars of the counters of one section; each counter is scaled to its largest bar.
pub fn bars(results: &Results, section: &str, counters: &[&str]) -> String {
    const LABEL: f64 = 230.0;
    const BAR: f64 = 14.0;
    let entries = entries(results, section);
    let mut body = String::new();
    let mut y = legend(&mut body, results, &entries);
    for counter in counters {
        let value = |entry: &Entry| entry.counters.get(*counter).map_or(0.0, |it| it.median);
        let largest = entries.iter().map(|entry| value(entry)).fold(0.0, f64::max);
        if largest <= 0.0 {
            continue;
        }
        let _ = writeln!(body, "<text x=\"0\" y=\"{:.1}\">{counter}</text>", y + 11.0);
        for (place, entry) in entries.iter().enumerate() {
            let length = (WIDTH - LABEL - 110.0) * value(entry).max(0.0) / largest;
            let colour = colour(place);
            let _ = writeln!(
                body,
                "<rect x=\"{LABEL}\" y=\"{y:.1}\" width=\"{length:.1}\" height=\"{BAR}\" fill=\"{colour}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                LABEL + length + 6.0,
                y + 11.0,
                value(entry)
            );
            y += BAR + 2.0;
        }
        y += 8.0;
    }
    document(&body, WIDTH, y)
}

/// Draws the share of page faults that need more than N instructions; both axes are logarithmic.
pub fn tails(results: &Results, section: &str) -> String {
    let entries = entries(results, section);
    let mut body = String::new();
    let top = legend(&mut body, results, &entries) + 8.0;
    let points = || {
        entries
            .iter()
            .flat_map(|entry| entry.last.fault_tail.iter())
    };
    let most = points()
        .map(|(instructions, _)| *instructions)
        .max()
        .unwrap_or(10)
        .max(10);
    let least = points()
        .map(|(_, share)| *share)
        .filter(|share| *share > 0.0);
    let chart = TailChart {
        left: 60.0,
        top,
        width: WIDTH - 70.0,
        height: 320.0,
        amounts: 0..=(most as f64).log10().ceil() as i32,
        depth: -least.fold(1.0, f64::min).log10().floor().min(-1.0) as i32,
    };
    chart.draw_axes(&mut body);
    for (place, entry) in entries.iter().enumerate() {
        chart.draw_curve(&mut body, place, steps(&entry.last.fault_tail));
    }
    let label = top + chart.height + 34.0;
    let _ = writeln!(
        body,
        "<text x=\"{}\" y=\"{label:.1}\">instructions of a page fault; share of faults that need more</text>",
        chart.left
    );
    document(&body, WIDTH, label + 8.0)
}

/// The corners of a curve that falls at each number of instructions.
fn steps(tail: &[(u64, f64)]) -> Vec<(f64, f64)> {
    let mut corners = vec![(1.0, 1.0)];
    let mut before = 1.0;
    for &(instructions, share) in tail {
        corners.extend([before, share].map(|share| (instructions as f64, share)));
        before = share;
    }
    corners
}

/// Draws the shares of two kinds in their sum: a two-part bar for each row with a non-zero sum.
pub fn shares(title: &str, kinds: [&str; 2], rows: &[(String, [f64; 2])]) -> String {
    const LABEL: f64 = 230.0;
    const BAR: f64 = 14.0;
    let width = WIDTH - LABEL - 60.0;
    let mut body = format!(
        "<text class=\"title\" x=\"0\" y=\"14\">{}</text>\n",
        escaped(title)
    );
    for (place, kind) in kinds.iter().enumerate() {
        key(&mut body, (0.0, 22.0 + 16.0 * place as f64), place, kind);
    }
    let mut y = 62.0;
    for (name, [first, second]) in rows {
        let sum = first + second;
        if sum <= 0.0 {
            continue;
        }
        let (share, [left, right]) = (first / sum, [0, 1].map(colour));
        let split = LABEL + width * share;
        let _ = writeln!(
            body,
            "<text x=\"0\" y=\"{:.1}\">{}</text>\
             <rect x=\"{LABEL}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{BAR}\" fill=\"{left}\"/>\
             <rect x=\"{split:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{BAR}\" fill=\"{right}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{:.1} %</text>",
            y + 11.0,
            escaped(name),
            width * share,
            width * (1.0 - share),
            LABEL + width + 6.0,
            y + 11.0,
            100.0 * share
        );
        y += BAR + 6.0;
    }
    document(&body, WIDTH, y)
}

fn entries<'a>(results: &'a Results, section: &str) -> Vec<&'a Entry> {
    results
        .results
        .iter()
        .filter(|entry| entry.section == section)
        .collect()
}

/// Writes the title and the legend; returns the vertical position below them.
fn legend(body: &mut String, results: &Results, entries: &[&Entry]) -> f64 {
    let form = results.form.name();
    let _ = writeln!(
        body,
        "<text class=\"title\" x=\"0\" y=\"14\">{} ({form}), preset {}</text>",
        escaped(&results.scenario),
        escaped(&results.preset)
    );
    let mut y = 22.0;
    for (place, entry) in entries.iter().enumerate() {
        let name = format!("{}, {}", entry.variant, entry.policy);
        key(body, (0.0, y), place, &name);
        y += 16.0;
    }
    y + 8.0
}

#[cfg(test)]
mod tests {
    use super::super::MAIN;
    use super::super::tests::example;
    use super::*;

    #[test]
    fn the_longest_bar_fills_its_place() {
        let picture = bars(
            &example(&[100.0], &[25.0]),
            MAIN,
            &["shootdown_irqs", "nothing"],
        );
        assert!(picture.contains("width=\"380.0\""), "{picture}");
        assert!(picture.contains("width=\"95.0\""), "{picture}");
        assert!(!picture.contains("nothing"), "{picture}");
    }

    #[test]
    fn shares_are_parts_of_a_whole() {
        let rows = [
            ("a<b".to_owned(), [3.0, 1.0]),
            ("nobody".to_owned(), [0.0, 0.0]),
        ];
        let picture = shares("pages", ["read-only", "writable"], &rows);
        assert!(
            picture.contains("a&lt;b") && picture.contains("75.0 %"),
            "{picture}"
        );
        // 430 wide in total.
        assert!(picture.contains("width=\"322.5\"") && picture.contains("width=\"107.5\""));
        assert!(!picture.contains("nobody"), "{picture}");
    }

    #[test]
    fn a_tail_falls_from_all_to_none() {
        let picture = tails(&example(&[1.0], &[1.0]), MAIN);
        assert_eq!(picture.matches("class=\"curve\"").count(), 2, "{picture}");
        assert!(picture.contains("1e4"), "{picture}");
        assert!(
            !picture.contains("NaN") && !picture.contains("inf"),
            "{picture}"
        );
    }

    #[test]
    fn nothing_to_draw_is_no_error() {
        let mut results = example(&[], &[]);
        results.results.clear();
        assert!(tails(&results, MAIN).ends_with("</svg>\n"));
        assert!(bars(&results, MAIN, &["walks"]).ends_with("</svg>\n"));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws results as SVG: bars of counters, and the tail of the page faults. Colours follow the
//! reader's light or dark setting.

use std::fmt::Write as _;

use super::{Entry, Results};

const WIDTH: f64 = 720.0;
/// Colours of variant and policy; distinguishable in print and with colour blindness (Okabe and
/// Ito, 2008).
const COLOURS: [&str; 6] = [
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00",
];
const STYLE: &str = "text{font:12px sans-serif;fill:#222}.title{font-weight:bold}\
line,path{stroke:#888;fill:none}.curve{stroke-width:2}\
@media(prefers-color-scheme:dark){text{fill:#ddd}}";

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
            let colour = COLOURS[place % COLOURS.len()];
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
    document(&body, y)
}

/// Draws the share of page faults that need more than N instructions; both axes are logarithmic.
pub fn tails(results: &Results, section: &str) -> String {
    const LEFT: f64 = 60.0;
    const HEIGHT: f64 = 320.0;
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
    let decades = (most as f64).log10().ceil();
    let least = points()
        .map(|(_, share)| *share)
        .filter(|share| *share > 0.0);
    let depth = -least.fold(1.0, f64::min).log10().floor().min(-1.0);
    let x =
        |instructions: f64| LEFT + (WIDTH - LEFT - 10.0) * instructions.max(1.0).log10() / decades;
    let y = |share: f64| top + (HEIGHT * -share.max(10f64.powf(-depth)).log10() / depth);
    for decade in 0..=decades as i32 {
        let at = x(10f64.powi(decade));
        let (bottom, label) = (top + HEIGHT, top + HEIGHT + 16.0);
        let _ = writeln!(
            body,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{top:.1}\" y2=\"{bottom:.1}\" opacity=\"0.3\"/>\
             <text x=\"{at:.1}\" y=\"{label:.1}\" text-anchor=\"middle\">1e{decade}</text>"
        );
    }
    for decade in 0..=depth as i32 {
        let at = y(10f64.powi(-decade));
        let _ = writeln!(
            body,
            "<line x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{at:.1}\" y2=\"{at:.1}\" opacity=\"0.3\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">1e-{decade}</text>",
            LEFT - 6.0,
            at + 4.0
        );
    }
    for (place, entry) in entries.iter().enumerate() {
        let mut path = format!("M{:.1} {:.1}", x(1.0), y(1.0));
        let mut before = 1.0;
        for &(instructions, share) in &entry.last.fault_tail {
            let _ = write!(path, "L{:.1} {:.1}", x(instructions as f64), y(before));
            let _ = write!(path, "L{:.1} {:.1}", x(instructions as f64), y(share));
            before = share;
        }
        let colour = COLOURS[place % COLOURS.len()];
        let _ = writeln!(
            body,
            "<path class=\"curve\" style=\"stroke:{colour}\" d=\"{path}\"/>"
        );
    }
    let label = top + HEIGHT + 34.0;
    let _ = writeln!(
        body,
        "<text x=\"{LEFT}\" y=\"{label:.1}\">instructions of a page fault; share of faults that need more</text>"
    );
    document(&body, label + 8.0)
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
        key(&mut body, 22.0 + 16.0 * place as f64, place, kind);
    }
    let mut y = 62.0;
    for (name, [first, second]) in rows {
        let sum = first + second;
        if sum <= 0.0 {
            continue;
        }
        let (share, [left, right]) = (first / sum, [COLOURS[0], COLOURS[1]]);
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
    document(&body, y)
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
        key(body, y, place, &name);
        y += 16.0;
    }
    y + 8.0
}

/// Draws one legend entry.
fn key(body: &mut String, y: f64, place: usize, name: &str) {
    let _ = writeln!(
        body,
        "<rect x=\"0\" y=\"{y:.1}\" width=\"10\" height=\"10\" fill=\"{}\"/>\
         <text x=\"16\" y=\"{:.1}\">{}</text>",
        COLOURS[place % COLOURS.len()],
        y + 10.0,
        escaped(name)
    );
}

fn document(body: &str, height: f64) -> String {
    format!(
        "<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->\n\
         <svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\">\n\
         <style>{STYLE}</style>\n{body}</svg>\n"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;")
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result as text.

use comfy_table::{CellAlignment, Table};
use toll_model::numbers;
use toll_model::plan::Estimate;
use toll_model::stats::{Interval, MOST_PAIRS, Verdict};

use super::result::{Comparison, VariantResult};
use super::sample::Resource;

/// `1.312x (1.291 to 1.334)`.
pub fn speedup(interval: &Interval) -> String {
    format!(
        "{:.3}x ({:.3} to {:.3})",
        interval.median, interval.low, interval.high
    )
}

/// A prediction in the same format.
pub fn estimate(estimate: &Estimate) -> String {
    format!(
        "{:.3}x ({:.3} to {:.3})",
        estimate.median, estimate.low, estimate.high
    )
}

/// The legend of the columns of [`variants`].
const COLUMNS: &str = "\
Medians of the counted runs. faults: page faults; huge: most memory in huge pages; memory: most that
was resident; bloat: resident above the first variant; speed-up: time of the first variant / time of this one.
";

/// How a user requests more pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum More {
    /// By number: `-n`.
    Pairs,
    /// Only by a longer time limit.
    Within,
}

/// The whole text: a table, the verdict, the notes.
pub fn render(comparison: &Comparison, more: More) -> String {
    let mut text = format!(
        "{COLUMNS}\n{}\n\n{}\n",
        variants(comparison),
        verdict(comparison, more)
    );
    if let Some(predicted) = &comparison.predicted_speedup {
        let measured = comparison.speedup.as_ref().map_or("-".to_owned(), speedup);
        text += &format!(
            "predicted {} (80 %), measured {measured}\n",
            estimate(predicted)
        );
    }
    if let Some(line) = warmed(comparison) {
        text += &format!("{line}\n");
    }
    if let Some(warming) = &comparison.warming {
        text += &format!("{}\n", warming.text());
    }
    for note in &comparison.notes {
        text += &format!("note: {note}\n");
    }
    text
}

/// How memory was warmed before each run, if it was.
pub fn warmed(comparison: &Comparison) -> Option<String> {
    let bytes = comparison.warmed_bytes;
    (bytes > 0).then(|| {
        format!(
            "before each run {} were touched, and freed as the program grew, so that no variant waits for blocks that the host \
             must provide first (--cold disables this)",
            numbers::bytes(bytes)
        )
    })
}

/// One sentence: faster, slower, or what would settle the comparison.
pub fn verdict(comparison: &Comparison, more: More) -> String {
    let what = comparison
        .variants
        .get(1)
        .map_or("", |variant| variant.name.as_str());
    let resource = comparison.resource.name();
    let confidence = comparison.confidence * 100.0;
    let Some(interval) = comparison.main() else {
        return format!(
            "cannot tell: {} pair(s) are too few for an interval",
            comparison.pairs
        );
    };
    let pairs = comparison.pairs;
    let measured = format!(
        "{} in {resource}, {confidence:.0} % interval, {pairs} pairs",
        speedup(&interval)
    );
    match comparison.verdict {
        Verdict::Faster => format!("{what} is faster: {measured}"),
        Verdict::Slower => format!("{what} is SLOWER: {measured}"),
        Verdict::NoDifference => format!("no difference of 2 % or more: {what} {measured}"),
        Verdict::CannotTell if !interval.holds_one() => format!(
            "cannot tell whether the difference reaches 2 %: {what} {measured}{}",
            settle(comparison, more)
        ),
        Verdict::CannotTell => format!(
            "cannot tell: {what} {measured}; such runs detect an effect of {} with a probability of 80 %{}",
            numbers::percent(interval.smallest_visible_effect(pairs)),
            settle(comparison, more)
        ),
    }
}

fn settle(comparison: &Comparison, more: More) -> String {
    match comparison.pairs_to_settle {
        Some(MOST_PAIRS) => "; it is too close to 2 % to be settled by more pairs".to_owned(),
        Some(pairs) if pairs > comparison.pairs => {
            let option = match more {
                More::Pairs => format!(" (-n {pairs})"),
                More::Within => String::new(),
            };
            format!("; about {pairs} pairs{option} would settle it with a probability of 80 %")
        }
        _ => String::new(),
    }
}

fn variants(comparison: &Comparison) -> Table {
    let mut table = Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    let mut header = vec![
        "variant", "elapsed", "user", "sys", "faults", "huge", "memory", "bloat", "speed-up",
    ];
    let metric = matches!(
        comparison.resource,
        Resource::MetricRate | Resource::MetricTime
    );
    if metric {
        header.insert(1, "metric");
    }
    table.set_header(header);
    for variant in &comparison.variants {
        table.add_row(row(variant, metric));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn row(variant: &VariantResult, metric: bool) -> Vec<String> {
    let mut row = vec![variant.name.clone()];
    let Some(median) = &variant.median else {
        row.push("no complete run".to_owned());
        return row;
    };
    if metric {
        row.push(
            median
                .metric
                .map_or("-".to_owned(), |value| format!("{value:.3}")),
        );
    }
    let seconds = |value: f64| format!("{value:.3} s");
    row.extend([
        seconds(median.elapsed),
        seconds(median.user),
        seconds(median.sys),
    ]);
    row.push(numbers::count(median.minor_faults + median.major_faults));
    row.push(match median.huge_samples {
        0 => "-".to_owned(),
        _ => numbers::bytes(median.huge_peak as u64),
    });
    row.push(numbers::bytes(median.max_rss as u64));
    row.push(bloat(variant.bloat.unwrap_or(0)));
    row.push(variant.speedup.as_ref().map_or("-".to_owned(), speedup));
    row
}

fn bloat(bytes: i64) -> String {
    let sign = if bytes < 0 { "-" } else { "+" };
    format!("{sign}{}", numbers::bytes(bytes.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::super::schedule::tests::{Mock, rules};
    use super::super::{Variant, compare};
    use super::*;

    #[test]
    fn the_text_names_variant_ratio_interval_resource_and_pairs() {
        let mut mock = Mock::new(&[("none", &[3.0, 3.01]), ("plan", &[2.0, 2.01])]);
        let variants = [Variant::none(), Variant::plan("p")];
        let predicted = Estimate {
            median: 1.4,
            low: 1.3,
            high: 1.6,
        };
        let got = compare(
            &mut mock,
            "x",
            &variants,
            &rules(Some(6), 999.0),
            Some(predicted),
        )
        .unwrap();
        let text = render(&got, More::Pairs);
        for part in [
            "plan is faster: 1.499x",
            "elapsed time",
            "95 % interval",
            "6 pairs",
            "predicted 1.400x",
        ] {
            assert!(text.contains(part), "{part} is not in:\n{text}");
        }
    }

    #[test]
    fn memory_that_was_warmed_is_said() {
        let mut mock = Mock::new(&[("none", &[3.0]), ("all", &[2.0])]);
        let variants = [Variant::none(), Variant::all()];
        let mut got = compare(&mut mock, "x", &variants, &rules(Some(2), 999.0), None).unwrap();
        assert!(!render(&got, More::Pairs).contains("--cold"));
        got.warmed_bytes = 640 << 20;
        let text = render(&got, More::Pairs);
        assert!(
            text.contains("before each run 640 MiB were touched"),
            "{text}"
        );
    }

    #[test]
    fn a_difference_below_the_floor_does_not_matter() {
        // The preload library's start costs 0.7 %, which these runs resolve.
        let mut mock = Mock::new(&[("none", &[3.0, 3.001]), ("plan", &[3.021, 3.022])]);
        let variants = [Variant::none(), Variant::plan("p")];
        let got = compare(&mut mock, "x", &variants, &rules(Some(8), 999.0), None).unwrap();
        assert!(got.main().unwrap().high < 1.0, "{:?}", got.main());
        let text = render(&got, More::Pairs);
        assert!(
            text.contains("no difference of 2 % or more: plan"),
            "{text}"
        );
        assert!(!text.to_lowercase().contains("slower"), "{text}");
    }

    #[test]
    fn what_cannot_be_told_is_not_called_a_gain() {
        let mut mock = Mock::new(&[("none", &[3.0, 3.4, 2.6, 3.1]), ("all", &[3.1, 2.5, 3.3])]);
        let variants = [Variant::none(), Variant::all()];
        let got = compare(&mut mock, "x", &variants, &rules(Some(6), 999.0), None).unwrap();
        let text = render(&got, More::Pairs);
        assert!(
            text.contains("cannot tell") && text.contains("would settle it"),
            "{text}"
        );
        assert!(!text.contains("is faster"), "{text}");
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Elements of the lab's pictures, as SVG. Colours follow the reader's light or dark setting.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

/// Distinguishable in print and with colour blindness (Okabe and Ito, 2008).
const COLOURS: [&str; 6] = [
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00",
];
const STYLE: &str = "text{font:12px sans-serif;fill:#222}.title{font-weight:bold}\
line,path{stroke:#888;fill:none}.curve{stroke-width:2}\
@media(prefers-color-scheme:dark){text{fill:#ddd}}";

/// The colour of the series at this place.
pub fn colour(place: usize) -> &'static str {
    COLOURS[place % COLOURS.len()]
}

/// Whether the series is dashed because an earlier one has its colour.
fn is_dashed(place: usize) -> bool {
    place / COLOURS.len() % 2 == 1
}

/// Draws the legend entry of the series at this place.
pub fn key(body: &mut String, (x, y): (f64, f64), place: usize, name: &str) {
    let colour = colour(place);
    let paint = match is_dashed(place) {
        true => format!("fill=\"none\" stroke=\"{colour}\" stroke-dasharray=\"3 2\""),
        false => format!("fill=\"{colour}\""),
    };
    let _ = writeln!(
        body,
        "<rect x=\"{x}\" y=\"{y:.1}\" width=\"10\" height=\"10\" {paint}/>\
         <text x=\"{}\" y=\"{:.1}\">{}</text>",
        x + 16.0,
        y + 10.0,
        escaped(name)
    );
}

pub fn document(body: &str, width: f64, height: f64) -> String {
    format!(
        "<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->\n\
         <svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\">\n\
         <style>{STYLE}</style>\n{body}</svg>\n"
    )
}

pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;")
}

/// A chart of the share of events that need more than an amount; both axes are logarithmic.
#[derive(Debug, Clone)]
pub struct TailChart {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
    /// Powers of ten of the amounts.
    pub amounts: RangeInclusive<i32>,
    /// The smallest share is this negative power of ten.
    pub depth: i32,
}

impl TailChart {
    /// Draws the lines of the powers of ten, with their labels.
    pub fn draw_axes(&self, body: &mut String) {
        let (top, bottom) = (self.top, self.top + self.height);
        for decade in self.amounts.clone() {
            let (at, label) = (self.x(10f64.powi(decade)), bottom + 16.0);
            let _ = writeln!(
                body,
                "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{top:.1}\" y2=\"{bottom:.1}\" opacity=\"0.3\"/>\
                 <text x=\"{at:.1}\" y=\"{label:.1}\" text-anchor=\"middle\">1e{decade}</text>"
            );
        }
        let (left, right) = (self.left, self.left + self.width);
        for decade in 0..=self.depth {
            let at = self.y(10f64.powi(-decade));
            let _ = writeln!(
                body,
                "<line x1=\"{left}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\" opacity=\"0.3\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">1e-{decade}</text>",
                left - 6.0,
                at + 4.0
            );
        }
    }

    /// Draws the series at this place: amounts, and the share that needs more.
    pub fn draw_curve(
        &self,
        body: &mut String,
        place: usize,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) {
        let mut path = String::new();
        for (amount, share) in points {
            let command = if path.is_empty() { 'M' } else { 'L' };
            let _ = write!(path, "{command}{:.1} {:.1}", self.x(amount), self.y(share));
        }
        let colour = colour(place);
        let dashes = match is_dashed(place) {
            true => ";stroke-dasharray:6 3",
            false => "",
        };
        let _ = writeln!(
            body,
            "<path class=\"curve\" style=\"stroke:{colour}{dashes}\" d=\"{path}\"/>"
        );
    }

    fn x(&self, amount: f64) -> f64 {
        let [first, last] = [self.amounts.start(), self.amounts.end()].map(|it| f64::from(*it));
        let decade = amount.max(1.0).log10().clamp(first, last);
        self.left + self.width * (decade - first) / (last - first)
    }

    fn y(&self, share: f64) -> f64 {
        let depth = f64::from(self.depth);
        self.top + self.height * -share.max(10f64.powf(-depth)).log10() / depth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHART: TailChart = TailChart {
        left: 10.0,
        top: 20.0,
        width: 200.0,
        height: 100.0,
        amounts: 2..=4,
        depth: 2,
    };

    #[test]
    fn a_point_outside_the_chart_is_moved_to_its_edge() {
        let at = |amount, share| (CHART.x(amount), CHART.y(share));
        assert_eq!(at(1000.0, 0.1), (110.0, 70.0));
        assert_eq!(at(0.0, 1.0), (10.0, 20.0));
        assert_eq!(at(1e9, 0.0), (210.0, 120.0));
    }

    #[test]
    fn a_series_of_an_earlier_colour_is_dashed() {
        let mut body = String::new();
        for place in [0, COLOURS.len()] {
            CHART.draw_curve(&mut body, place, [(100.0, 1.0), (1000.0, 0.1)]);
            key(&mut body, (0.0, 0.0), place, "a<b");
        }
        assert_eq!(body.matches("stroke-dasharray").count(), 2, "{body}");
        assert_eq!(
            body.matches("d=\"M10.0 20.0L110.0 70.0\"").count(),
            2,
            "{body}"
        );
        assert_eq!(body.matches(">a&lt;b<").count(), 2, "{body}");
    }
}

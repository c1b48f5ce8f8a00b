// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn what_was_never_compared_is_in_more_doubt_than_what_was() {
    let (perf, simulator) = (source_doubt(Source::Perf), source_doubt(Source::Sim));
    assert!(perf.low < simulator.low && perf.high > simulator.high);
}

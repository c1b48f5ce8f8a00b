// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree calibrate`: a plausible table within the time limit, in the cache or a file.

use std::fs;
use std::time::{Duration, Instant};

use assert_cmd::Command;
use toll_model::cost::CostTable;
use toll_testkit::schema;

fn calibrate() -> Command {
    let mut command = Command::cargo_bin("tollfree").unwrap();
    command.arg("calibrate");
    command
}

#[test]
fn a_short_calibration_is_sound_and_cached() {
    let cache = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let mut command = calibrate();
    command
        .args(["--within", "2s", "--json"])
        .env("XDG_CACHE_HOME", cache.path());
    let output = command.assert().success().get_output().stdout.clone();
    // The limit, plus the rest of the last step on a busy machine.
    assert!(
        began.elapsed() < Duration::from_secs(12),
        "{:?}",
        began.elapsed()
    );
    schema::check("costs", &serde_json::from_slice(&output).unwrap());
    let table = CostTable::from_json(&output).unwrap();
    // Every footprint has a cost for each number of chains, measured or not.
    for cell in &table.walk {
        for chains in [1, 2, 4, 8] {
            let same = |other: &&_| is_cell(other, cell.footprint, chains);
            assert_eq!(table.walk.iter().filter(same).count(), 1);
        }
    }
    assert!(table.walk.iter().any(|cell| cell.footprint == 4 << 30));
    assert!(
        table.fault_4k.median > 10.0 && table.fault_4k.median < 1e6,
        "{:?}",
        table.fault_4k
    );
    let files: Vec<_> = fs::read_dir(cache.path().join("tollfree"))
        .unwrap()
        .collect();
    assert_eq!(files.len(), 1, "one table and no temporary file");
    let path = files[0].as_ref().unwrap().path();
    assert_eq!(
        CostTable::from_json(fs::read(path).unwrap()).unwrap(),
        table
    );
}

fn is_cell(cell: &toll_model::cost::WalkCost, footprint: u64, chains: u32) -> bool {
    (cell.footprint, cell.chains) == (footprint, chains)
}

#[test]
fn a_table_goes_where_it_is_told_and_is_shown_to_people() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("costs.json");
    let mut command = calibrate();
    command
        .args(["--within", "100ms", "-o"])
        .arg(&path)
        .env("XDG_CACHE_HOME", directory.path());
    let output = command.assert().success().get_output().stdout.clone();
    let text = String::from_utf8(output).unwrap();
    assert!(
        text.contains("INCOMPLETE") && text.contains("collapse"),
        "{text}"
    );
    assert!(
        !CostTable::from_json(fs::read(&path).unwrap())
            .unwrap()
            .complete
    );
    assert!(
        !directory.path().join("tollfree").exists(),
        "not in the cache as well"
    );
}

#[test]
fn wrong_usage_and_unwritable_places() {
    calibrate().args(["--within", "soon"]).assert().code(2);
    let began = Instant::now();
    calibrate()
        .args(["--within", "30s", "-o", "/proc/nothing/here"])
        .assert()
        .code(1);
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "said before the work"
    );
}

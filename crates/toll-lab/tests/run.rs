// SPDX-License-Identifier: MIT OR Apache-2.0
//! `toll-lab run` and `toll-lab kernel` called as by a user. `./test` leaves out those that boot dozens
//! of guests, and `./test scenarios` runs them.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;
use toll_testkit::schema;

/// Runs the short form once and returns its output.
fn run(scenario: &str, more: &[&str], status: i32) -> (String, String) {
    let assert = Command::new(env!("CARGO_BIN_EXE_toll-lab"))
        .args(["run", scenario, "--short", "--runs", "1"])
        .args(more)
        .assert()
        .code(status);
    let output = assert.get_output();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
#[ignore = "boots two kernels: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn json_keeps_to_its_schema_and_adds_up() {
    let (out, _) = run("morsel-pgtables", &["--json"], 0);
    let got: Value = serde_json::from_str(&out).unwrap();
    schema::check("lab", &got);
    assert_eq!(got["scenario"], "morsel-pgtables");
    let results = got["results"].as_array().unwrap();
    for variant in ["vanilla", "tollfree"] {
        let of_variant = |result: &&Value| result["variant"] == variant;
        adds_up(results.iter().find(of_variant).unwrap());
    }
}

/// The scenario has crashes, beside its guests.
#[test]
#[ignore = "boots dozens of guests: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn crashes_of_a_scenario_are_counted() {
    let (out, _) = run("morsel-persist", &["--json"], 0);
    let got: Value = serde_json::from_str(&out).unwrap();
    schema::check("lab", &got);
    let results = got["results"].as_array().unwrap();
    let count = |section: &str, counter: &str| {
        let entry = results.iter().find(|it| it["section"] == section).unwrap();
        entry["counters"][counter]["median"].as_f64().unwrap()
    };
    assert!(count("crash-states", "crash_states") >= 100_000.0);
    assert_eq!(count("crash-states", "lost"), 0.0);
    assert_eq!(count("crash-states", "planted"), 24.0);
    assert_eq!(count("crash-states", "caught"), 24.0);
    assert_eq!(count("kernel-crash-states", "operations"), 10.0);
    assert!(count("kernel-crash-states", "crash_states") > 1000.0);
    assert_eq!(count("kernel-crash-states", "mounted"), 4.0);
    assert_eq!(count("kernel-crash-states", "lost"), 0.0);
    assert_eq!(count("power-cuts", "power_cuts"), 10.0);
    assert_eq!(count("power-cuts", "lost"), 0.0);
    assert!(count("power-cuts", "done") > 10.0);
}

fn adds_up(result: &Value) {
    let of_all = result["counters"]["walk_steps"]["median"].as_f64().unwrap();
    let sum = |parts: Vec<&Value>| {
        let count = |part: &&Value| part["walk_steps"].as_u64().unwrap();
        parts.iter().map(count).sum::<u64>() as f64
    };
    let cpus = result["cpus"].as_array().unwrap();
    let processes = result["processes"].as_object().unwrap();
    assert_eq!(sum(cpus.iter().collect()), of_all);
    assert_eq!(sum(processes.values().collect()), of_all);
    assert!(processes.contains_key("pgtables"), "{processes:?}");
}

#[test]
#[ignore = "boots a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn a_condition_that_holds_is_a_status() {
    let more = [
        "--variant",
        "vanilla",
        "--fail-if",
        "page_faults>1",
        "--fail-if",
        "page_faults<1",
    ];
    let (out, err) = run("lookup", &more, 5);
    assert!(out.contains("page_faults"), "{out}");
    assert!(err.contains("page_faults>1"), "{err}");
    assert!(!err.contains("page_faults<1"), "{err}");
}

#[test]
#[ignore = "boots two kernels: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn a_morsel_costs_less_to_map_the_larger_it_is() {
    let (out, _) = run("morsel-map", &["--json"], 0);
    let got: Value = serde_json::from_str(&out).unwrap();
    schema::check("lab", &got);
    let kernels = got["environment"]["kernels"].as_array().unwrap();
    assert_eq!(kernels.len(), 2);
    let sizes = got["sizes"].as_array().unwrap();
    let number = |at: usize, name: &str| sizes[at][name].as_f64().unwrap();
    let bytes: Vec<f64> = (0..sizes.len())
        .map(|at| number(at, "size_bytes"))
        .collect();
    assert_eq!(bytes, [4096.0, 2097152.0, 134217728.0]);
    assert!(number(2, "morsel_instr") < number(2, "hugetlb_instr"));
    assert!(number(2, "hugetlb_instr") < number(2, "base_instr"));
    assert!(number(2, "reduction_factor") > 1000.0);
    // Constant time: at most twice the cost for 64 times the size.
    assert!(number(2, "morsel_instr") < 1.5 * number(1, "morsel_instr"));
}

#[test]
#[ignore = "boots two kernels: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn lines_that_cpus_take_from_each_other_are_counted() {
    let (out, _) = run("morsel-lines", &["--json"], 0);
    let got: Value = serde_json::from_str(&out).unwrap();
    schema::check("lab", &got);
    let mut entries = got["results"].as_array().unwrap().iter();
    let memfd = entries.find(|it| it["variant"] == "vanilla" && it["section"] == "memfd");
    let get = |name: &str| {
        let counter = &memfd.unwrap()["counters"][name]["median"];
        counter.as_f64().unwrap_or_else(|| panic!("{name}"))
    };
    // Each page is counted in the file, and all CPUs insert into one tree.
    assert!(get("lines_shared") > 5.0);
    assert!(get("lines_shared_stores") > 5.0 * get("note_touched_pages"));
    assert!(get("lines_moved") > 0.0 && get("lines_moved") < get("lines_shared_stores"));
    assert!(get("lines_moved_64") <= get("lines_shared"));
}

/// Returns a counter of each policy of a section; events that did not occur have no counter.
fn by_policy(got: &Value, section: &str, counter: &str) -> Vec<(String, f64)> {
    let entries = got["results"].as_array().unwrap().iter();
    entries
        .filter(|entry| entry["section"] == section)
        .map(|entry| {
            let name = entry["policy"].as_str().unwrap();
            let value = &entry["counters"][counter]["median"];
            (name.to_owned(), value.as_f64().unwrap_or(0.0))
        })
        .collect()
}

#[test]
#[ignore = "boots two kernels: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn tails_of_faults_are_compared_at_one_place() {
    let (out, _) = run("fault-tail", &["--json"], 0);
    let got: Value = serde_json::from_str(&out).unwrap();
    schema::check("lab", &got);
    let tails = by_policy(&got, "main", "fault_instr_tail");
    let names: Vec<&str> = tails.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        ["never", "always", "always-defrag", "madvise", "econ"]
    );
    let most = by_policy(&got, "main", "fault_instr_max");
    for ((name, tail), (_, most)) in tails.iter().zip(&most) {
        assert!(0.0 < *tail && tail <= most, "{name}: {tail} of {most}");
    }
    // Only always-defrag compacts in a fault; econ never does. In one run of the short form the
    // longest fault of any policy can be one that waits for reclaim, so tails are not compared here.
    let stalls = by_policy(&got, "main", "vmstat_compact_stall");
    assert!(stalls[2].1 > 0.0 && stalls[4].1 == 0.0, "{stalls:?}");
}

#[test]
#[ignore = "boots two kernels: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn a_workload_is_compared_with_the_best_stock_policy() {
    let (out, _) = run("econ-throughput", &["--json"], 0);
    let got: Value = serde_json::from_str(&out).unwrap();
    schema::check("lab", &got);
    let workloads = got["workloads"].as_array().unwrap();
    let find = |name: &str, fragmented: bool| {
        let is = |it: &&Value| it["name"] == name && it["fragmented"] == fragmented;
        workloads
            .iter()
            .find(is)
            .unwrap_or_else(|| panic!("{name}"))
    };
    for name in [
        "xz",
        "sparse",
        "anneal",
        "simplex",
        "redis",
        "memcached",
        "mix",
    ] {
        for fragmented in [false, true] {
            let cost = &find(name, fragmented)["relative_cost"];
            assert!(cost["median"].as_f64().unwrap() > 0.0, "{name}: {cost}");
        }
    }
    assert_eq!(find("anneal", false)["best_stock"], "always");
    // Only the profile distinguishes these.
    let huge = |section: &str| -> f64 {
        let found = by_policy(&got, section, "vmstat_thp_fault_alloc");
        found.iter().find(|(name, _)| name == "econ").unwrap().1
    };
    assert!(huge("whole-anneal") >= 5.0);
}

#[test]
fn a_policy_that_is_for_no_kernel_of_a_run_is_named() {
    let more = ["--variant", "vanilla", "--policy", "econ"];
    let (_, err) = run("fault-tail", &more, 2);
    assert!(err.contains("econ: policy of fault-tail"), "{err}");
    assert!(err.contains("tollfree"), "{err}");
}

#[test]
#[ignore = "unpacks a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn a_version_that_is_not_named_is_tried_with_a_warning() {
    const PATCH: &str =
        "--- a/mm/rmap.c\n+++ b/mm/rmap.c\n@@ -1,2 +1,2 @@\n-no such line\n+x\n y\n";
    let checkout = TempDir::new().unwrap();
    let kernel = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernel");
    let copied = std::process::Command::new("cp")
        .arg("-r")
        .args([&kernel, checkout.path()])
        .status();
    assert!(copied.unwrap().success());
    fs::write(checkout.path().join("kernel/BASE"), "6.12.1-1\n").unwrap();
    fs::write(checkout.path().join("mine.patch"), PATCH).unwrap();
    fs::write(checkout.path().join("series"), "mine.patch\n").unwrap();
    let assert = Command::new(env!("CARGO_BIN_EXE_toll-lab"))
        .args(["kernel", "./series"])
        .current_dir(checkout.path())
        .assert()
        .code(3);
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(said.contains("kernel/BASE names 6.12.1-1"), "{said}");
    assert!(
        said.contains("mine.patch: does not apply to Linux 6.12."),
        "{said}"
    );
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree kernel calibrate`: costs of this machine, and fixture kernels that load them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use assert_cmd::assert::Assert;
use assert_cmd::prelude::*;
use serde_json::Value;
use toll_model::kernel_costs::{self, Cost};
use toll_testkit::{Directory, output, schema};

const TWO: &str = "mm_costs 1\nfault 11\nsplit 22 # measured\nend 2\n";

/// A kernel with three costs, one of them unknown to this build.
struct Kernel(Directory);

impl Kernel {
    fn new() -> Kernel {
        let directory = Directory::with(&[
            ("sys/kernel/mm/econ/mode", "on\n"),
            ("sys/kernel/mm/econ/costs/fault", "1300\n"),
            ("sys/kernel/mm/econ/costs/split", "60000\n"),
            ("sys/kernel/mm/econ/costs/teleport", "7\n"),
            ("sys/kernel/mm/econ/costs/frozen", "0\n"),
            (
                "sys/kernel/mm/econ/costs/samples",
                "fault 900 1500 64\ncompact_block 1234567 2000000 16\nsplit 5 5 1\n",
            ),
        ]);
        Kernel(directory)
    }

    fn costs(&self) -> PathBuf {
        self.0.path("sys/kernel/mm/econ/costs")
    }

    fn has(&self, name: &str) -> String {
        let text = fs::read_to_string(self.costs().join(name)).unwrap();
        text.trim().to_owned()
    }

    /// A file next to the fixture kernel.
    fn file(&self, text: &str) -> PathBuf {
        self.0.write("some.costs", text)
    }

    fn load(&self, preset: &Path, more: &[&str]) -> Assert {
        let mut command = calibrate(&self.0, &["--load"]);
        command.arg("--preset").arg(preset).args(more).assert()
    }
}

fn calibrate(machine: &Directory, arguments: &[&str]) -> Command {
    machine.as_machine(&[&["kernel", "calibrate"], arguments].concat())
}

fn stderr(assert: &Assert) -> String {
    output::stderr(assert.get_output())
}

fn stdout(assert: &Assert) -> String {
    output::stdout(assert.get_output())
}

#[test]
fn a_measured_file_is_read_again_and_says_where_each_cost_comes_from() {
    let directory = Directory::empty();
    let path = directory.path("here.costs");
    let arguments = ["--within", "1s", "-o", path.to_str().unwrap()];
    let done = calibrate(&directory, &arguments).assert().success();
    let text = fs::read_to_string(&path).unwrap();
    assert!(stdout(&done).starts_with(&text), "{}", stdout(&done));
    let costs = kernel_costs::parse(text.as_bytes()).unwrap();
    let shipped = kernel_costs::shipped("epyc").unwrap();
    let names = |costs: &[Cost]| costs.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&costs), names(&shipped));
    for (cost, known) in costs.iter().zip(&shipped) {
        match cost.source.starts_with("measured: ") {
            true => assert!((1..1_000_000_000).contains(&cost.ns), "{cost:?}"),
            false => assert_eq!(
                (cost.ns, cost.source.contains(&known.source)),
                (known.ns, true)
            ),
        }
    }
    // No interface makes the kernel compact a single block.
    let compact = costs
        .iter()
        .find(|cost| cost.name == "compact_block")
        .unwrap();
    assert!(compact.source.starts_with("not measured: "), "{compact:?}");
}

#[test]
fn what_the_kernel_knows_better_is_taken_from_it() {
    let kernel = Kernel::new();
    let arguments = ["--within", "1ns", "--json"];
    let done = calibrate(&kernel.0, &arguments).assert().success();
    let report = schema::json("kernel-costs", done.get_output());
    let from: BTreeMap<&str, (&str, u64)> = report["costs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            (
                it["name"].as_str().unwrap(),
                (it["from"].as_str().unwrap(), it["ns"].as_u64().unwrap()),
            )
        })
        .collect();
    assert_eq!(from["fault"], ("kernel-measured", 900));
    assert_eq!(from["compact_block"], ("kernel-measured", 1_234_567));
    // One sample is not enough for a cost.
    assert_eq!(from["split"], ("preset", 60_000));
    assert_eq!(from["teleport"], ("kernel", 7));
    assert_eq!(
        (&report["loaded"], &report["frozen"]),
        (&Value::Bool(false), &Value::Bool(false))
    );
    assert_eq!(
        kernel.has("split"),
        "60000",
        "nothing was asked to be written"
    );
}

#[test]
fn a_preset_is_loaded_and_what_it_leaves_out_is_said() {
    let kernel = Kernel::new();
    let done = kernel.load(&kernel.file(TWO), &[]).success();
    assert_eq!(
        (kernel.has("fault"), kernel.has("split")),
        ("11".into(), "22".into())
    );
    assert_eq!(
        (kernel.has("teleport"), kernel.has("frozen")),
        ("7".into(), "0".into())
    );
    assert!(
        stderr(&done).contains("teleport keeps the kernel's value"),
        "{}",
        stderr(&done)
    );
    assert!(
        stderr(&done).contains("the kernel keeps measuring"),
        "{}",
        stderr(&done)
    );
    let done = kernel
        .load(&kernel.file(TWO), &["--freeze", "--json"])
        .success();
    let report = schema::json("kernel-costs", done.get_output());
    assert_eq!(
        (&report["loaded"], &report["frozen"]),
        (&Value::Bool(true), &Value::Bool(true))
    );
    assert_eq!(kernel.has("frozen"), "1");
}

#[test]
fn a_file_with_one_wrong_line_changes_nothing() {
    let kernel = Kernel::new();
    for (text, why) in [
        (
            "mm_costs 1\nfault 11\nsplit many\nend 2\n",
            "line 3: \"many\" is no number",
        ),
        (
            "mm_costs 1\nfault 11\nwarp 3\nend 2\n",
            "line 3: this kernel has no cost warp",
        ),
        ("mm_costs 1\nfault 11\nsplit 22\n", "the end, is missing"),
        ("mm_profile 1\nend 0\n", "does not begin with `mm_costs 1`"),
    ] {
        let done = kernel.load(&kernel.file(text), &["--freeze"]).code(3);
        let said = stderr(&done);
        assert!(said.contains("some.costs") && said.contains(why), "{said}");
        assert_eq!(
            (kernel.has("fault"), kernel.has("frozen")),
            ("1300".into(), "0".into())
        );
    }
}

/// A read-only file, after others in the order of the preset.
#[test]
fn a_cost_that_is_refused_takes_back_those_before_it() {
    let kernel = Kernel::new();
    let refuses = kernel.costs().join("teleport");
    fs::remove_file(&refuses).unwrap();
    // Read-only even for root.
    symlink("/proc/sys/kernel/ngroups_max", &refuses).unwrap();
    let file = kernel.file("mm_costs 1\nfault 11\nsplit 22\nteleport 33\nend 3\n");
    let done = kernel.load(&file, &["--freeze"]).code(1);
    let said = stderr(&done);
    assert!(said.contains("costs/teleport: cannot be written"), "{said}");
    assert!(!said.contains("nor could"), "{said}");
    assert_eq!(
        (kernel.has("fault"), kernel.has("split")),
        ("1300".into(), "60000".into())
    );
    assert_eq!(kernel.has("frozen"), "0");
}

#[test]
fn another_kernel_is_4_and_no_preset_is_1() {
    let directory = Directory::empty();
    let preset = |arguments: &[&str]| calibrate(&directory, arguments).assert();
    let done = preset(&["--preset", "epyc", "--load"]).code(4);
    let said = "tollfree: /sys/kernel/mm/econ: not found: this kernel has no econ (CONFIG_ECON)\n";
    assert_eq!(stderr(&done), said);
    let done = preset(&["--preset", "nothing"]).code(1);
    let said = stderr(&done);
    assert!(said.contains("nothing") && said.contains("epyc"), "{said}");
    for usage in [
        &["kernel", "calibrate", "--freeze"][..],
        &["calibrate", "--load"],
    ] {
        directory.tollfree(usage).assert().code(2);
    }
}

/// The preset contains the kernel's initial costs: mm/econ/model.c, by the names of
/// mm/econ/sysfs.c.
#[test]
fn the_preset_is_what_the_kernel_has_before_it_has_measured() {
    let econ = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernel/tree/mm/econ");
    let read = |name: &str| fs::read_to_string(econ.join(name)).unwrap();
    let entries = |text: &str, from: &str| -> BTreeMap<String, String> {
        let table = text.split_once(from).unwrap().1;
        let entry = |line: &str| {
            let (symbol, value) = line.trim().strip_prefix("[ECON_")?.split_once("] = ")?;
            let value = value.trim_end_matches(',').trim_matches('"');
            Some((symbol.to_owned(), value.to_owned()))
        };
        table
            .split_once("};")
            .unwrap()
            .0
            .lines()
            .filter_map(entry)
            .collect()
    };
    let names = entries(&read("sysfs.c"), "econ_cost_names[ECON_COSTS] = {");
    let usual = entries(&read("model.c"), "econ_default_costs = {");
    let kernel: BTreeMap<&str, u64> = usual
        .iter()
        .map(|(symbol, ns)| (names[symbol].as_str(), ns.parse().unwrap()))
        .collect();
    let shipped = kernel_costs::shipped("epyc").unwrap();
    let preset: BTreeMap<&str, u64> = shipped.iter().map(|it| (it.name.as_str(), it.ns)).collect();
    assert!(kernel.len() >= 8, "{kernel:?}");
    assert_eq!(preset, kernel);
}

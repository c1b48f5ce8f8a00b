// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

const GOOD: &str = r#"
description = "d"
stands_for = "s"
failure = "f"
first_touch = "t"
guest = ["stride"]
[machine]
cpus = 2
memory_mib = 512
[[policy]]
name = "never"
set = { "/sys/kernel/mm/transparent_hugepage/enabled" = "never" }
[short]
within = 20
[[short.job]]
name = "main"
run = "stride main 512 4k read 10"
[full]
within = 1200
runs = 5
machine = { cpus = 4, memory_mib = 1024, icount = true }
[[full.job]]
name = "main"
run = "stride main 512 4k read 1000"
"#;

fn problem(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    Scenario::parse(&GOOD.replacen(from, to, 1)).unwrap_err()
}

#[test]
fn forms_may_have_a_machine_of_their_own() {
    let scenario = Scenario::parse(GOOD).unwrap();
    assert_eq!(scenario.machine(Size::Short), Machine::plain(2, 512));
    assert!(scenario.machine(Size::Full).icount);
    assert_eq!(scenario.form(Size::Short).runs, 1);
    assert_eq!(scenario.form(Size::Full).runs, 5);
}

#[test]
fn crashes_name_a_known_variant() {
    let crashes = |variant: &str| {
        let line = format!(
            "crashes = {{ variant = {variant:?}, states = 5, operations = 4, power_cuts = 3 }}"
        );
        GOOD.replacen("within = 20", &format!("within = 20\n{line}"), 1)
    };
    let scenario = Scenario::parse(&crashes("tollfree")).unwrap();
    let found = scenario.form(Size::Short).crashes.as_ref().unwrap();
    assert_eq!((found.states, found.power_cuts), (5, 3));
    assert!(scenario.form(Size::Full).crashes.is_none());
    let why = Scenario::parse(&crashes("patched")).unwrap_err();
    assert!(
        why.starts_with("short: crashes: patched: no such variant"),
        "{why}"
    );
}

#[test]
fn without_policies_there_is_the_default() {
    let text: String = GOOD
        .lines()
        .filter(|line| !line.contains("policy") && !line.contains("never"))
        .map(|line| format!("{line}\n"))
        .collect();
    let scenario = Scenario::parse(&text).unwrap();
    assert_eq!(scenario.policies[0].name, "default");
}

#[test]
fn a_job_may_need_a_file_system() {
    let needing = GOOD.replacen(
        "name = \"main\"",
        "name = \"main\"\nneeds = \"morselfs\"",
        1,
    );
    let scenario = Scenario::parse(&needing).unwrap();
    assert_eq!(
        scenario.short.jobs[0].line(),
        "grep -qw morselfs /proc/filesystems || exit 0; stride main 512 4k read 10"
    );
    assert!(scenario.full.jobs[0].line().starts_with("stride"));
}

#[test]
fn without_variants_it_is_the_stock_kernels() {
    assert_eq!(Scenario::parse(GOOD).unwrap().variants, ["vanilla"]);
    let both = GOOD.replacen("guest", "variants = [\"vanilla\", \"tollfree\"]\nguest", 1);
    assert_eq!(Scenario::parse(&both).unwrap().variants.len(), 2);
}

#[test]
fn a_policy_may_be_for_some_variants() {
    let bound = GOOD.replacen(
        "name = \"never\"",
        "name = \"never\"\nvariants = [\"vanilla\"]",
        1,
    );
    let scenario = Scenario::parse(&bound).unwrap();
    assert!(scenario.policies[0].is_for("vanilla"));
    assert!(!scenario.policies[0].is_for("tollfree"));
    let free = Scenario::parse(GOOD).unwrap();
    assert!(free.policies[0].is_for("tollfree"));
    assert!(free.policies[0].profiles);
}

const PROFILES: &str = r#"
[[profile]]
name = "small"
run = "stride main 8 4k read 10"
baseline = "1s"
[[profile]]
name = "large"
input = "gen text 1M text"
run = "stride main 64 4k read 10"
baseline = "1s"
load = "sleep 1"
"#;

#[test]
fn profiles_are_those_that_a_form_names() {
    let text = GOOD.replacen("\"stride main 512", "\"with small stride main 512", 1);
    let scenario = Scenario::parse(&(text + PROFILES)).unwrap();
    let names = |size| -> Vec<String> {
        let of = scenario.profiles(size).into_iter();
        of.map(|it| it.name.clone()).collect()
    };
    assert_eq!(names(Size::Short), ["small"]);
    assert!(names(Size::Full).is_empty());
    assert_eq!(scenario.line_of("with small "), 17);
}

#[test]
fn what_is_named_must_be_there() {
    let of = |text: String| Scenario::parse(&text).unwrap_err();
    let with = GOOD.replacen("\"stride main 512", "\"with none stride main 512", 1);
    let why = of(with + PROFILES);
    assert_eq!(why, "short: line 17: with none: no such profile");
    let twice = of(GOOD.to_owned()
        + PROFILES
        + "[[profile]]\nname = \"small\"\nrun = \"x\"\nbaseline = \"1s\"\n");
    assert!(twice.contains("profile small: is defined twice"), "{twice}");
    let empty =
        of(GOOD.to_owned() + "[[profile]]\nname = \"none\"\nrun = \"\"\nbaseline = \"1s\"\n");
    assert!(empty.contains("profile none: run"), "{empty}");
    assert!(problem("guest", "tail = \"econ\"\nguest").contains("tail: econ"));
    let workloads = "workloads = { ours = \"never\", stock = [\"x\"] }\nguest";
    assert!(problem("guest", workloads).contains("workloads: x"));
    let alone = "workloads = { ours = \"never\", stock = [] }\nguest";
    assert!(problem("guest", alone).contains("stock: one is required"));
}

#[test]
fn what_no_scenario_can_say_is_named() {
    assert!(problem("runs = 5", "rnus = 5").contains("rnus"));
    assert!(problem("cpus = 2", "cpus = 20").contains("20 CPUs"));
    assert!(problem("name = \"never\"", "name = \"Ne ver\"").contains("Ne ver"));
    assert!(problem("within = 20", "within = 0").contains("short"));
    assert!(problem("failure = \"f\"\n", "").contains("failure"));
    assert!(problem("guest", "variants = []\nguest").contains("variants"));
    let twice = "variants = [\"a\", \"a\"]\nguest";
    assert!(problem("guest", twice).contains("variants a: is defined twice"));
    assert!(problem("guest", "lines = true\nguest").contains("full: lines"));
    let needs = "needs = \"; reboot\"\nrun = \"stride";
    assert!(problem("run = \"stride", needs).contains("; reboot"));
    assert!(problem("guest", "sizes = { base = \"a\" }\nguest").contains("hugetlb"));
    let two = "[[short.job]]\nname = \"main\"\nrun = \"x\"\n[full]";
    assert!(problem("[full]", two).contains("job main: is defined twice"));
}

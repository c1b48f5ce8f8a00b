// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::scenario::{Scenario, Size};
use crate::workspace::Workspace;

const GOOD: &str = r#"
description = "d"
stands_for = "s"
failure = "f"
subject = "econ"
first_touch = "t"
[machine]
cpus = 2
memory_mib = 512
[[policy]]
name = "never"
variants = ["vanilla"]
[[policy]]
name = "econ"
variants = ["tollfree"]
[short]
within = 20
[[short.job]]
name = "main"
run = "true"
[full]
within = 20
[[full.job]]
name = "main"
run = "true"
[[goal]]
name = "work"
metric = "modelled_ns"
bound = "relative_cost <= 1.02"
sections = ["*-xz"]
ours = { policy = "econ" }
base = { policy = "never" }
[[full.goal]]
name = "walks"
metric = "walks"
bound = "value <= 5"
[[table]]
title = "Work"
row = [{ policy = "econ" }]
column = [{ name = "work", metric = "modelled_ns" }]
"#;

fn parsed(from: &str, to: &str) -> Result<Scenario, String> {
    assert!(GOOD.contains(from), "{from}");
    Scenario::parse(&GOOD.replacen(from, to, 1))
}

fn problem(from: &str, to: &str) -> String {
    parsed(from, to).unwrap_err()
}

#[test]
fn goals_are_those_of_the_scenario_and_of_the_form() {
    let scenario = parsed("cpus", "cpus").unwrap();
    let names = |size| -> Vec<&str> { scenario.goals(size).map(|it| it.name.as_str()).collect() };
    assert_eq!(names(Size::Short), ["work"]);
    assert_eq!(names(Size::Full), ["work", "walks"]);
    assert_eq!(
        scenario.compared_variants(Size::Short),
        ["vanilla", "tollfree"]
    );
    let alone = "value <= 5\"\nours = { variant = \"tollfree-debug\" }";
    let scenario = parsed("value <= 5\"", alone).unwrap();
    let expected = ["vanilla", "tollfree", "tollfree-debug"];
    assert_eq!(scenario.compared_variants(Size::Full), expected);
}

#[test]
fn goals_and_tables_do_not_change_the_text_of_the_runs() {
    let text = parsed("cpus", "cpus").unwrap().text_of_runs();
    assert_eq!(parsed("<= 1.02", "<= 1.03").unwrap().text_of_runs(), text);
    assert_eq!(
        parsed("title = \"Work\"", "title = \"x\"")
            .unwrap()
            .text_of_runs(),
        text
    );
    assert_ne!(parsed("cpus = 2", "cpus = 1").unwrap().text_of_runs(), text);
    assert!(text.ends_with("run = \"true\"\n") && !text.contains("goal"));
}

#[test]
fn a_section_may_stand_for_several() {
    assert_eq!(captured("main", "main"), Some(""));
    assert_eq!(captured("main", "mains"), None);
    assert_eq!(captured("*", "main"), Some("main"));
    assert_eq!(captured("sealed-*m", "sealed-16m"), Some("16"));
    assert_eq!(captured("sealed-*m", "sealed-1g"), None);
    let several = "base = { policy = \"never\", section = [\"*-a\", \"*-b\"] }";
    assert!(parsed("base = { policy = \"never\" }", several).is_ok());
}

#[test]
fn what_a_goal_names_must_be_known() {
    assert!(
        problem("modelled_ns\"\nbound", "modelled\"\nbound").contains("modelled: no such counter")
    );
    assert!(problem("\"econ\" }\nbase", "\"none\" }\nbase").contains("none: is not one of"));
    let why = problem(
        "base = { policy = \"never\" }",
        "base = { variant = \"tollfree\" }\nmin_runs = 0",
    );
    assert!(why.contains("goal \"work\": min_runs"), "{why}");
    let base = "base = { variant = \"tollfree\", policy = \"never\" }";
    let why = problem("base = { policy = \"never\" }", base);
    assert!(
        why.contains("never: is not a policy of the variant tollfree"),
        "{why}"
    );
    // The base has our policy unless it names another.
    let why = problem("base = { policy = \"never\" }", "");
    assert!(
        why.contains("econ: is not a policy of the variant vanilla"),
        "{why}"
    );
    let why = problem(
        "base = { policy = \"never\" }",
        "base = { variant = \"patched\" }",
    );
    assert!(why.contains("patched: no such variant"), "{why}");
    let best = "base = { best_of = [\"never\", \"none\"] }";
    assert!(problem("base = { policy = \"never\" }", best).contains("none: is not one of"));
    assert!(
        problem(
            "row = [{ policy = \"econ\" }]",
            "row = [{ policy = \"x\" }]"
        )
        .contains("table \"Work\": x")
    );
    assert!(problem("subject = \"econ\"\n", "").contains("subject: is required"));
    assert!(problem("subject = \"econ\"", "subject = \"x\"").contains("subject"));
    assert!(problem("name = \"walks\"", "name = \"work\"").contains("goal work: is defined twice"));
}

#[test]
fn a_goal_that_makes_no_sense_is_refused() {
    assert!(problem("<= 1.02", "<= -1").contains("cannot be met"));
    let twofold = "base = { policy = \"never\", best_of = [\"never\"] }";
    assert!(problem("base = { policy = \"never\" }", twofold).contains("exclude each other"));
    let star = "sections = [\"main\"]\nours = { policy = \"econ\", section = \"a-*\" }";
    let from = "sections = [\"*-xz\"]\nours = { policy = \"econ\" }";
    assert!(problem(from, star).contains("a * needs one"));
    assert!(problem("[\"*-xz\"]", "[\"*-*\"]").contains("more than one *"));
    assert!(problem("[\"*-xz\"]", "[]").contains("must not be empty"));
    assert!(problem("relative_cost <= 1.02", "saved_share >= 90 %").contains("requires best"));
    let best = "base = { policy = \"never\" }\nbest = { policy = \"never\" }";
    assert!(problem("base = { policy = \"never\" }", best).contains("only for saved_share"));
    assert!(problem("relative_cost <= 1.02", "value <= 5").contains("base is not used"));
    assert!(
        problem(
            "column = [{ name = \"work\", metric = \"modelled_ns\" }]",
            "column = []"
        )
        .contains("table")
    );
    assert!(problem("name = \"walks\"", "name = \"walks\"\nlimit = 5").contains("limit"));
}

#[test]
fn every_scenario_of_the_lab_is_valid() {
    let workspace = Workspace::find().unwrap();
    let all = Scenario::all(&workspace).unwrap();
    for subject in [Subject::Luf, Subject::Econ, Subject::Morsel] {
        let of_subject = all.iter().filter(|it| it.subject == Some(subject));
        assert!(of_subject.count() >= 8, "{}", subject.name());
    }
    assert!(all.iter().any(|it| !it.listed) && all.iter().any(|it| it.listed));
}

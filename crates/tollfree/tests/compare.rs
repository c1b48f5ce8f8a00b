// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree compare` and `tollfree tune`, end to end, with small programs in C. Timing is tested
//! with a simulated clock in the crate's unit tests; these tests hold at any speed.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;
use toll_testkit::compiler::compile;
use toll_testkit::machine::thp_is_madvise;
use toll_testkit::output::{json, stderr};
use toll_testkit::process::{interrupt, is_running, wait_until};
use toll_testkit::{Directory, schema};

/// A workload that prints the same rate each time.
const RATE: [&str; 4] = [
    "--workload",
    "echo 1000 requests per second",
    "--metric",
    "([0-9]+) requests",
];

/// A directory with the compiled test programs and a plan that makes nothing huge.
struct Place(Directory);

impl Place {
    fn new() -> Place {
        Place(Directory::with(&[("none.txt", "")]))
    }

    /// Compiles tests/data/NAME.c.
    fn program(&self, name: &str) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/{name}.c"));
        let program = self.path(name);
        assert!(compile(&source, &program, &["-O2", "-g"]));
        program
    }

    /// A server that is ready when the file `ready` is there.
    fn server(&self) -> PathBuf {
        self.executable("server", "#!/bin/sh\ntouch ready\nexec sleep 600\n")
    }

    fn compare(&self, more: &[&str], program: &Path, arguments: &[&str]) -> Output {
        let compare = ["--json", "compare", "--plan", "none.txt"];
        let mut command = self.tollfree(&[&compare, more, &["--"]].concat());
        command.arg(program).args(arguments).output().unwrap()
    }

    fn tune(&self, more: &[&str], program: &Path, arguments: &[&str]) -> Output {
        let mut command = self.tollfree(&[&["--json", "tune"], more, &["--"]].concat());
        command.arg(program).args(arguments).output().unwrap()
    }
}

impl Deref for Place {
    type Target = Directory;

    fn deref(&self) -> &Directory {
        &self.0
    }
}

#[test]
fn pairs_variants_and_schema() {
    let place = Place::new();
    let output = place.compare(&["-n", "2"], &place.program("small"), &["1000"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let got = schema::json("compare", &output);
    assert_eq!(got["pairs"], 2);
    assert_eq!(got["output"]["state"], "same");
    let names: Vec<&str> = got["variants"]
        .as_array()
        .unwrap()
        .iter()
        .map(|variant| variant["name"].as_str().unwrap())
        .collect();
    assert_eq!(names[..3], ["none", "plan", "all"]);
    assert_eq!(
        got["variants"][0]["runs"].as_array().unwrap().len(),
        3,
        "the first warms up"
    );
}

/// A sample takes longer with more memory in 4 KiB pages, so counted runs have none.
#[test]
fn huge_memory_is_sampled_in_the_first_round_alone() {
    let place = Place::new();
    let output = place.compare(&["-n", "2"], Path::new("sleep"), &["0.2"]);
    let got = schema::json("compare", &output);
    for variant in got["variants"].as_array().unwrap() {
        let runs = variant["runs"].as_array().unwrap();
        let samples = |run: &Value| run["huge_samples"].as_u64().unwrap();
        assert!(samples(&runs[0]) > 0, "{variant}");
        assert!(runs[1..].iter().all(|run| samples(run) == 0), "{variant}");
        assert_eq!(variant["median"]["huge_samples"], samples(&runs[0]));
    }
}

/// Collapsing a growing heap delays the program; glibc's tunable makes it huge without delay.
#[test]
fn everything_huge_has_glibc_advise_its_heap() {
    let place = Place::new();
    let seen = place.path("seen");
    let script = "echo \"[$GLIBC_TUNABLES]\" >> \"$0\"";
    let arguments = ["-c", script, seen.to_str().unwrap()];
    let output = place.compare(&["-n", "1"], Path::new("sh"), &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let seen = fs::read_to_string(seen).unwrap();
    let runs = |line: &str| seen.lines().filter(|seen| *seen == line).count();
    let (small, huge) = (runs("[]"), runs("[glibc.malloc.hugetlb=1]"));
    assert!(huge > 0 && small >= huge, "{seen}");
    assert_eq!(small + huge, seen.lines().count());
}

#[test]
fn one_pair_gives_no_interval() {
    let place = Place::new();
    let output = place.compare(&["-n", "1"], &place.program("small"), &["1000"]);
    let got = schema::json("compare", &output);
    assert_eq!(
        (&got["speedup"], &got["verdict"]),
        (&Value::Null, &Value::from("cannot-tell"))
    );
}

#[test]
fn a_failing_status_that_is_always_the_same_is_no_error() {
    let place = Place::new();
    let output = place.compare(&["-n", "1"], &place.program("small"), &["1000", "7"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(json(&output)["status"], 7);
}

#[test]
fn tune_names_a_status_that_no_run_was_without() {
    let place = Place::new();
    let small = place.program("small");
    let arguments = ["tune", "-o", "out", "--"];
    let mut command = place.tollfree(&arguments);
    let output = command.arg(&small).args(["600000000", "7"]).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.contains("the program ends with status 7 in each run"),
        "{text}"
    );
    let kept = place.json("out/tune.json");
    schema::check("tune", &kept);
    assert_eq!(kept["status"], 7);
}

/// The warmed memory follows the program's memory, and does not count as the program's.
#[test]
fn memory_is_warmed_before_runs_unless_it_shall_be_cold() {
    let place = Place::new();
    let chase = place.program("chase");
    let got = schema::json(
        "compare",
        &place.compare(&["-n", "3"], &chase, &["64", "1000"]),
    );
    let warmed = got["warmed_bytes"].as_u64().unwrap();
    let first = got["variants"][0]["runs"][0]["max_rss"].as_u64().unwrap();
    assert!(warmed > 64 << 20, "{warmed}");
    assert!(
        warmed < 2 * first + first / 4 + (144 << 20),
        "{warmed} of {first}"
    );

    let cold = schema::json(
        "compare",
        &place.compare(&["-n", "2", "--cold"], &chase, &["64", "1000"]),
    );
    assert_eq!(cold["warmed_bytes"], 0);
}

#[test]
fn a_status_that_differs_is_an_error() {
    if !thp_is_madvise() {
        return;
    }
    let place = Place::new();
    let output = place.compare(&["-n", "2"], &place.program("odd"), &["exit-huge"]);
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("exit status: 3"),
        "{}",
        stderr(&output)
    );
}

/// Sleeps for half a second if the preload library is loaded, which it is not in the variant
/// "none".
const SLOWER_UNDER_A_PLAN: &str = "sleep 0.05; test -z \"$LD_PRELOAD\" || sleep 0.5";

#[test]
fn a_slow_down_beyond_what_is_allowed_has_its_own_exit_code() {
    let place = Place::new();
    place.write("none.txt", "4194304\n");
    let compare = |percent: &str, script: &str| {
        let options = ["-n", "3", "--fail-if-slower", percent];
        place.compare(&options, Path::new("sh"), &["-c", script])
    };
    let slower = compare("5", SLOWER_UNDER_A_PLAN);
    assert_eq!(slower.status.code(), Some(6), "{}", stderr(&slower));
    assert!(stderr(&slower).contains("slower"), "{}", stderr(&slower));
    let got = schema::json("compare", &slower);
    assert_eq!(
        (&got["verdict"], &got["too_slow"]),
        (&"slower".into(), &true.into())
    );
    assert_eq!(got["allowed_slowdown_percent"], 5.0);

    // Eleven times the time is not 20 times the time.
    let allowed = compare("1900", SLOWER_UNDER_A_PLAN);
    assert_eq!(allowed.status.code(), Some(0), "{}", stderr(&allowed));
    assert_eq!(json(&allowed)["too_slow"], false);
    let without = place.compare(&["-n", "1"], Path::new("sh"), &["-c", "true"]);
    assert_eq!(json(&without)["too_slow"], Value::Null);
}

#[test]
fn a_threshold_needs_a_number_and_an_interval() {
    let place = Place::new();
    for percent in ["-1", "nan", "inf", "five"] {
        let option = format!("--fail-if-slower={percent}");
        let output = place.compare(&["-n", "2", &option], Path::new("true"), &[]);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{percent}: {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains("--fail-if-slower"),
            "{}",
            stderr(&output)
        );
    }
    let output = place.compare(
        &["-n", "1", "--fail-if-slower", "5"],
        Path::new("true"),
        &[],
    );
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("two pairs"), "{}", stderr(&output));
}

#[test]
fn a_crash_is_an_error_that_names_the_signal() {
    let place = Place::new();
    let output = place.compare(&["-n", "1"], &place.program("odd"), &["crash"]);
    assert_eq!(output.status.code(), Some(5));
    assert!(stderr(&output).contains("signal 6"), "{}", stderr(&output));
}

#[test]
fn output_that_varies_by_itself_is_said_and_no_error() {
    let place = Place::new();
    let output = place.compare(&["-n", "2"], &place.program("odd"), &["vary"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let got = schema::json("compare", &output);
    assert_eq!(got["output"]["state"], "varies");
    assert!(
        got["notes"].to_string().contains("stdout differs at byte"),
        "{}",
        got["notes"]
    );
}

#[test]
fn output_that_huge_pages_change_is_a_loud_error() {
    if !thp_is_madvise() {
        return;
    }
    let place = Place::new();
    let odd = place.program("odd");
    let output = place.compare(&["-n", "2"], &odd, &["print-huge"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("OUTPUT DIFFERS in variant all"),
        "{}",
        stderr(&output)
    );
    assert_eq!(json(&output)["output"]["state"], "differs-between-variants");
    let accepted = place.compare(&["-n", "2", "--any-output"], &odd, &["print-huge"]);
    assert!(accepted.status.success(), "{}", stderr(&accepted));
}

#[test]
fn every_run_reads_the_same_stdin() {
    let place = Place::new();
    let odd = place.program("odd");
    let input = vec![b'x'; 100_000];
    fs::write(place.path("input"), &input).unwrap();
    let mut command = place.tollfree(&["--json", "compare", "--plan", "none.txt", "-n", "2", "--"]);
    command
        .arg(&odd)
        .arg("copy")
        .stdin(fs::File::open(place.path("input")).unwrap());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(json(&output)["output"]["state"], "same");
}

#[test]
fn a_run_longer_than_the_limit_ends_at_the_limit() {
    let place = Place::new();
    let odd = place.program("odd");
    let begun = Instant::now();
    let output = place.compare(&["--within", "2s"], &odd, &["sleep", "mark"]);
    assert!(
        begun.elapsed() < Duration::from_secs(60),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--within"), "{}", stderr(&output));
    let target = place.read("mark");
    assert!(!target.is_empty() && !is_running(target.trim()));
}

#[test]
fn a_program_that_is_not_there() {
    let place = Place::new();
    assert_eq!(
        place
            .compare(&[], Path::new("/nowhere/x"), &[])
            .status
            .code(),
        Some(127)
    );
    assert_eq!(
        place.tune(&[], Path::new("/nowhere/x"), &[]).status.code(),
        Some(127)
    );
    let directories = fs::read_dir(place.as_path()).unwrap().count();
    assert_eq!(directories, 1, "nothing is left behind");
}

#[test]
fn a_plan_that_is_none() {
    let place = Place::new();
    place.write("none.txt", "hello");
    let output = place.compare(&[], &place.program("small"), &[]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("none.txt"), "{}", stderr(&output));
}

/// Runs a command on a target that sleeps, sends Ctrl-C, and checks the end of both.
fn interrupted(place: &Place, arguments: &[&str]) -> Output {
    let odd = place.program("odd");
    let mut command = place.tollfree(arguments);
    let command = command.arg("--").arg(&odd).args(["sleep", "mark"]);
    let child = command.spawn().unwrap();
    wait_until("the target", || !place.read("mark").is_empty());
    interrupt(child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(!is_running(place.read("mark").trim()));
    output
}

#[test]
fn ctrl_c_ends_the_target_and_compare() {
    let place = Place::new();
    let output = interrupted(&place, &["--json", "compare", "--plan", "none.txt"]);
    let got = schema::json("compare", &output);
    assert_eq!(got["complete"], false);
}

#[test]
fn ctrl_c_keeps_tunes_directory_and_marks_it() {
    let place = Place::new();
    interrupted(&place, &["--json", "tune", "-o", "out"]);
    let kept = place.json("out/tune.json");
    schema::check("tune", &kept);
    assert_eq!(kept["complete"], false);
    assert!(place.path("out/report.html").is_file());
}

#[test]
fn a_small_program_is_told_to_do_nothing_and_its_directory_is_kept() {
    let place = Place::new();
    let small = place.program("small");
    let output = place.tune(&["--within", "1m", "-o", "out"], &small, &["600000000"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let got = schema::json("tune", &output);
    assert_eq!(got["advice"], "do-nothing");
    assert!(
        got["reason"]
            .as_str()
            .unwrap()
            .contains("reach of this CPU's TLB"),
        "{}",
        got["reason"]
    );
    assert_eq!(got["verdict"], Value::Null);
    assert!(place.path("out/report.html").is_file());

    let before = fs::read(place.path("out/tune.json")).unwrap();
    let again = place.tune(&["-o", "out"], &small, &["1000"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(stderr(&again).contains("--force"), "{}", stderr(&again));
    assert_eq!(fs::read(place.path("out/tune.json")).unwrap(), before);
    let forced = place.tune(&["-o", "out", "--force"], &small, &["600000000"]);
    assert!(forced.status.success(), "{}", stderr(&forced));
}

#[test]
fn tune_goes_through_within_its_limit() {
    let place = Place::new();
    let chase = place.program("chase");
    let begun = Instant::now();
    let mut command = place.tollfree(&["--json", "tune", "--within", "20s", "-o", "out", "--"]);
    command.arg(&chase).args(["64", "300000"]);
    let output = command
        .env("XDG_CACHE_HOME", place.path("cache"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        begun.elapsed() < Duration::from_secs(60),
        "{:?}",
        begun.elapsed()
    );
    let got = schema::json("tune", &output);
    let upper_bound = &got["upper_bound"];
    schema::check("compare", upper_bound);
    if thp_is_madvise() {
        let all = upper_bound["variants"]
            .as_array()
            .unwrap()
            .iter()
            .find(|variant| variant["name"] == "all")
            .unwrap();
        let huge = all["median"]["huge_peak"].as_f64();
        assert!(huge.is_none_or(|bytes| bytes >= 32e6), "{all}");
    }
    let apply = got["advice"] == "apply";
    let proven = got["speedup"]["low"].as_f64().is_some_and(|low| low > 1.0)
        || got["permanent"].to_string().contains("\"measured\"");
    assert!(!apply || proven, "{got}");
    assert_eq!(got["status"], 0);
    assert!(got["warmed_bytes"].as_u64().unwrap() > 64 << 20, "{got}");
    assert_eq!(got["within_seconds"], 20.0);
}

#[test]
fn an_earlier_tune_is_gone_on_with() {
    let place = Place::new();
    let chase = place.program("chase");
    let tune = |options: &[&str], arguments: &[&str]| {
        let mut command = place.tollfree(&["--json", "tune", "--within", "12s"]);
        command.args(options).arg("--").arg(&chase).args(arguments);
        let cache = place.path("cache");
        command.env("XDG_CACHE_HOME", cache).output().unwrap()
    };
    let arguments = ["64", "300000"];
    let first = tune(&["-o", "out"], &arguments);
    assert!(first.status.success(), "{}", stderr(&first));
    let first = schema::json("tune", &first);

    // Runs of another program are rejected.
    let other = tune(&["--resume", "out"], &["64", "300001"]);
    assert_eq!(other.status.code(), Some(3), "{}", stderr(&other));
    assert!(
        stderr(&other).contains("another command line"),
        "{}",
        stderr(&other)
    );
    let nothing = tune(&["--resume", "nowhere"], &arguments);
    assert_eq!(nothing.status.code(), Some(2), "{}", stderr(&nothing));
    assert!(
        stderr(&nothing).contains("nowhere/tune.json"),
        "{}",
        stderr(&nothing)
    );

    let second = tune(&["--resume", "out"], &arguments);
    if first["comparison"].is_null() {
        assert_eq!(second.status.code(), Some(3), "{}", stderr(&second));
        return;
    }
    assert!(second.status.success(), "{}", stderr(&second));
    let second = schema::json("tune", &second);
    let runs = |tune: &Value, variant: usize| {
        let runs = tune["comparison"]["variants"][variant]["runs"].as_array();
        runs.unwrap().clone()
    };
    // Rounds that the time limit interrupted are repeated.
    let kept = runs(&first, 0).len().min(runs(&first, 1).len());
    assert_eq!(runs(&second, 0)[..kept], runs(&first, 0)[..kept]);
    assert!(second["seconds"].as_f64() > first["seconds"].as_f64());
    let stored = place.json("out/tune.json");
    assert_eq!(stored["comparison"]["pairs"], second["comparison"]["pairs"]);
}

#[test]
fn a_server_is_measured_by_what_its_workload_prints() {
    let place = Place::new();
    let script = place.server();
    let options = ["--within", "15s", "-o", "out", "--ready", "test -e ready"];
    let output = place.tune(&[&options, &RATE[..]].concat(), &script, &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    let got = schema::json("tune", &output);
    assert_eq!(got["advice"], "do-nothing");
}

#[test]
fn a_plan_for_a_server_is_compared_by_its_workload() {
    let place = Place::new();
    let script = place.server();
    let load = [&["-n", "2", "--ready", "test -e ready"], &RATE[..]].concat();
    let output = place.compare(&load, &script, &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    let got = schema::json("compare", &output);
    assert_eq!(got["speedup"]["median"], 1.0);
    assert_eq!(got["variants"][1]["name"], "plan");
    let alone = place.compare(&["--ready", "true"], &script, &[]);
    assert_eq!(alone.status.code(), Some(2), "{}", stderr(&alone));
}

#[test]
fn the_memory_of_a_server_is_warmed_before_it_starts() {
    let place = Place::new();
    let chase = place.program("chase");
    let load = [&["--within", "40s", "--ready", "sleep 0.3"], &RATE[..]].concat();
    let output = place.tune(&load, &chase, &["64", "1000000000000"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let got = schema::json("tune", &output);
    assert_eq!(got["step"], "upper-bound", "{}", got["reason"]);
    let warmed = got["warmed_bytes"].as_u64().unwrap();
    // A quarter more than the server has, and what is freed ahead of it.
    assert!((128 << 20..320 << 20).contains(&warmed), "{warmed}");
}

#[test]
fn wrong_usage_is_said() {
    let place = Place::new();
    let small = place.program("small");
    for (arguments, part) in [
        (&["--metric", "("][..], "--workload"),
        (&["--workload", "true", "--metric", "("], "--metric"),
        (&["--workload", "true", "--metric", "none"], "capture group"),
        (&["--ready", "true"], "--workload"),
        (&["--within", "soon"], "--within"),
    ] {
        let output = place.tune(arguments, &small, &[]);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains(part),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
    let live = place.run(&["tune", "--pid", "4194304"]);
    assert_eq!(live.status.code(), Some(2), "{}", stderr(&live));
}

#[test]
fn a_live_process_that_is_small_is_left_alone() {
    let place = Place::new();
    let mut sleeper = Command::new("sleep").arg("600").spawn().unwrap();
    let pid = sleeper.id().to_string();
    let arguments = ["--json", "tune", "--pid", &pid, "--for", "1s", "-o", "out"];
    let output = place.run(&arguments);
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let got = schema::json("tune", &output);
    assert_eq!(got["advice"], "do-nothing");
}

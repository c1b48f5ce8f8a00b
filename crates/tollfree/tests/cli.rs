// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line as a whole: help, exit codes, existing files, and files that cannot be written.

use std::fs;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::Duration;

use toll_testkit::Directory;
use toll_testkit::directory::UNABLE;
use toll_testkit::output::{stderr, stdout};
use toll_testkit::process::{interrupt, kill_group, wait_until};

const COMMANDS: [&str; 18] = [
    "tune",
    "doctor",
    "calibrate",
    "record",
    "import",
    "report",
    "plan",
    "run",
    "apply",
    "compare",
    "stat",
    "top",
    "exporter",
    "why",
    "kernel",
    "morsel",
    "completions",
    "man",
];

const KERNEL_COMMANDS: [&str; 5] = ["luf", "explain", "top", "calibrate", "profile"];

/// The command, with its temporary files in this directory as well.
fn tollfree(directory: &Directory, arguments: &[&str]) -> Command {
    let mut command = directory.tollfree(arguments);
    command.env("TMPDIR", directory.as_path());
    command
}

#[test]
fn every_command_has_help_with_an_example() {
    let directory = Directory::empty();
    for command in COMMANDS {
        let output = tollfree(&directory, &[command, "--help"]).output().unwrap();
        assert!(output.status.success(), "{command}");
        let help = stdout(&output);
        assert!(help.contains("Example"), "{command}: {help}");
        assert!(
            help.contains(&format!("tollfree {command}")),
            "{command}: {help}"
        );
    }
    for command in KERNEL_COMMANDS {
        let arguments = ["kernel", command, "--help"];
        let output = tollfree(&directory, &arguments).output().unwrap();
        assert!(output.status.success(), "{command}");
        let help = stdout(&output);
        assert!(help.contains("Example"), "{command}: {help}");
        let example = format!("\n  tollfree kernel {command}");
        assert!(help.contains(&example), "{command}: {help}");
    }
    for (command, part) in [
        ("tune", "The program runs many times"),
        ("compare", "The first pair is a warm-up"),
    ] {
        let output = tollfree(&directory, &[command, "--help"]).output().unwrap();
        assert!(stdout(&output).contains(part), "{command}");
    }
    let output = tollfree(&directory, &["help"]).output().unwrap();
    let help = stdout(&output);
    for command in COMMANDS {
        assert!(help.contains(command), "{help}");
    }
    for code in ["125", "126", "127", "130"] {
        assert!(help.contains(code), "{help}");
    }
}

#[test]
fn wrong_usage_is_2() {
    let directory = Directory::empty();
    let cases: [&[&str]; 8] = [
        &[],
        &["nonsense"],
        &["run"],
        &["run", "--plan", "p", "true"],
        &["run", "--plan", "p"],
        &["record", "-o", "p", "--sample", "2", "--", "true"],
        &["record", "-o", "p", "--only", "nonsense", "--", "true"],
        &["record", "-o", "p", "--source", "guess", "--", "true"],
    ];
    for case in cases {
        let output = tollfree(&directory, case).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{case:?}");
        assert!(!output.stderr.is_empty(), "{case:?}");
        assert!(output.stdout.is_empty(), "{case:?}");
    }
}

/// The program's own arguments would be parsed as tollfree's.
#[test]
fn a_program_without_dashes_before_it_is_told_of_them() {
    let directory = Directory::empty();
    for (wrong, right) in [
        (
            &["tune", "python3", "big.py"][..],
            "tollfree tune -- python3 big.py",
        ),
        (
            &["tune", "--within", "5m", "./app", "-v"],
            "tollfree tune --within 5m -- ./app -v",
        ),
        (
            &["run", "--plan", "p", "app"],
            "tollfree run --plan p -- app",
        ),
    ] {
        let output = tollfree(&directory, wrong).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(right), "{}", stderr(&output));
    }
    let output = tollfree(&directory, &["doctor", "x"]).output().unwrap();
    assert!(
        !stderr(&output).contains("the program follows"),
        "{}",
        stderr(&output)
    );
    let output = tollfree(&directory, &["tune"]).output().unwrap();
    assert!(
        stderr(&output).contains("tollfree tune [OPTIONS] --pid <PID>"),
        "{}",
        stderr(&output)
    );
}

/// On a stock kernel, the error of `explain` refers to `tune`.
#[test]
fn explain_names_what_answers_on_a_stock_kernel() {
    if Path::new("/sys/kernel/mm/econ").exists() {
        return;
    }
    let directory = Directory::empty();
    let output = tollfree(&directory, &["kernel", "explain", "1"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(
        stderr(&output).contains("tollfree tune --pid 1"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn old_names_name_the_new_ones() {
    let directory = Directory::empty();
    for (old, new) in [
        ("luf", "kernel luf"),
        ("explain 1", "kernel explain"),
        ("calibrate --kernel --load", "kernel calibrate"),
        ("plan p.json --kernel -o q", "kernel profile"),
    ] {
        let words: Vec<&str> = old.split(' ').collect();
        let output = tollfree(&directory, &words).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{old}");
        let said = stderr(&output);
        assert!(
            said.ends_with(&format!("tollfree: it is `tollfree {new}` now\n")),
            "{old}: {said}"
        );
    }
}

#[test]
fn completions_know_the_commands() {
    let directory = Directory::empty();
    for shell in ["bash", "zsh", "fish"] {
        let output = tollfree(&directory, &["completions", shell])
            .output()
            .unwrap();
        assert!(output.status.success());
        for command in COMMANDS {
            assert!(stdout(&output).contains(command), "{shell}: {command}");
        }
    }
}

#[test]
fn manual_pages_are_written() {
    let directory = Directory::empty();
    let output = tollfree(&directory, &["man", "."]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let main = directory.read("tollfree.1");
    assert!(main.contains("Exit codes"), "{main}");
    for command in COMMANDS {
        let page = directory.read(format!("tollfree-{command}.1"));
        assert!(page.contains("Example"));
    }
    let output = tollfree(&directory, &["man", "./nowhere"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("./nowhere"));
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let directory = Directory::empty();
    let mut command = tollfree(&directory, &["completions", "bash"]);
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let mut said = String::new();
    let mut stderr = child.stderr.take().unwrap();
    stderr.read_to_string(&mut said).unwrap();
    child.wait().unwrap();
    assert_eq!(said, "");
}

/// A missing file, and files that are not plans.
#[test]
fn wrong_plans_are_named_and_nothing_runs() {
    let directory = Directory::empty();
    let cases = [
        ("foreign", &b"\x7fELF and so on"[..]),
        ("toml", b"title = \"no plan\"\n"),
        (
            "truncated",
            b"format = \"tollfree-plan\"\nversion = 1\n[program]\npath = \"/bin",
        ),
        ("newer", b"format = \"tollfree-plan\"\nversion = 999\n"),
        ("list", b"2097152\nnonsense\n"),
        ("json", b"{\"format\": \"tollfree-profile\"}"),
    ];
    for (name, content) in cases {
        directory.write(name, content);
    }
    let names = cases.map(|(name, _)| name);
    for name in names.iter().chain(&["missing"]) {
        for command in [&["run"][..], &["record", "-o", "profile"]] {
            let mut arguments = command.to_vec();
            arguments.extend(["--plan", name, "--", "touch", "ran"]);
            let output = tollfree(&directory, &arguments).output().unwrap();
            assert_eq!(
                output.status.code(),
                Some(125),
                "{arguments:?}: {}",
                stderr(&output)
            );
            assert!(stderr(&output).starts_with("tollfree: "));
            assert!(stderr(&output).contains(name), "{}", stderr(&output));
            assert!(!directory.path("ran").exists(), "{arguments:?}");
            assert!(!directory.path("profile").exists(), "{arguments:?}");
        }
    }
}

#[test]
fn hugetlb_is_for_lists() {
    let directory = Directory::empty();
    directory.write("list", "17592186044416\n");
    // No machine has a pool of that size.
    let many: String = (0..1u64 << 17)
        .map(|n| format!("{}\n", (1 << 44) + (n << 21)))
        .collect();
    directory.write("many", many);
    let arguments = ["run", "--hugetlb", "--plan", "many", "--", "touch", "ran"];
    let output = tollfree(&directory, &arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(
        stderr(&output).contains("vm.nr_hugepages="),
        "{}",
        stderr(&output)
    );
    assert!(!directory.path("ran").exists());
}

#[test]
fn a_profile_is_not_overwritten_without_force() {
    let directory = Directory::empty();
    directory.write("profile", "mine");
    let record = [
        "record", "--source", "accessed", "-o", "profile", "--", "touch", "ran",
    ];
    let output = tollfree(&directory, &record).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--force"), "{}", stderr(&output));
    assert!(
        !directory.path("ran").exists(),
        "refused before the program ran"
    );
    assert_eq!(directory.read("profile"), "mine");
}

#[test]
fn an_output_that_cannot_be_written_is_refused_before_the_program_runs() {
    let directory = Directory::empty();
    fs::create_dir(directory.path("sub")).unwrap();
    for path in ["nowhere/profile", "sub", "/proc/profile"] {
        let record = ["record", "-o", path, "--", "touch", "ran"];
        let output = tollfree(&directory, &record).output().unwrap();
        assert!(
            [2, 125].contains(&output.status.code().unwrap()),
            "{path}: {:?}",
            output.status
        );
        assert!(stderr(&output).contains(path), "{}", stderr(&output));
        assert!(!directory.path("ran").exists(), "{path}");
        directory.write("empty", "");
        let run = [
            "run",
            "--plan",
            "empty",
            "--summary",
            path,
            "--",
            "touch",
            "ran",
        ];
        let output = tollfree(&directory, &run).output().unwrap();
        assert!(
            [2, 125].contains(&output.status.code().unwrap()),
            "{path}: {:?}",
            output.status
        );
        assert!(!directory.path("ran").exists(), "{path}");
    }
}

/// Runs a shell line with a full file system at `./full`; `None` if mounting is not allowed.
fn with_full_disk(directory: &Directory, line: &str) -> Option<Output> {
    directory.in_own_mounts(&format!(
        "mkdir full
         mount -t tmpfs -o size=64k none full || exit {UNABLE}
         cat /dev/zero > full/fill 2>/dev/null
         {line}"
    ))
}

#[test]
fn a_full_disk_leaves_no_half_profile() {
    let directory = Directory::empty();
    let line = "$TOLLFREE record --source accessed -o full/profile -- true; echo $?; ls -A full";
    let Some(output) = with_full_disk(&directory, line) else {
        return;
    };
    assert_eq!(stdout(&output), "125\nfill\n", "{}", stderr(&output));
    let errors: Vec<String> = stderr(&output).lines().map(str::to_owned).collect();
    let about: Vec<_> = errors.iter().filter(|l| l.contains("No space")).collect();
    assert_eq!(about.len(), 1, "{errors:?}");
    assert!(about[0].contains("full/profile"), "{errors:?}");
}

#[test]
fn a_full_temporary_directory_is_said_before_the_program_runs() {
    let directory = Directory::empty();
    directory.write("list", "17592186044416\n");
    let line = "TMPDIR=full $TOLLFREE run --plan list -- touch ran; echo $?; ls -A full";
    let Some(output) = with_full_disk(&directory, line) else {
        return;
    };
    assert_eq!(stdout(&output), "125\nfill\n", "{}", stderr(&output));
    assert!(stderr(&output).contains("No space"), "{}", stderr(&output));
    assert!(!directory.path("ran").exists());
}

#[test]
fn a_summary_that_does_not_fit_does_not_hide_the_status() {
    let directory = Directory::empty();
    directory.write("list", "");
    let line = "$TOLLFREE run --plan list --summary full/s -- sh -c 'exit 9'; echo $?; ls -A full";
    let Some(output) = with_full_disk(&directory, line) else {
        return;
    };
    assert_eq!(stdout(&output), "9\nfill\n", "{}", stderr(&output));
    assert!(stderr(&output).contains("full/s"), "{}", stderr(&output));
}

#[test]
fn a_recording_passes_the_status_and_keeps_the_profile() {
    let directory = Directory::empty();
    for (script, code, signal) in [
        ("echo out; exit 7", Some(7), None),
        ("echo out; kill -SEGV $$", None, Some(libc::SIGSEGV)),
    ] {
        let record = [
            "record", "--force", "--source", "accessed", "-o", "profile", "--", "sh", "-c", script,
        ];
        let output = tollfree(&directory, &record).output().unwrap();
        assert_eq!(stdout(&output), "out\n");
        assert_eq!(output.status.code(), code);
        assert_eq!(output.status.signal(), signal);
        assert_eq!(directory.json("profile")["format"], "tollfree-profile");
    }
}

#[test]
fn an_interrupted_recording_keeps_its_part() {
    let directory = Directory::empty();
    // Ctrl-C in a terminal goes to the group; `kill` only to tollfree.
    for to_group in [true, false] {
        let _ = fs::remove_file(directory.path("ready"));
        let record = [
            "record",
            "--force",
            "--source",
            "accessed",
            "-o",
            "profile",
            "--",
            "sh",
            "-c",
            "echo $$ > ready; exec sleep 60",
        ];
        let mut command = tollfree(&directory, &record);
        let mut child = command.process_group(0).spawn().unwrap();
        wait_until("the program", || !directory.read("ready").is_empty());
        sleep(Duration::from_millis(300));
        match to_group {
            true => kill_group(child.id(), libc::SIGINT),
            false => interrupt(child.id()),
        }
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert_eq!(directory.json("profile")["complete"], false, "{to_group}");
        let target = directory.read("ready");
        let target = Path::new("/proc").join(target.trim());
        assert!(!target.exists(), "the program was ended");
    }
}

#[test]
fn an_ignored_interrupt_is_none() {
    let directory = Directory::empty();
    let line = "trap '' INT; $TOLLFREE record --source accessed -o profile -- \
                sh -c 'kill -INT $PPID; sleep 0.2; exit 4'";
    assert_eq!(directory.shell(line).status.code(), Some(4));
    assert_eq!(directory.json("profile")["complete"], true);
}

#[test]
fn record_says_on_stderr_what_json_asks_for() {
    let directory = Directory::empty();
    let record = [
        "--json", "record", "--source", "accessed", "-o", "profile", "--", "echo", "out",
    ];
    let output = tollfree(&directory, &record).output().unwrap();
    assert_eq!(stdout(&output), "out\n");
    let said: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(said["source"], "accessed");
    assert_eq!(said["output"], "profile");
}

/// If the program writes to stderr too, a file or a descriptor takes the JSON.
#[test]
fn json_does_not_mix_with_what_the_program_writes() {
    let directory = Directory::empty();
    directory.write("list", "");
    let program = r#"sh -c "echo out; echo noise >&2""#;
    for (command, key) in [
        ("run --plan list", "policy"),
        ("record --source accessed --force -o profile", "source"),
    ] {
        for (summary, line) in [
            ("said", "$LINE"),
            ("/dev/fd/3", "$LINE 3>said"),
            ("/dev/fd/3", "{ $LINE 3>&1 >out | cat >said; }"),
        ] {
            let call = format!("$TOLLFREE --json {command} --summary {summary} -- {program}");
            let output = directory.shell(&line.replace("$LINE", &call));
            assert_eq!(stderr(&output), "noise\n", "{call}");
            let said = directory.json("said");
            assert!(!said[key].is_null(), "{call}: {said}");
            fs::remove_file(directory.path("said")).unwrap();
        }
    }
}

#[test]
fn what_record_cannot_start_is_told_apart() {
    let directory = Directory::empty();
    for (program, code) in [("nonexistent-program", 127), ("/etc/passwd", 126)] {
        let record = ["record", "-o", "profile", "--", program];
        let output = tollfree(&directory, &record).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        assert!(!directory.path("profile").exists());
    }
}

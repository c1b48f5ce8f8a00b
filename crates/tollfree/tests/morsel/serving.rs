// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree run --morsel`: the mappings of a program are served from morsels.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};

use toll_testkit::compiler::{compile, compile_where_possible};
use toll_testkit::output::{stderr, stdout};

use crate::{Fixture, PROGRAM, content};

#[test]
fn mappings_are_served_and_the_program_is_left_alone() {
    let Some(fixture) = Fixture::with_program() else {
        return;
    };
    let model = fixture.file("model", &content(5_000_001));
    let plain = Command::new(fixture.path("maps"))
        .args(["r", &model])
        .output()
        .unwrap();
    let run = |options: &str| {
        let arguments = [
            "run",
            "--morsel",
            &model,
            "--summary",
            "s.json",
            "--",
            "./maps",
            options,
            &model,
        ];
        let output = fixture.run(&arguments);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let summary = fixture.summary();
        let morsel = &summary["morsels"][0];
        let number = |name: &str| morsel[name].as_u64().unwrap();
        assert_eq!(number("mappings") + number("left"), 1, "{morsel}");
        assert_eq!(number("bytes"), number("mappings") * 5_000_001);
        let text = stdout(&output);
        let (from, sum) = text.trim().split_once(' ').unwrap();
        assert_eq!(sum, stdout(&plain).trim().split_once(' ').unwrap().1);
        assert_eq!(number("mappings") == 1, from == "morsel");
        (from.to_owned(), stderr(&output))
    };
    // Shared, private, and unmapped in two parts.
    for served in ["r", "v", "p", "vo"] {
        assert_eq!(
            run(served),
            ("morsel".to_owned(), String::new()),
            "{served}"
        );
    }
    // Writable now, or after a later mprotect.
    for left in ["w", "vw", "o"] {
        let (from, said) = run(left);
        assert_eq!(from, "file", "{left}");
        assert!(said.contains("but not read-only"), "{said}");
    }
}

#[test]
fn a_file_that_changes_meanwhile_is_served_by_itself() {
    let Some(fixture) = Fixture::with_program() else {
        return;
    };
    let model = fixture.file("model", &content(10_000));
    let script = "./maps r model; ./maps r ./link; sleep 0.05; printf x >>model; ./maps r model";
    std::os::unix::fs::symlink("model", fixture.path("link")).unwrap();
    let output = fixture.run(&["run", "--morsel", &model, "--", "sh", "-c", script]);
    let from: Vec<String> = stdout(&output)
        .lines()
        .map(|line| line.split(' ').next().unwrap().to_owned())
        .collect();
    assert_eq!(from, ["morsel", "morsel", "file"], "{output:?}");
    // The next run uses the morsel again.
    let output = fixture.run(&["run", "--morsel", &model, "--", "./maps", "r", "model"]);
    assert!(stdout(&output).starts_with("morsel "), "{output:?}");
    assert_eq!(fixture.names(), ["model"]);
}

/// A user with write access to a file can set its modification time.
#[test]
fn a_change_that_sets_its_time_back_is_seen_by_the_program() {
    let Some(fixture) = Fixture::with_program() else {
        return;
    };
    let model = fixture.file("model", &content(1 << 20));
    let script = "./maps r model; touch -r model time; \
        printf x | dd of=model bs=1 seek=110000 conv=notrunc 2>/dev/null; touch -r time model; \
        ./maps r model";
    let output = fixture.run(&["run", "--morsel", &model, "--", "sh", "-c", script]);
    let text = stdout(&output);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{output:?}");
    assert!(lines[0].starts_with("morsel "), "{text}");
    assert!(lines[1].starts_with("file "), "{text}");
}

#[test]
fn a_morsel_that_is_exchanged_is_not_mapped() {
    let Some(fixture) = Fixture::with_program() else {
        return;
    };
    let model = fixture.file("model", &content(10_000));
    let script = "cd $TOLLFREE_MORSELS && cp model other && mv -f other model; cd - >/dev/null; ./maps r model";
    let output = fixture.run(&["run", "--morsel", &model, "--", "sh", "-c", script]);
    assert!(stdout(&output).starts_with("file "), "{output:?}");
}

#[test]
fn several_files_and_none_that_is_mapped() {
    let Some(fixture) = Fixture::with_program() else {
        return;
    };
    let (one, other) = (
        fixture.file("one", &content(5000)),
        fixture.file("other", &content(6000)),
    );
    let output = fixture.run(&[
        "run", "--morsel", &one, "--morsel", &other, "--", "./maps", "r", "one", "r", "other",
    ]);
    assert_eq!(stdout(&output).matches("morsel ").count(), 2, "{output:?}");
    let output = fixture.run(&["run", "--morsel", &one, "--", "cat", "one"]);
    assert_eq!(output.stdout, content(5000));
    assert!(stderr(&output).contains("did not map it"), "{output:?}");
}

#[test]
fn what_keeps_a_file_from_its_morsel_is_said_and_the_program_runs() {
    let fixture = Fixture::new();
    let model = fixture.file("model", &content(5000));
    let output = fixture.run(&[
        "run",
        "--morsel",
        &model,
        "--morsels",
        "/nowhere",
        "--",
        "sh",
        "-c",
        "echo ran; kill -9 $$",
    ]);
    assert_eq!(
        (stdout(&output).as_str(), output.status.signal()),
        ("ran\n", Some(9))
    );
    assert!(
        stderr(&output).contains("model is not served from a morsel: /nowhere"),
        "{output:?}"
    );
    let output = fixture.run(&["run", "--morsel", "./nowhere", "--", "true"]);
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    let source = fixture.file("maps.c", PROGRAM.as_bytes());
    let options = ["-O1", "-static"];
    if compile_where_possible(Path::new(&source), &fixture.path("maps"), &options) {
        let output = fixture.run(&["run", "--morsel", &model, "--", "./maps", "r", "model"]);
        assert!(stdout(&output).starts_with("file "), "{output:?}");
        assert!(stderr(&output).contains("linked statically"), "{output:?}");
        assert_eq!(fixture.names(), [""; 0]);
    }
}

/// Installs a killing seccomp filter, then maps a file that it opened before, and prints the sum of
/// its bytes. `p` installs the filter by prctl, `s` by syscall; `a` also kills for calls that only
/// query files.
const CONFINED: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#define KILL(number)     BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1),     BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
int main(int argc, char **argv) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        KILL(SYS_open), KILL(SYS_openat), KILL(SYS_openat2),
        KILL(strchr(argv[1], 'a') ? SYS_fstat : SYS_open),
        KILL(strchr(argv[1], 'a') ? SYS_newfstatat : SYS_open),
        KILL(strchr(argv[1], 'a') ? SYS_fcntl : SYS_open),
        KILL(strchr(argv[1], 'a') ? SYS_close : SYS_open),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
    struct stat is;
    int fd = open(argv[2], O_RDONLY);
    if (fd < 0 || fstat(fd, &is) < 0)
        return 9;
    printf("confined\n");
    fflush(stdout);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        (strchr(argv[1], 'p') ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)
                              : syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)))
        return 8;
    unsigned char *p = mmap(NULL, is.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return 7;
    unsigned long sum = 0;
    for (long at = 0; at < is.st_size; at++)
        sum = sum * 31 + p[at];
    printf("%lu\n", sum);
    fflush(stdout);
    _exit(munmap(p, is.st_size) ? 6 : 3);
}
"#;

#[test]
fn a_program_that_confines_itself_lives() {
    let fixture = Fixture::new();
    if !fixture.compile("confined", CONFINED, &[]) {
        return;
    }
    let model = fixture.file("model", &content(1_000_000));
    for how in ["p", "s", "pa", "sa"] {
        let plain = Command::new(fixture.path("confined"))
            .args([how, &model])
            .output();
        let plain = plain.unwrap();
        if plain.status.code() == Some(8) {
            eprintln!("skipped: no filters here");
            return;
        }
        assert_eq!(plain.status.code(), Some(3), "{plain:?}");
        let output = fixture.run(&[
            "run",
            "--morsel",
            &model,
            "--summary",
            "s.json",
            "--",
            "./confined",
            how,
            &model,
        ]);
        assert_eq!(output.status.code(), Some(3), "{how}: {output:?}");
        assert_eq!(output.stdout, plain.stdout, "{how}");
        let said = stderr(&output);
        assert!(said.contains("confined itself (seccomp)"), "{how}: {said}");
        let summary = fixture.summary();
        let morsel = &summary["morsels"][0];
        assert_eq!(
            (&morsel["mappings"], &morsel["confined"]),
            (&0.into(), &1.into())
        );
    }
}

/// The examples work on every kernel.
#[test]
fn buffers_are_written_by_two_processes() {
    let fixture = Fixture::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/morsel/buffers.c");
    let strict = ["-O2", "-Wall", "-Wextra", "-Werror"];
    if !compile(&source, &fixture.path("buffers"), &strict) {
        return;
    }
    let output = Command::new(fixture.path("buffers"))
        .args(["300", "5000"])
        .env("TOLLFREE_MORSELS", fixture.morsels.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = stdout(&output);
    let counted = text
        .lines()
        .find_map(|line| line.split_once(" uses counted"));
    let (counted, _) = counted.unwrap_or_else(|| panic!("{text}"));
    assert!(counted.parse::<u64>().unwrap() >= 300, "{text}");
    assert!(
        text.ends_with(&format!("sealed, with {counted} uses\n")),
        "{text}"
    );
}

#[test]
fn pipelines_hand_over_packets() {
    let fixture = Fixture::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/morsel");
    let check = |output: &Output| {
        assert!(output.status.success(), "{output:?}");
        let text = stdout(output);
        assert_eq!(text.matches("5 packets of ").count(), 3, "{text}");
    };
    let run = |pipeline: &mut Command| {
        pipeline.args(["5", "1", "4097", "3000000"]);
        pipeline
            .env("TOLLFREE_MORSELS", fixture.morsels.path())
            .output()
    };
    let strict = ["-O2", "-Wall", "-Wextra", "-Werror"];
    let source = examples.join("pipeline.c");
    if compile(&source, &fixture.path("pipeline"), &strict) {
        let mut pipeline = Command::new(fixture.path("pipeline"));
        check(&run(&mut pipeline).unwrap());
    }
    let mut pipeline = Command::new("python3");
    match run(pipeline.arg(examples.join("pipeline.py"))) {
        Ok(output) => check(&output),
        Err(_) => eprintln!("skipped: no python3"),
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree record --source accessed` on a program with a hot and a cold block. The program is C,
//! built here. Skipped without a compiler or without the preload library (built by `cargo build
//! --workspace`).

use std::fs;
use std::process::{Command, Output};

use toll_model::profile::{Profile, SiteRows, Source};
use toll_model::site::SiteKind;
use toll_testkit::Directory;
use toll_testkit::compiler::compile_text;
use toll_testkit::output::stderr;
use toll_testkit::process::Running;

const PROGRAM: &str = "\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
static char *hot_block(void) { return memset(malloc(32 << 20), 1, 32 << 20); }
static char *cold_block(void) { return memset(malloc(64 << 20), 1, 64 << 20); }
int main(void) {
    char *hot = hot_block();
    /* Adjacent blocks would be one mapping, and this source cannot separate its parts. */
    mmap(NULL, 2 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *cold = cold_block();
    long sum = cold[0];
    struct timespec now, end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    do {
        for (long i = 0; i < 32 << 20; i += 4096) sum += hot[i];
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec < end.tv_sec + 3);
    printf(\"%d\\n\", sum > 0);
    return 5;
}
";

/// A program in which the second thread starts another program, and continues to work.
const FORKING: &str = "\
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static void *work(void *block) {
    pid_t child = fork();
    if (!child) { execlp(\"sleep\", \"sleep\", \"1\", NULL); _exit(127); }
    while (waitpid(child, NULL, WNOHANG) == 0) memset(block, 1, 8 << 20);
    return NULL;
}
int main(void) {
    pthread_t thread;
    char *block = malloc(8 << 20);
    if (pthread_create(&thread, NULL, work, block)) return 1;
    pthread_join(thread, NULL);
    return 0;
}
";

/// The text that tollfree printed; `None` if the preload library is not built.
fn said(output: &Output) -> Option<String> {
    let said = stderr(output);
    if said.contains("libtoll_preload.so is missing") {
        eprintln!("skipped: {said}");
        return None;
    }
    Some(said)
}

fn profile(directory: &Directory, name: &str) -> Profile {
    Profile::from_json(fs::read(directory.path(name)).unwrap()).unwrap()
}

/// Counts per byte.
fn rate(site: &SiteRows) -> f64 {
    let misses: f64 = site.rows.iter().map(|row| row.misses).sum();
    misses / site.site.length as f64
}

#[test]
fn hot_and_cold_blocks_are_told_apart_by_name() {
    let directory = Directory::empty();
    if !compile_text(PROGRAM, &directory.path("blocks"), &["-g", "-O0"]) {
        return;
    }
    let arguments = [
        "record", "--source", "accessed", "-o", "p.json", "--", "./blocks",
    ];
    let output = directory.run(&arguments);
    let Some(said) = said(&output) else {
        return;
    };
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert_eq!(output.stdout, b"1\n");
    let profile = profile(&directory, "p.json");
    assert_eq!(profile.source, Source::Accessed);
    assert!(profile.complete && profile.observations > 0, "{profile:?}");
    let find = |name: &str| {
        let is_it = |site: &&SiteRows| match &site.site.kind {
            SiteKind::Alloc { frames, .. } => frames[0].symbol.as_deref() == Some(name),
            _ => false,
        };
        profile
            .sites
            .iter()
            .find(is_it)
            .unwrap_or_else(|| panic!("no {name}"))
    };
    let (hot, cold) = (find("hot_block"), find("cold_block"));
    // The hot block is touched at every scan, the cold one only at its allocation.
    let (hot_rate, cold_rate) = (rate(hot), rate(cold));
    assert!(hot_rate > cold_rate, "{hot_rate} and {cold_rate}");
    assert!(hot.site.length >= 32 << 20 && cold.site.length >= 64 << 20);
    let own = |site: &SiteRows| matches!(&site.site.kind, SiteKind::File { path, .. } if path.ends_with("libtoll_preload.so"));
    assert!(
        !profile.sites.iter().any(own),
        "tollfree's own memory is not the program's"
    );
}

/// Touches 32 MiB again and again until it is killed.
const RUNNING: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    size_t size = 32 << 20;
    volatile char *block = malloc(size);
    puts("running");
    fflush(stdout);
    for (;;)
        for (size_t at = 0; at < size; at += 4096)
            block[at]++;
}
"#;

#[test]
fn a_running_process_is_recorded_and_runs_on() {
    let directory = Directory::empty();
    let program = directory.path("running");
    if !compile_text(RUNNING, &program, &["-O1"]) {
        return;
    }
    let mut running = Running::start(&mut Command::new(&program));
    running.line();
    let pid = running.pid().to_string();
    let arguments = ["record", "--pid", &pid, "--for", "500ms"];
    let output = directory.run(&arguments);
    let runs_on = running.child.try_wait().unwrap().is_none();
    drop(running);
    assert!(runs_on);
    let Some(said) = said(&output) else {
        return;
    };
    assert_eq!(output.status.code(), Some(0), "{said}");
    // The default name.
    let profile = profile(&directory, "profile.json");
    assert!(
        !profile.complete && profile.observations > 4096,
        "{profile:?}"
    );
    assert!(profile.program.path.ends_with("/running"), "{profile:?}");
    assert_eq!(profile.command, [program.to_str().unwrap()]);
    // It is not overwritten; a missing process is an error.
    let again = directory.run(&arguments);
    assert_eq!(again.status.code(), Some(2));
    let none = directory.run(&["record", "-o", "q.json", "--pid", "4194304"]);
    assert_eq!(none.status.code(), Some(2));
    let sim = ["record", "-o", "q.json", "--source", "sim", "--pid", "1"];
    assert_eq!(directory.run(&sim).status.code(), Some(2));
    assert!(!directory.path("q.json").exists());
}

#[test]
fn children_of_other_threads_are_said_to_be_missing() {
    let directory = Directory::empty();
    if !compile_text(FORKING, &directory.path("forking"), &["-O1", "-pthread"]) {
        return;
    }
    let arguments = [
        "record",
        "--source",
        "accessed",
        "-o",
        "p.json",
        "--",
        "./forking",
    ];
    let output = directory.run(&arguments);
    let Some(said) = said(&output) else {
        return;
    };
    assert!(output.status.success(), "{said}");
    let profile = profile(&directory, "p.json");
    let missing = "child processes were not scanned";
    assert!(
        profile.warnings.iter().any(|warning| warning == missing),
        "{:?}",
        profile.warnings
    );
}

#[test]
fn a_program_that_ends_at_once_has_an_empty_profile() {
    let directory = Directory::empty();
    let arguments = [
        "record", "--source", "accessed", "-o", "p.json", "--", "true",
    ];
    let output = directory.run(&arguments);
    let Some(said) = said(&output) else {
        return;
    };
    assert!(output.status.success(), "{said}");
    let profile = profile(&directory, "p.json");
    assert!(profile.misses() < 1000.0);
    assert!(!profile.warnings.is_empty());
}

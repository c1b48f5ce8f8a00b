// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree record --source refs` on a program with a hot and a cold block. The program
//! is C, built here; without a compiler, or without the preload library (`cargo build
//! --workspace` makes it), there is nothing to test.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use toll_model::anchor::AnchorKind;
use toll_model::profile::{AnchorRows, Profile, Source};

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
    /* Neighbours would be one mapping, of which this source cannot tell the parts. */
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

/// A program whose second thread starts another program, and then works on.
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

fn tollfree(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollfree"));
    command
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap()
}

/// The text that tollfree printed; `None` where the preload library was not built.
fn said(output: &Output) -> Option<String> {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("libtoll_preload.so is missing") {
        eprintln!("skipped: {said}");
        return None;
    }
    Some(said)
}

/// Counts per byte.
fn rate(anchor: &AnchorRows) -> f64 {
    let misses: f64 = anchor.rows.iter().map(|row| row.misses).sum();
    misses / anchor.anchor.length as f64
}

#[test]
fn hot_and_cold_blocks_are_told_apart_by_name() {
    let folder = tempfile::tempdir().unwrap();
    if !common::compile_text(PROGRAM, &folder.path().join("blocks"), &["-g", "-O0"]) {
        return;
    }
    let arguments = [
        "record", "--source", "refs", "-o", "p.json", "--", "./blocks",
    ];
    let output = tollfree(folder.path(), &arguments);
    let Some(said) = said(&output) else {
        return;
    };
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert_eq!(output.stdout, b"1\n");
    let profile = Profile::from_json(fs::read(folder.path().join("p.json")).unwrap()).unwrap();
    assert_eq!(profile.source, Source::Refs);
    assert!(profile.complete && profile.observations > 0, "{profile:?}");
    let find = |name: &str| {
        let is_it = |anchor: &&AnchorRows| match &anchor.anchor.kind {
            AnchorKind::Alloc { frames, .. } => frames[0].symbol.as_deref() == Some(name),
            _ => false,
        };
        profile
            .anchors
            .iter()
            .find(is_it)
            .unwrap_or_else(|| panic!("no {name}"))
    };
    let (hot, cold) = (find("hot_block"), find("cold_block"));
    // The hot block is touched at every look, the cold one while it is made.
    let (hot_rate, cold_rate) = (rate(hot), rate(cold));
    assert!(hot_rate > cold_rate, "{hot_rate} and {cold_rate}");
    assert!(hot.anchor.length >= 32 << 20 && cold.anchor.length >= 64 << 20);
    let own = |anchor: &AnchorRows| matches!(&anchor.anchor.kind, AnchorKind::File { path, .. } if path.ends_with("libtoll_preload.so"));
    assert!(
        !profile.anchors.iter().any(own),
        "tollfree's own memory is not the program's"
    );
}

#[test]
fn children_of_other_threads_are_said_to_be_missing() {
    let folder = tempfile::tempdir().unwrap();
    if !common::compile_text(
        FORKING,
        &folder.path().join("forking"),
        &["-O1", "-pthread"],
    ) {
        return;
    }
    let arguments = [
        "record",
        "--source",
        "refs",
        "-o",
        "p.json",
        "--",
        "./forking",
    ];
    let output = tollfree(folder.path(), &arguments);
    let Some(said) = said(&output) else {
        return;
    };
    assert!(output.status.success(), "{said}");
    let profile = Profile::from_json(fs::read(folder.path().join("p.json")).unwrap()).unwrap();
    let missing = "processes that the program started were not looked at";
    assert!(
        profile.warnings.iter().any(|warning| warning == missing),
        "{:?}",
        profile.warnings
    );
}

#[test]
fn a_program_that_ends_at_once_has_an_empty_profile() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["record", "--source", "refs", "-o", "p.json", "--", "true"];
    let output = tollfree(folder.path(), &arguments);
    let Some(said) = said(&output) else {
        return;
    };
    assert!(output.status.success(), "{said}");
    let profile = Profile::from_json(fs::read(folder.path().join("p.json")).unwrap()).unwrap();
    assert!(profile.misses() < 1000.0);
    assert!(!profile.warnings.is_empty());
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the program inherits: descriptors, environment, signal masks, limits.

use std::collections::BTreeSet;
use std::process::Command;

use toll_testkit::output::text;
use toll_testkit::tool::tollfree;

use crate::Fixture;

/// Runs a shell line with `$RUN` empty, then with `$RUN` as tollfree with either plan; the output
/// must be the same, except for what `filter` removes.
fn same_as_alone(fixture: &Fixture, line: &str, filter: impl Fn(&str) -> bool) -> Vec<String> {
    let alone = shell(fixture, "", line);
    for plan in ["nothing.txt", "inside.txt"] {
        let plan = fixture.path(plan).display().to_string();
        let run = format!("{} run --plan {plan} --", tollfree().display());
        let ours = shell(fixture, &run, line);
        let kept = |lines: &[String]| -> BTreeSet<String> {
            lines.iter().filter(|line| filter(line)).cloned().collect()
        };
        let (ours, alone) = (kept(&ours), kept(&alone));
        let difference: Vec<_> = ours.symmetric_difference(&alone).collect();
        assert!(difference.is_empty(), "{plan}: {line}: {difference:#?}");
    }
    alone
}

fn shell(fixture: &Fixture, run: &str, line: &str) -> Vec<String> {
    let mut command = Command::new("sh");
    command.args(["-c", line]).env("RUN", run);
    command.env("TMPDIR", fixture.as_path());
    let output = command.current_dir(fixture.as_path()).output().unwrap();
    let both = [output.stdout, output.stderr].concat();
    let mut lines: Vec<String> = text(&both).lines().map(str::to_owned).collect();
    lines.push(format!("status {:?}", output.status));
    lines
}

#[test]
fn descriptors_are_as_the_caller_left_them() {
    let fixture = Fixture::new();
    fixture.write("three", "content of three\n");
    // `ls` opens one descriptor for the directory, with the lowest free number.
    let list =
        "ls -l /proc/self/fd | sed -n 's/.* \\([0-9]* -> .*\\)/\\1/p' | grep -v -e /proc/ -e pipe:";
    let lines = same_as_alone(&fixture, &format!("exec 3<three 7>&1; $RUN {list}"), |_| {
        true
    });
    assert!(
        lines.iter().any(|line| line.starts_with("3 -> ")),
        "{lines:?}"
    );
    let lines = same_as_alone(&fixture, "exec 3<three; $RUN cat <&3", |_| true);
    assert_eq!(lines[0], "content of three");
    let lines = same_as_alone(&fixture, "exec 3<three; $RUN sh -c 'cat <&3'", |_| true);
    assert_eq!(lines[0], "content of three");
}

#[test]
fn closed_standard_streams_stay_closed() {
    let fixture = Fixture::new();
    for closed in ["<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"] {
        let line = format!(
            "$RUN sh -c 'ls -l /proc/$$/fd > out' {closed}; cut -d: -f2- out | grep -o '[0-9]* -> /dev/null'; $RUN cat {closed}"
        );
        same_as_alone(&fixture, &line, |_| true);
    }
}

#[test]
fn a_program_may_close_everything() {
    let fixture = Fixture::new();
    let close = "for f in 0 1 2 3 4 5 6 7 8 9; do eval \"exec $f<&-\"; done; exit 6";
    for (plan, mut command) in fixture.both(&["sh", "-c", close]) {
        assert_eq!(command.status().unwrap().code(), Some(6), "{plan}");
    }
}

/// The variables that tollfree may set.
fn is_documented(line: &str) -> bool {
    ["LD_PRELOAD=", "TOLLFREE_ACTIONS=", "TOLLFREE_EVENTS="]
        .iter()
        .any(|name| line.starts_with(name))
}

#[test]
fn the_environment_is_the_same_but_for_what_is_documented() {
    let fixture = Fixture::new();
    same_as_alone(
        &fixture,
        "RUNNER=$RUN; unset RUN; $RUNNER env | grep -v RUNNER=",
        |line| !is_documented(line),
    );
    let mut nothing = fixture.run("nothing.txt", &["env"]);
    let output = text(&nothing.output().unwrap().stdout);
    assert!(!output.lines().any(is_documented), "{output}");
    let mut inside = fixture.run("inside.txt", &["env"]);
    let output = text(
        &inside
            .env("LD_PRELOAD", "libm.so.6")
            .output()
            .unwrap()
            .stdout,
    );
    let preload = output
        .lines()
        .find(|line| line.starts_with("LD_PRELOAD="))
        .unwrap();
    assert!(
        preload.ends_with("libtoll_preload.so:libm.so.6"),
        "{preload}"
    );
}

#[test]
fn dispositions_and_masks_are_inherited() {
    let fixture = Fixture::new();
    let show = "$RUN grep -E '^(Sig|Shd)' /proc/self/status";
    for ignored in ["", "PIPE", "HUP INT QUIT", "PIPE USR1 CHLD TSTP"] {
        let line = match ignored.is_empty() {
            true => show.to_owned(),
            false => format!("trap '' {ignored}; {show}"),
        };
        // Signals that the shell itself handles are not inherited.
        same_as_alone(&fixture, &line, |line| !line.starts_with("SigQ"));
    }
}

#[test]
fn limits_and_identity_are_inherited() {
    let fixture = Fixture::new();
    same_as_alone(
        &fixture,
        "ulimit -c 5; ulimit -n 64; umask 027; $RUN sh -c 'ulimit -a; umask; id; nice; pwd'",
        |_| true,
    );
}

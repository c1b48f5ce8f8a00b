// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree run` is invisible to the program and to its caller: streams byte for byte, status,
//! signals, descriptors, environment, terminal.
//!
//! Each test runs the program twice: with an empty plan (without the preload library) and with a
//! plan for an unmapped address (with the library).

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use toll_testkit::Directory;
use toll_testkit::compiler::compile_where_possible;
use toll_testkit::machine::{has_program, is_root};
use toll_testkit::output::{stderr, stdout, text};
use toll_testkit::process::{is_running, kill, kill_group, wait_until};
use toll_testkit::tool::{library, tollfree};

/// The directory of one test, with both plans.
struct Fixture(Directory);

impl Fixture {
    fn new() -> Fixture {
        library();
        let directory = Directory::with(&[("nothing.txt", ""), ("inside.txt", "17592186044416\n")]);
        // An ordinary user must be able to read it, even if root runs the tests.
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
        Fixture(directory)
    }

    fn run(&self, plan: &str, program: &[&str]) -> Command {
        let mut command = Command::new(tollfree());
        command.args(["run", "--plan"]).arg(self.path(plan));
        command.arg("--").args(program).current_dir(self.as_path());
        command.env("TMPDIR", self.as_path());
        command
    }

    /// The program under both plans, with the plan's name.
    fn both(&self, program: &[&str]) -> [(&'static str, Command); 2] {
        ["nothing.txt", "inside.txt"].map(|plan| (plan, self.run(plan, program)))
    }
}

impl Deref for Fixture {
    type Target = Directory;

    fn deref(&self) -> &Directory {
        &self.0
    }
}

/// Bytes without a pattern (a linear congruential generator).
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut next = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}

fn feed(command: &mut Command, input: Vec<u8>) -> Output {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    output
}

#[test]
fn streams_pass_byte_for_byte() {
    let fixture = Fixture::new();
    let input = noise(1 << 20);
    for (plan, mut command) in fixture.both(&["cat"]) {
        let output = feed(&mut command, input.clone());
        assert!(output.stdout == input, "{plan}: stdout differs");
        assert_eq!(stderr(&output), "", "{plan}");
        assert_eq!(output.status.code(), Some(0), "{plan}");
    }
    for (plan, mut command) in fixture.both(&["sh", "-c", "cat >&2"]) {
        let output = feed(&mut command, input.clone());
        assert!(output.stderr == input, "{plan}: stderr differs");
        assert!(output.stdout.is_empty(), "{plan}");
    }
}

#[test]
fn every_exit_code_passes() {
    let fixture = Fixture::new();
    for code in 0..=255 {
        let plan = ["nothing.txt", "inside.txt"][code % 2];
        let status = fixture
            .run(plan, &["sh", "-c", &format!("exit {code}")])
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(code as i32), "{plan}");
    }
}

#[test]
fn death_by_a_signal_passes() {
    let fixture = Fixture::new();
    for signal in [
        libc::SIGTERM,
        libc::SIGSEGV,
        libc::SIGKILL,
        libc::SIGABRT,
        libc::SIGQUIT,
        libc::SIGPIPE,
    ] {
        for (plan, mut command) in
            fixture.both(&["sh", "-c", &format!("kill -{signal} $$; sleep 9")])
        {
            let output = command.output().unwrap();
            assert_eq!(output.status.signal(), Some(signal), "{plan}");
            assert_eq!(stderr(&output), "", "{plan}");
        }
    }
    assert!(leftovers(&fixture).is_empty(), "{:?}", leftovers(&fixture));
}

/// Temporary files that were not removed.
fn leftovers(fixture: &Fixture) -> Vec<String> {
    let mut names = fixture.names();
    names.retain(|name| name.starts_with("tollfree-"));
    names
}

#[test]
fn a_core_is_only_the_programs_own() {
    let fixture = Fixture::new();
    let mut command = fixture.run("nothing.txt", &["sh", "-c", "ulimit -c 0; kill -SEGV $$"]);
    let status = command.status().unwrap();
    assert_eq!(status.signal(), Some(libc::SIGSEGV));
    assert!(!status.core_dumped());
}

/// A shell that counts the received signals in a file, and ends on SIGTERM.
const COUNTER: &str = r#"
    for s in HUP INT QUIT USR1 USR2 ALRM WINCH CONT TSTP; do trap "echo $s >> got" $s; done
    trap 'exit 42' TERM
    echo $$ > ready
    while :; do sleep 0.02; done
"#;

fn lines(fixture: &Fixture, name: &str) -> Vec<String> {
    fixture.read(name).lines().map(str::to_owned).collect()
}

fn started(fixture: &Fixture, command: &mut Command) -> Child {
    let _ = fs::remove_file(fixture.path("ready"));
    let _ = fs::remove_file(fixture.path("got"));
    let child = command.spawn().unwrap();
    wait_until("the program to start", || !fixture.read("ready").is_empty());
    child
}

#[test]
fn signals_to_tollfree_are_forwarded_once() {
    let fixture = Fixture::new();
    let signals = [
        ("HUP", libc::SIGHUP),
        ("INT", libc::SIGINT),
        ("QUIT", libc::SIGQUIT),
        ("USR1", libc::SIGUSR1),
        ("USR2", libc::SIGUSR2),
        ("ALRM", libc::SIGALRM),
        ("WINCH", libc::SIGWINCH),
        ("CONT", libc::SIGCONT),
        ("TSTP", libc::SIGTSTP),
    ];
    for (plan, mut command) in fixture.both(&["sh", "-c", COUNTER]) {
        let mut child = started(&fixture, &mut command);
        for (sent, (name, signal)) in signals.iter().enumerate() {
            kill(child.id(), *signal);
            wait_until(name, || lines(&fixture, "got").len() > sent);
        }
        sleep(Duration::from_millis(60));
        kill(child.id(), libc::SIGTERM);
        assert_eq!(child.wait().unwrap().code(), Some(42), "{plan}");
        assert_eq!(
            lines(&fixture, "got"),
            signals.map(|(name, _)| name),
            "{plan}"
        );
    }
}

#[test]
fn a_forwarded_signal_that_kills_kills_both() {
    let fixture = Fixture::new();
    for (plan, mut command) in fixture.both(&["sh", "-c", "echo $$ > ready; exec sleep 60"]) {
        let mut child = started(&fixture, &mut command);
        kill(child.id(), libc::SIGHUP);
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGHUP), "{plan}");
    }
}

#[test]
fn an_alarm_from_before_still_ends_the_program() {
    let fixture = Fixture::new();
    if !has_program("perl") {
        eprintln!("skipped: no perl");
        return;
    }
    let mut command = Command::new("perl");
    command.args(["-e", "alarm 1; exec @ARGV"]);
    command.arg(tollfree()).args(["run", "--plan"]);
    command
        .arg(fixture.path("inside.txt"))
        .args(["--", "sleep", "60"]);
    assert_eq!(command.status().unwrap().signal(), Some(libc::SIGALRM));
}

#[test]
fn a_library_in_a_directory_with_a_space_is_found_by_the_loader() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path("my programs")).unwrap();
    fs::copy(library(), fixture.path("my programs/libtoll_preload.so")).unwrap();
    let mut command = fixture.run("inside.txt", &["cat", "/proc/self/maps"]);
    let output = command
        .env("TOLLFREE_LIBDIR", fixture.path("my programs"))
        .output()
        .unwrap();
    assert_eq!(stderr(&output), "");
    assert!(stdout(&output).contains("my programs/libtoll_preload.so"));
}

#[test]
fn a_killed_tollfree_takes_the_program_with_it() {
    let fixture = Fixture::new();
    let mut command = fixture.run(
        "nothing.txt",
        &["sh", "-c", "echo $$ > ready; exec sleep 60"],
    );
    let mut child = started(&fixture, &mut command);
    let program: u32 = lines(&fixture, "ready")[0].parse().unwrap();
    assert!(is_running(program));
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the program to end", || !is_running(program));
}

/// The status from wait4 of a child, including stops.
fn wait_raw(pid: u32) -> i32 {
    let mut status = 0;
    // SAFETY: the pointer is valid.
    assert!(unsafe { libc::waitpid(pid as i32, &mut status, libc::WUNTRACED) } > 0);
    status
}

#[test]
fn job_control_stops_and_continues_both() {
    let fixture = Fixture::new();
    let script = "echo $$ > ready; kill -TSTP $$; exit 4";
    for (plan, mut command) in fixture.both(&["sh", "-c", script]) {
        // A job, started as a shell would.
        let mut child = started(&fixture, command.process_group(0));
        let status = wait_raw(child.id());
        assert!(libc::WIFSTOPPED(status), "{plan}: {status:#x}");
        assert_eq!(libc::WSTOPSIG(status), libc::SIGTSTP);
        kill_group(child.id(), libc::SIGCONT);
        assert_eq!(child.wait().unwrap().code(), Some(4), "{plan}");
    }
}

#[test]
fn a_debugger_that_stops_the_program_does_not_stop_tollfree() {
    let fixture = Fixture::new();
    let mut command = fixture.run("nothing.txt", &["sh", "-c", COUNTER]);
    let mut child = started(&fixture, &mut command);
    let program: u32 = lines(&fixture, "ready")[0].parse().unwrap();
    kill(program, libc::SIGSTOP);
    sleep(Duration::from_millis(50));
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    assert!(!stat.contains(") T "), "{stat}");
    kill(program, libc::SIGCONT);
    kill(child.id(), libc::SIGTERM);
    assert_eq!(child.wait().unwrap().code(), Some(42));
}

#[test]
fn a_closed_reader_ends_the_program_as_it_would_alone() {
    let fixture = Fixture::new();
    for (plan, mut command) in fixture.both(&["yes"]) {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut first = [0; 2];
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut first).unwrap();
        drop(stdout);
        assert_eq!(
            child.wait().unwrap().signal(),
            Some(libc::SIGPIPE),
            "{plan}"
        );
    }
}

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

#[test]
fn programs_that_exec_and_fork_are_followed_to_their_end() {
    let fixture = Fixture::new();
    for (plan, mut command) in fixture.both(&[
        "sh",
        "-c",
        "sh -c 'exit 3' || exec sh -c 'exec sh -c \"exit 9\"'",
    ]) {
        assert_eq!(command.status().unwrap().code(), Some(9), "{plan}");
    }
}

#[test]
fn a_daemon_outlives_tollfree() {
    let fixture = Fixture::new();
    for (plan, mut command) in fixture.both(&[
        "sh",
        "-c",
        "(sleep 0.4; echo done > daemon) </dev/null >/dev/null 2>&1 & exit 3",
    ]) {
        let _ = fs::remove_file(fixture.path("daemon"));
        assert_eq!(command.status().unwrap().code(), Some(3), "{plan}");
        assert!(
            !fixture.path("daemon").exists(),
            "{plan}: tollfree waited for the daemon"
        );
        wait_until("the daemon", || fixture.path("daemon").exists());
    }
}

#[test]
fn exec_failures_are_told_apart() {
    let fixture = Fixture::new();
    fixture.write("plain", "no program");
    fixture.executable("lost", b"#!/nonexistent/interpreter\n");
    let cases = [
        ("nonexistent-program", 127),
        ("./nonexistent-program", 127),
        ("", 127),
        ("./plain", 126),
        ("/", 126),
        ("./lost", 127),
        ("./plain/below", 127),
    ];
    for (name, code) in cases {
        for (plan, mut command) in fixture.both(&[name]) {
            let output = command.output().unwrap();
            assert_eq!(
                output.status.code(),
                Some(code),
                "{name} {plan}: {}",
                stderr(&output)
            );
            assert!(stderr(&output).starts_with("tollfree: "), "{name}");
        }
    }
}

#[test]
fn programs_are_looked_up_as_execvp_does() {
    let fixture = Fixture::new();
    fixture.write("first/tool", "not executable");
    fixture.executable("second/tool", b"#!/bin/sh\necho second $0 \"$@\"\n");
    let path = format!(
        "{}:{}:/usr/bin:/bin",
        fixture.path("first").display(),
        fixture.path("second").display()
    );
    for (plan, mut command) in fixture.both(&["tool", "a b", ""]) {
        let output = command.env("PATH", &path).output().unwrap();
        let expected = format!("second {} a b \n", fixture.path("second/tool").display());
        assert_eq!(stdout(&output), expected, "{plan}");
    }
    // The shell executes a file without an interpreter line.
    fixture.executable("bare", b"echo bare\n");
    for (plan, mut command) in fixture.both(&["./bare"]) {
        assert_eq!(text(&command.output().unwrap().stdout), "bare\n", "{plan}");
    }
}

#[test]
fn the_programs_own_name_is_kept() {
    let fixture = Fixture::new();
    for (plan, mut command) in
        fixture.both(&["sh", "-c", "tr '\\0' ' ' < /proc/$$/cmdline | cut -c1-5"])
    {
        assert_eq!(text(&command.output().unwrap().stdout), "sh -c\n", "{plan}");
    }
}

#[test]
fn a_terminal_stays_a_terminal() {
    let fixture = Fixture::new();
    if !has_program("script") {
        eprintln!("skipped: no script(1)");
        return;
    }
    for plan in ["nothing.txt", "inside.txt"] {
        let inner = "test -t 0 && test -t 1 && test -t 2 && echo terminal; cut -d \" \" -f 5,8 /proc/self/stat";
        let output = in_terminal(&fixture, plan, inner, b"");
        assert!(output.contains("terminal"), "{plan}: {output}");
        let groups: Vec<&str> = output.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(
            groups[0], groups[1],
            "{plan}: the program is in the foreground: {output}"
        );
    }
}

#[test]
fn ctrl_c_arrives_once() {
    let fixture = Fixture::new();
    if !has_program("script") {
        eprintln!("skipped: no script(1)");
        return;
    }
    for plan in ["nothing.txt", "inside.txt"] {
        let inner = "trap \"echo INT >> got\" INT; echo > ready; n=0; while [ $n -lt 40 ]; do sleep 0.02; n=$((n+1)); done; exit 5";
        let _ = fs::remove_file(fixture.path("got"));
        let output = in_terminal(&fixture, plan, inner, b"\x03");
        assert_eq!(lines(&fixture, "got"), ["INT"], "{plan}: {output}");
    }
}

/// Runs a shell line under tollfree in its own terminal; types `keys` when the file `ready` exists.
fn in_terminal(fixture: &Fixture, plan: &str, line: &str, keys: &[u8]) -> String {
    let _ = fs::remove_file(fixture.path("ready"));
    let inner = format!(
        "{} run --plan {plan} -- sh -c '{line}'",
        tollfree().display()
    );
    let mut command = Command::new("script");
    command
        .args(["-qec", &inner, "/dev/null"])
        .current_dir(fixture.as_path());
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    if !keys.is_empty() {
        wait_until("the program in the terminal", || {
            fixture.path("ready").exists()
        });
        stdin.write_all(keys).unwrap();
        stdin.flush().unwrap();
    }
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    stdout(&output).replace('\r', "")
}

/// Builds a program that exits with 11; false if the compiler does not support the options.
fn builds_exit(fixture: &Fixture, option: &str, name: &str) -> bool {
    let source = fixture.write("exit.c", "int main(void) { return 11; }\n");
    compile_where_possible(&source, &fixture.path(name), &[option])
}

/// AddressSanitizer aborts a program if another library is loaded before its own.
#[test]
fn a_sanitized_program_is_left_alone() {
    let fixture = Fixture::new();
    if !builds_exit(&fixture, "-fsanitize=address", "sanitized") {
        return;
    }
    let output = fixture
        .run("inside.txt", &["./sanitized"])
        .output()
        .unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(11), "{said}");
    assert!(said.contains("AddressSanitizer"), "{said}");
}

#[test]
fn a_program_that_cannot_be_entered_runs_all_the_same() {
    let fixture = Fixture::new();
    if !builds_exit(&fixture, "-static", "static") {
        return;
    }
    let output = fixture.run("inside.txt", &["./static"]).output().unwrap();
    assert_eq!(output.status.code(), Some(11));
    assert!(
        stderr(&output).contains("linked statically"),
        "{}",
        stderr(&output)
    );
    let output = fixture.run("nothing.txt", &["./static"]).output().unwrap();
    assert_eq!(
        stderr(&output),
        "",
        "nothing to say where nothing is planned"
    );
    let json = ["--json", "run", "--plan", "inside.txt", "--", "./static"];
    let output = fixture.0.run(&json);
    let summary: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(summary["exit_code"], 11);
    assert!(
        summary["not_entered"]
            .as_str()
            .unwrap()
            .contains("statically")
    );
}

#[test]
fn a_setuid_program_is_left_alone() {
    let fixture = Fixture::new();
    let program = match is_root() {
        true => {
            let copy = fixture.path("setuid");
            fs::copy("/bin/true", &copy).unwrap();
            std::os::unix::fs::chown(&copy, Some(65534), Some(65534)).unwrap();
            fs::set_permissions(&copy, fs::Permissions::from_mode(0o4755)).unwrap();
            copy.to_string_lossy().into_owned()
        }
        false => "/usr/bin/su".to_owned(),
    };
    let mut command = fixture.run("inside.txt", &[&program, "--help"]);
    let Ok(output) = command.output() else {
        return;
    };
    if output.status.code() == Some(127) {
        eprintln!("skipped: no setuid program here");
        return;
    }
    assert_eq!(output.status.code(), Some(0));
    assert!(
        stderr(&output).contains("privileges of its own"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_32_bit_program_is_said_to_be_one() {
    let fixture = Fixture::new();
    let mut header = [0u8; 64];
    header[..7].copy_from_slice(b"\x7fELF\x01\x01\x01");
    header[16] = 2;
    header[18] = 3;
    fixture.executable("i386", header);
    let output = fixture.run("inside.txt", &["./i386"]).output().unwrap();
    assert!(stderr(&output).contains("32-bit"), "{}", stderr(&output));
}

#[test]
fn an_ordinary_user_gets_the_same() {
    let fixture = Fixture::new();
    if !is_root() || !has_program("setpriv") {
        eprintln!("skipped: not root");
        return;
    }
    fs::set_permissions(fixture.as_path(), fs::Permissions::from_mode(0o777)).unwrap();
    for file in [tollfree(), library()] {
        fs::copy(file, fixture.path(file.file_name().unwrap())).unwrap();
    }
    for plan in ["nothing.txt", "inside.txt"] {
        let mut command = Command::new("setpriv");
        command.args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "./tollfree",
            "run",
            "--plan",
            plan,
        ]);
        command.args(["--", "sh", "-c", "cat; id -u; exit 12"]);
        command.current_dir(fixture.as_path());
        command.env("TMPDIR", fixture.as_path());
        let output = feed(&mut command, b"hello\n".to_vec());
        assert_eq!(
            stdout(&output),
            "hello\n65534\n",
            "{plan}: {}",
            stderr(&output)
        );
        assert_eq!(output.status.code(), Some(12), "{plan}");
    }
}

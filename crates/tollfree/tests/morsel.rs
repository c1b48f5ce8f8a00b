// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree morsel` and `tollfree run --morsel`, on tmpfs, which every Linux has, and on mounts of
//! our own where allowed.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use serde_json::Value;
use tempfile::TempDir;
use toll_testkit::compiler::{compile, compile_where_possible};
use toll_testkit::machine::{has_program, is_root};
use toll_testkit::output::{stderr, stdout};
use toll_testkit::process::{Running, interrupt, wait_until};
use toll_testkit::tool::{library, tollfree};
use toll_testkit::{Directory, schema};

/// Maps files, and prints for each whether it is a morsel, and the sum of its bytes.
/// Options before a file: w maps it writable, o opens it for writing; p unmaps a part first.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
static const char *which(unsigned long address) {
    static char line[8192];
    FILE *maps = fopen("/proc/self/maps", "r");
    unsigned long from, to;
    const char *found = "nothing";
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx", &from, &to) == 2 && from <= address && address < to) {
            found = strstr(line, "/dev/shm/") || strstr(line, "/morsels/") ? "morsel" : "file";
            break;
        }
    fclose(maps);
    return found;
}
int main(int argc, char **argv) {
    int status = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        int writable = strchr(argv[i], 'w') != NULL, rw = strchr(argv[i], 'o') != NULL;
        int fd = open(argv[i + 1], writable || rw ? O_RDWR : O_RDONLY);
        struct stat is;
        if (fd < 0 || fstat(fd, &is) < 0)
            return 9;
        int protection = PROT_READ | (writable ? PROT_WRITE : 0);
        int kind = strchr(argv[i], 'v') ? MAP_PRIVATE : MAP_SHARED;
        unsigned char *p = mmap(NULL, is.st_size, protection, kind, fd, 0);
        if (p == MAP_FAILED)
            return 8;
        close(fd);
        unsigned long sum = 0;
        for (long at = 0; at < is.st_size; at++)
            sum = sum * 31 + p[at];
        printf("%s %lu\n", which((unsigned long)p), sum);
        if (strchr(argv[i], 'p') && munmap(p, 4096) != 0)
            return 7;
        status |= munmap(p + (strchr(argv[i], 'p') ? 4096 : 0), is.st_size - (strchr(argv[i], 'p') ? 4096 : 0));
    }
    return status ? 6 : 3;
}
"#;

/// A directory of morsels, and a directory with files and a program.
struct Fixture {
    morsels: TempDir,
    files: Directory,
}

impl Fixture {
    fn new() -> Fixture {
        library();
        Fixture {
            morsels: tempfile::tempdir_in("/dev/shm").unwrap(),
            files: Directory::empty(),
        }
    }

    /// With the program `maps`; `None` without a C compiler.
    fn with_program() -> Option<Fixture> {
        let fixture = Fixture::new();
        fixture.compile("maps", PROGRAM, &[]).then_some(fixture)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.files.path(name)
    }

    fn file(&self, name: &str, content: &[u8]) -> String {
        let path = self.files.write(name, content);
        path.into_os_string().into_string().unwrap()
    }

    /// Compiles a program; false without a C compiler.
    fn compile(&self, name: &str, source: &str, flags: &[&str]) -> bool {
        let file = self.files.write(format!("{name}.c"), source);
        let options = [&["-O1"], flags].concat();
        compile_where_possible(&file, &self.path(name), &options)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.files.tollfree(arguments);
        command.env("TOLLFREE_MORSELS", self.morsels.path());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// The JSON document of a successful command.
    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[&["morsel", "--json"], arguments].concat());
        assert!(output.status.success(), "{output:?}");
        let document = serde_json::from_slice(&output.stdout).unwrap();
        schema::check("morsel", &document);
        document
    }

    /// The summary of a run, which keeps to its schema.
    fn summary(&self) -> Value {
        let summary = self.files.json("s.json");
        schema::check("run", &summary);
        summary
    }

    /// The directory of our own records, created if it does not exist.
    fn records(&self) -> PathBuf {
        let user = rustix::process::geteuid().as_raw().to_string();
        let records = self.morsels.path().join(".tollfree").join(user);
        fs::create_dir_all(&records).unwrap();
        fs::set_permissions(&records, fs::Permissions::from_mode(0o700)).unwrap();
        records
    }

    /// The names of the morsels.
    fn names(&self) -> Vec<String> {
        let list = self.json(&["ls"]);
        let name = |morsel: &Value| morsel["name"].as_str().unwrap().to_owned();
        list["morsels"]
            .as_array()
            .unwrap()
            .iter()
            .map(name)
            .collect()
    }
}

fn content(size: usize) -> Vec<u8> {
    (0..size as u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect()
}

#[test]
fn a_file_comes_and_goes() {
    let fixture = Fixture::new();
    let model = fixture.file("model", &content(5_000_000));
    let put = fixture.json(&["put", &model]);
    assert_eq!(
        (put["filled"].as_bool(), put["kind"].as_str()),
        (Some(true), Some("tmpfs"))
    );
    assert_eq!(
        fs::read(fixture.morsels.path().join("model")).unwrap(),
        content(5_000_000)
    );
    assert_eq!(fixture.json(&["put", &model])["filled"], false);
    let text = stdout(&fixture.run(&["morsel", "ls"]));
    assert!(text.contains("1 morsel") && text.contains(&model), "{text}");
    let stat = &fixture.json(&["stat", "model"])["morsels"][0];
    assert_eq!(stat["source"], model);
    assert_eq!(
        (&stat["source_is"], &stat["sealed"]),
        (&"same".into(), &true.into())
    );
    let pages = |name: &str| stat[name].as_u64().unwrap();
    assert_eq!(pages("huge") + pages("small"), pages("allocated"));
    fixture.file("model", b"other");
    assert_eq!(
        fixture.json(&["stat", "model"])["morsels"][0]["source_is"],
        "changed"
    );
    let text = stdout(&fixture.run(&["morsel", "stat", "model"]));
    assert!(
        text.contains("(changed)") && text.contains("mode bits"),
        "{text}"
    );
    assert_eq!(fixture.json(&["rm", "model"])["removed"][0], "model");
    assert_eq!(fixture.names(), [""; 0]);
}

#[test]
fn mapping_processes_are_counted() {
    let fixture = Fixture::new();
    let model = fixture.file("model", &content(10_000));
    fixture.json(&["put", &model]);
    let path = fixture.morsels.path().join("model");
    let program = "import mmap, sys\n\
        file = open(sys.argv[1], 'rb')\n\
        m = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)\n\
        print('mapped', flush=True)\n\
        sys.stdin.read()";
    let mut python = Command::new("python3");
    python.args(["-c", program]).arg(path);
    python.stdin(Stdio::piped());
    if !has_program("python3") {
        eprintln!("skipped: no python3");
        return;
    }
    let mut running = Running::start(&mut python);
    assert_eq!(running.line(), "mapped");
    assert_eq!(
        fixture.json(&["stat", "model"])["morsels"][0]["mapped_by"],
        1
    );
    // A morsel in use is not removed to make room.
    let other = fixture.file("other", &content(10_000));
    let output = fixture.run(&["morsel", "put", &other, "--limit", "12K"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(stderr(&output).contains("no room"), "{output:?}");
    let output = fixture.run(&["morsel", "rm", "model"]);
    assert!(
        stderr(&output).contains("a process still maps it"),
        "{output:?}"
    );
    drop(running.child.stdin.take());
    assert!(running.child.wait().unwrap().success());
    let put = fixture.json(&["put", &other, "--limit", "12K"]);
    assert_eq!(put["filled"], true);
}

#[test]
fn a_limit_removes_what_was_used_least_recently() {
    let fixture = Fixture::new();
    for name in ["first", "second"] {
        fixture.json(&["put", &fixture.file(name, &content(9000)), "--limit", "24K"]);
        // Times of use have the resolution of the kernel's clock.
        sleep(Duration::from_millis(20));
    }
    fs::read(fixture.morsels.path().join("first")).unwrap();
    let times = fs::FileTimes::new().set_accessed(std::time::SystemTime::now());
    let first = File::open(fixture.morsels.path().join("first")).unwrap();
    first.set_times(times).unwrap();
    drop(first);
    let put = fixture.json(&[
        "put",
        &fixture.file("third", &content(9000)),
        "--limit",
        "24K",
    ]);
    assert_eq!(put["removed"], serde_json::json!(["second"]));
    assert_eq!(fixture.names(), ["first", "third"]);
}

#[test]
fn mistakes_are_named_with_their_exit_code() {
    let fixture = Fixture::new();
    let file = fixture.file("file", b"x");
    let empty = fixture.file("empty", b"");
    let cases: [(&[&str], i32, &str); 12] = [
        (&["put", "./nowhere"], 1, "./nowhere: No such file"),
        (&["put", "/dev/null"], 3, "/dev/null: is not a regular file"),
        (&["put", &empty], 3, "is empty"),
        (&["put", &file, "--name", "a/b"], 2, "slash"),
        (&["put", &file, "--limit", "lots"], 2, "lots"),
        (&["put", &file, "--limit", "1K"], 4, "no room for 4 KiB"),
        (
            &["put", &file, "--to", "/nowhere"],
            4,
            "morsel mount /nowhere",
        ),
        (&["put", &file, "--to", "/proc"], 4, "is on proc"),
        (&["ls", &file], 3, "is not a directory"),
        (&["stat", "nothing"], 1, "no such morsel"),
        (&["rm", "nothing"], 1, "no such morsel"),
        (&["seal", ".."], 2, "names a directory"),
    ];
    for (arguments, code, says) in cases {
        let output = fixture.run(&[&["morsel"], arguments].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(says), "{arguments:?}: {said}");
        assert_eq!(
            said.lines().count(),
            if code == 2 { said.lines().count() } else { 1 },
            "{said}"
        );
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    assert_eq!(fixture.names(), [""; 0]);
}

/// A put that waits for another one's lock.
fn waiting(fixture: &Fixture) -> (File, Child) {
    let records = fixture.records();
    let lock = File::open(&records).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let file = fixture.file("file", b"x");
    let mut put = fixture.command(&["morsel", "put", &file]);
    put.stdout(Stdio::null()).stderr(Stdio::piped());
    let child = put.spawn().unwrap();
    let fds = format!("/proc/{}/fd", child.id());
    wait_until("the put that waits", || {
        let mut fds = fs::read_dir(&fds).into_iter().flatten().flatten();
        fds.any(|fd| fs::read_link(fd.path()).is_ok_and(|to| to == records))
    });
    (lock, child)
}

#[test]
fn an_interrupted_copy_is_130() {
    let fixture = Fixture::new();
    let (lock, child) = waiting(&fixture);
    interrupt(child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_eq!(stderr(&output), "tollfree: interrupted\n");
    drop(lock);
    assert_eq!(fixture.names(), [""; 0]);
}

#[test]
fn a_copy_waits_for_its_turn() {
    let fixture = Fixture::new();
    let (lock, child) = waiting(&fixture);
    drop(lock);
    assert!(child.wait_with_output().unwrap().status.success());
    assert_eq!(fixture.names(), ["file"]);
}

#[test]
fn a_killed_copy_leaves_nothing() {
    let fixture = Fixture::new();
    let path = fixture.path("large");
    // Sparse: much to copy, nothing to store.
    File::create(&path).unwrap().set_len(1 << 30).unwrap();
    let mut put = fixture.command(&["morsel", "put", path.to_str().unwrap()]);
    let mut child = put.spawn().unwrap();
    let maps = format!("/proc/{}/maps", child.id());
    let directory = fixture.morsels.path().to_str().unwrap().to_owned();
    wait_until("the copy", || {
        fs::read_to_string(&maps).is_ok_and(|maps| maps.contains(&directory))
    });
    child.kill().unwrap();
    let status = child.wait().unwrap();
    if status.success() {
        eprintln!("skipped: the copy was faster than its end");
        return;
    }
    assert_eq!(status.signal(), Some(9));
    assert_eq!(fixture.names(), [""; 0]);
    assert_eq!(fs::read_dir(fixture.records()).unwrap().count(), 0);
}

/// Runs shell commands in a private mount namespace, in a directory with an empty directory `m`;
/// `None` if that is not allowed.
fn with_mounts(fixture: &Fixture, script: &str) -> Option<Output> {
    let try_it = "mount -t tmpfs none m; umount m";
    in_mount_namespace(
        fixture,
        &["--map-root-user"],
        Path::new("m"),
        try_it,
        script,
    )
}

/// Runs shell commands as root in a private mount namespace; `None` if that is not possible.
fn with_root_mounts(fixture: &Fixture, try_it: &str, script: &str) -> Option<Output> {
    in_mount_namespace(fixture, &[], fixture.morsels.path(), try_it, script)
}

/// `try_it` tests whether the script's requirements are met: mounts, a file system.
fn in_mount_namespace(
    fixture: &Fixture,
    options: &[&str],
    morsels: &Path,
    try_it: &str,
    script: &str,
) -> Option<Output> {
    const ALLOWED: &str = "it can be had\n";
    let mut unshare = Command::new("unshare");
    unshare.args(options).args(["--mount", "sh", "-euc"]);
    unshare.arg(format!("mkdir m; {try_it}; echo it can be had\n{script}"));
    unshare
        .env("T", tollfree())
        .env("TOLLFREE_MORSELS", morsels);
    let mut output = unshare.current_dir(&fixture.files).output().ok()?;
    let Some(rest) = output.stdout.strip_prefix(ALLOWED.as_bytes()) else {
        eprintln!("skipped: {try_it}: {output:?}");
        return None;
    };
    output.stdout = rest.to_vec();
    Some(output)
}

#[test]
fn a_full_file_system_is_4_and_nothing_is_left() {
    let fixture = Fixture::new();
    fixture.file("small", &content(1 << 20));
    fixture.file("large", &content(8 << 20));
    let script = "mount -t tmpfs -o size=4M none m\n\
        $T morsel put small >/dev/null; exec 3<m/small\n\
        s=0; $T morsel put large || s=$?\n\
        ls -A m m/.tollfree/0 | wc -l; df --output=used m | tail -n 1; exit $s";
    let Some(output) = with_mounts(&fixture, script) else {
        return;
    };
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(stderr(&output).contains("no room for 8 MiB"), "{output:?}");
    let left: Vec<String> = stdout(&output)
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    // Two headings, an empty line, one name, one record, and the hidden directory.
    assert_eq!(left, ["6", "1024"]);
}

#[test]
fn mount_says_what_it_mounted() {
    let fixture = Fixture::new();
    let script = "$T morsel mount --size 8M; $T morsel mount; $T --json morsel mount\n\
        $T morsel mount --kind hugetlbfs || test $? = 2\n\
        grep huge=always /proc/self/mounts | grep -c 'size=8192k'";
    let Some(output) = with_mounts(&fixture, script) else {
        return;
    };
    if stdout(&output).contains("morselfs, ") {
        eprintln!("skipped: this kernel has morselfs");
        return;
    }
    assert!(output.status.success(), "{output:?}");
    let text = stdout(&output);
    assert!(
        text.contains("tmpfs, 2 MiB pages\n  not morselfs: "),
        "{text}"
    );
    assert!(text.contains("already exists"), "{text}");
    assert!(text.ends_with("\n1\n"), "{text}");
    let json = &text[text.find('{').unwrap()..=text.rfind('}').unwrap()];
    let report: Value = serde_json::from_str(json).unwrap();
    schema::check("morsel", &report);
    assert_eq!(
        (&report["mounted"], &report["page"]),
        (&false.into(), &(2 << 20).into())
    );
}

/// A user without the right to mount is told the alternative.
#[test]
fn users_are_told_what_they_can_do_without_root() {
    let fixture = Fixture::new();
    if !has_nobody() {
        return;
    }
    fs::copy(tollfree(), fixture.path("tollfree")).unwrap();
    set_mode(fixture.files.as_path(), 0o755);
    let own = tempfile::tempdir_in(fixture.files.as_path()).unwrap();
    std::os::unix::fs::chown(own.path(), Some(65534), None).unwrap();
    // Without and with the right to create the directory.
    for directory in [fixture.path("m"), own.path().join("m")] {
        let mut command = as_nobody(&fixture.path("tollfree"));
        let mount = command.args(["morsel", "mount"]).arg(&directory);
        let output = mount.output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(4), "{said}");
        let hint = format!("`sudo tollfree morsel mount {}`", directory.display());
        assert!(
            said.contains(&hint) && said.contains("mkdir /dev/shm/morsels"),
            "{said}"
        );
    }
}

/// A directory on tmpfs needs no mount.
#[test]
fn a_missing_directory_in_memory_needs_only_to_be_made() {
    let fixture = Fixture::new();
    fixture.file("file", b"x");
    let script = "mount -t tmpfs none m; $T morsel put file --to m/a/b || exit $?";
    let Some(output) = with_mounts(&fixture, script) else {
        return;
    };
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(
        said.contains("m/a/b: no such directory; `mkdir -p m/a/b` creates one"),
        "{said}"
    );
}

#[test]
fn huge_pages_of_tmpfs_are_counted() {
    let fixture = Fixture::new();
    fixture.file("model", &content(9 << 20));
    let script = "$T morsel mount --kind tmpfs --size 20M >&2; $T morsel put model >&2\n\
        sed -n 's/^ShmemHugePages: *\\([0-9]*\\) kB/\\1/p' /proc/meminfo; $T --json morsel stat model";
    let Some(output) = with_mounts(&fixture, script) else {
        return;
    };
    if !stderr(&output).contains("tmpfs, 2 MiB pages") {
        eprintln!("skipped: no huge pages in tmpfs: {output:?}");
        return;
    }
    let text = stdout(&output);
    let (of_machine, report) = text.split_once('\n').unwrap();
    let report: Value = serde_json::from_str(report).unwrap();
    let morsel = &report["morsels"][0];
    let bytes = |name: &str| morsel[name].as_u64().unwrap();
    assert_eq!(
        bytes("huge") + bytes("small"),
        bytes("allocated"),
        "{morsel}"
    );
    assert_eq!(bytes("huge") % (2 << 20), 0, "{morsel}");
    // A machine with fragmented memory may have none free.
    let of_machine: u64 = of_machine.parse().unwrap();
    assert!(bytes("huge") > 0 || of_machine < 2 << 10, "{text}");
}

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

#[test]
fn by_hand_sealed_morsels_keep_writers_out() {
    let fixture = Fixture::new();
    let path = fixture.morsels.path().join("made");
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .open(path)
        .unwrap();
    file.write_all(b"content").unwrap();
    let output = fixture.run(&["morsel", "seal", "made"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr(&output).contains("a writer"), "{output:?}");
    drop(file);
    let sealed = fixture.json(&["seal", "made"]);
    assert_eq!(sealed["morsels"][0]["sealed"], true);
    assert_eq!(sealed["morsels"][0]["source"], Value::Null);
}

/// A command of an unprivileged user; only root can run one.
fn as_nobody(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--clear-groups"]);
    command.arg(program);
    command
}

/// Whether [`as_nobody`] works here; prints a message if not.
fn has_nobody() -> bool {
    let output = as_nobody(Path::new("true")).output();
    let has = is_root() && output.is_ok_and(|it| it.status.success());
    if !has {
        eprintln!("skipped: not root, or no setpriv");
    }
    has
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A file of mode 0644 in a directory that only its owner can access.
#[test]
fn a_file_that_others_cannot_reach_is_not_copied_for_them() {
    let fixture = Fixture::new();
    if !has_nobody() {
        return;
    }
    set_mode(fixture.morsels.path(), 0o1777);
    set_mode(fixture.files.as_path(), 0o700);
    let model = fixture.file("model", b"weights");
    set_mode(Path::new(&model), 0o644);
    let put = fixture.json(&["put", &model]);
    let copy = put["morsels"][0]["path"].as_str().unwrap();
    let read_by_nobody = |path: &str| as_nobody(Path::new("cat")).arg(path).output().unwrap();
    assert!(!read_by_nobody(&model).status.success());
    let output = read_by_nobody(copy);
    assert!(!output.status.success(), "{output:?}");
    assert_eq!(put["morsels"][0]["mode"], "0400");
    let why = put["private"].as_str().unwrap();
    assert!(!why.is_empty());
    let text = stdout(&fixture.run(&["morsel", "put", &model]));
    assert!(text.contains("only you can read it: "), "{text}");
}

#[test]
fn the_lock_of_a_user_is_the_users_own() {
    let fixture = Fixture::new();
    fixture.json(&["put", &fixture.file("first", b"1")]);
    // A file that any user can open, any user can lock.
    let hidden = File::open(fixture.morsels.path().join(".tollfree")).unwrap();
    flock(&hidden, FlockOperation::LockExclusive).unwrap();
    let second = fixture.file("second", b"2");
    assert_eq!(
        fixture.json(&["put", &second, "--wait", "0"])["filled"],
        true
    );
    let own = File::open(fixture.records()).unwrap();
    flock(&own, FlockOperation::LockExclusive).unwrap();
    let third = fixture.file("third", b"3");
    let output = fixture.run(&["morsel", "put", &third, "--wait", "50ms"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let said = stderr(&output);
    let holder = format!("process {} (", std::process::id());
    assert!(said.contains(fixture.records().to_str().unwrap()), "{said}");
    assert!(said.contains(&holder), "{said}");
}

#[test]
fn a_hidden_directory_that_is_a_link_is_4() {
    let fixture = Fixture::new();
    let hidden = fixture.morsels.path().join(".tollfree");
    std::os::unix::fs::symlink(fixture.files.as_path(), &hidden).unwrap();
    let output = fixture.run(&["morsel", "put", &fixture.file("model", b"weights")]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(
        stderr(&output).contains(hidden.to_str().unwrap()),
        "{output:?}"
    );
    assert_eq!(fixture.names(), [""; 0]);
    assert_eq!(fixture.files.names().len(), 1);
}

#[test]
fn memory_is_left_to_other_programs() {
    let fixture = Fixture::new();
    let reserved = fixture.json(&["ls"])["reserved"].as_u64().unwrap();
    assert!(reserved >= 64 << 20);
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap();
    let total = meminfo.lines().find_map(|line| {
        let kilobytes = line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?;
        Some(kilobytes.parse::<u64>().unwrap() << 10)
    });
    // More than available, even if other processes free memory meanwhile; less than the total.
    let large = fixture.path("large");
    let size = total.unwrap() - reserved / 2;
    File::create(&large).unwrap().set_len(size).unwrap();
    let output = fixture.run(&["morsel", "put", large.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let said = stderr(&output);
    assert!(said.contains("are left to other programs"), "{said}");
    assert_eq!(fixture.names(), [""; 0]);
}

/// Two versions within one second, of the same size, that differ between the sampled blocks.
#[test]
fn file_systems_that_count_seconds_are_waited_for() {
    let fixture = Fixture::new();
    let try_it = "truncate -s 8M disk; mkfs.ext4 -q -I 128 disk 2>/dev/null; mount -o loop disk m";
    let script = "head -c 1M /dev/zero >m/model; $T morsel put m/model >&2\n\
        printf 1 | dd of=m/model bs=1 seek=110000 conv=notrunc 2>/dev/null\n\
        $T morsel put m/model >&2; cmp m/model $TOLLFREE_MORSELS/model; umount m";
    let Some(output) = with_root_mounts(&fixture, try_it, script) else {
        return;
    };
    assert!(output.status.success(), "{output:?}");
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

/// Maps a file with its own memory directly before and after it, and unmaps them in calls that span
/// two of them; the unmapped memory must be gone, and the rest intact. Exit status 0, and the sum
/// of the bytes.
const NEIGHBOURS: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#define PAGE 4096ul
#define HUGE (2ul << 20)
static int fd;
static long size;
static char *around(char **before, char **behind) {
    /* An address with room for all of them. */
    char *room = mmap(NULL, 16 * HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *wish = (char *)(((unsigned long)room + 2 * HUGE) & -HUGE);
    munmap(room, 16 * HUGE);
    char *p = mmap(wish, size, PROT_READ, MAP_PRIVATE, fd, 0);
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    char *end = (char *)(((unsigned long)p + size + HUGE - 1) & -HUGE);
    *before = p - 8 * PAGE;
    *behind = end;
    if (mmap(*before, 8 * PAGE, PROT_READ, flags, -1, 0) != *before ||
        mmap(*behind, 8 * PAGE, PROT_READ, flags, -1, 0) != *behind)
        exit(7);
    return p;
}
static void expect(char *address, int there) {
    unsigned char in;
    if ((mincore(address, PAGE, &in) == 0) != there)
        exit(there ? 6 : 5);
}
int main(int argc, char **argv) {
    struct stat is;
    char *before, *behind, *p;
    unsigned long sum = 0;
    fd = open(argv[1], O_RDONLY);
    if (fd < 0 || fstat(fd, &is) < 0)
        return 9;
    size = is.st_size;
    p = around(&before, &behind);
    for (long at = 0; at < size; at++)
        sum = sum * 31 + (unsigned char)p[at];
    printf("%lu\n", sum);
    /* The file and the memory before it. */
    if (munmap(before + 4 * PAGE, p + size - before - 4 * PAGE))
        return 1;
    expect(before, 1);
    expect(before + 4 * PAGE, 0);
    expect(p, 0);
    expect(p + size - PAGE, 0);
    expect(behind, 1);
    munmap(before, 4 * PAGE);
    munmap(behind, 8 * PAGE);
    /* Its second half and the memory after it, then the rest of all. */
    p = around(&before, &behind);
    if (munmap(p + HUGE, behind + 4 * PAGE - (p + HUGE)))
        return 2;
    expect(p, 1);
    expect(p + HUGE, 0);
    expect(behind, 0);
    expect(behind + 4 * PAGE, 1);
    if (munmap(before, behind + 8 * PAGE - before))
        return 3;
    expect(before, 0);
    expect(p, 0);
    expect(behind + 4 * PAGE, 0);
    return 0;
}
"#;

/// Pages of the hugetlb pool, returned on drop.
struct Pool(u64);

impl Pool {
    const COUNT: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    const FREE: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";

    fn number(path: &str) -> Option<u64> {
        fs::read_to_string(path).ok()?.trim().parse().ok()
    }

    /// Ensures that `pages` are free.
    fn reserve(pages: u64) -> Option<Pool> {
        let (count, free) = (Pool::number(Pool::COUNT)?, Pool::number(Pool::FREE)?);
        let pool = Pool(count);
        if free < pages {
            fs::write(Pool::COUNT, (count + pages - free).to_string()).ok()?;
        }
        (Pool::number(Pool::FREE)? >= pages).then_some(pool)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if Pool::number(Pool::COUNT) != Some(self.0) {
            let _ = fs::write(Pool::COUNT, self.0.to_string());
        }
    }
}

#[test]
fn huge_pages_of_a_pool_are_unmapped_with_their_neighbours() {
    let fixture = Fixture::new();
    let Some(_pool) = Pool::reserve(4) else {
        eprintln!("skipped: no pool of huge pages here");
        return;
    };
    if !fixture.compile("neighbours", NEIGHBOURS, &[]) {
        return;
    }
    let model = fixture.file("model", &content(3 << 20));
    let plain = Command::new(fixture.path("neighbours"))
        .arg(&model)
        .output();
    let plain = plain.unwrap();
    assert_eq!(plain.status.code(), Some(0), "{plain:?}");
    let try_it = "mount -t hugetlbfs -o pagesize=2M none m";
    let script = "$T run --morsel model --morsels m --summary s.json -- ./neighbours model";
    let Some(output) = with_root_mounts(&fixture, try_it, script) else {
        return;
    };
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(output.stdout, plain.stdout);
    let summary = fixture.summary();
    let morsel = &summary["morsels"][0];
    assert_eq!(
        (&morsel["kind"], &morsel["mappings"]),
        (&"hugetlbfs".into(), &2.into()),
        "{output:?}"
    );
}

/// Users share their own copies and root's. Runs only as root.
#[test]
fn what_another_user_put_there_is_not_served() {
    let fixture = Fixture::new();
    if !has_nobody() {
        return;
    }
    // In a directory that every user can access, unlike the build directory.
    fs::copy(tollfree(), fixture.path("tollfree")).unwrap();
    for (directory, mode) in [
        (fixture.morsels.path(), 0o1777),
        (fixture.files.as_path(), 0o755),
    ] {
        set_mode(directory, mode);
    }
    let model = fixture.file("model", b"weights");
    let run_by_nobody = |arguments: &[&str]| {
        let mut command = as_nobody(&fixture.path("tollfree"));
        command.env("TOLLFREE_MORSELS", fixture.morsels.path());
        command.args(arguments).output().unwrap()
    };
    let put = ["morsel", "put", &model];
    // Root creates the hidden directory, as `morsel mount` does: its owner may remove its contents.
    if fixture.json(&["put", &fixture.file("other", b"other")])["private"].is_string() {
        eprintln!("skipped: others see other file systems here");
        return;
    }
    fixture.json(&["rm", "other"]);
    assert!(run_by_nobody(&put).status.success());
    // Root makes its own copy, which is shared with all users; they cannot remove it.
    assert_eq!(fixture.json(&put[1..])["filled"], true);
    let names = fixture.names();
    assert!(
        names.len() == 2 && names[1].starts_with("model~"),
        "{names:?}"
    );
    let output = run_by_nobody(&["morsel", "rm", &names[1]]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr(&output).contains("not permitted"), "{output:?}");
    let removed = run_by_nobody(&["morsel", "rm", "model"]);
    assert!(removed.status.success(), "{removed:?}");
    let output = run_by_nobody(&put);
    assert!(stdout(&output).contains("already exists"), "{output:?}");
    // Only root knows the file that it is a copy of.
    let output = run_by_nobody(&["morsel", "ls"]);
    assert!(output.status.success(), "{output:?}");
    let text = stdout(&output);
    assert!(text.contains(&names[1]) && !text.contains(&model), "{text}");
    assert_eq!(fixture.names(), names[1..]);
}

/// The examples work on every kernel.
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

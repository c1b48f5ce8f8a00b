// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machines that lack something: huge pages, perf, QEMU, the right to act on a process, memory,
//! disk space. The reports of `doctor` on such machines are in tests/doctor.rs.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use toll_act::install;
use toll_testkit::directory::UNABLE;
use toll_testkit::machine::{is_root, thp_is_madvise};
use toll_testkit::output::{assert_fails, json, stderr, stdout};
use toll_testkit::process::is_running;
use toll_testkit::{schema, tool};

use crate::place::Place;

/// A short tune.
const TUNE: &str = "--json tune --within 8s --force -o out -- ./faulty gains runs 1000";

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// Lines of `file` with the value of PR_SET_THP_DISABLE in each run of `./faulty switch`.
fn switches(place: &Place, file: &str) -> Vec<i32> {
    let mut lines: Vec<i32> = place
        .read(file)
        .lines()
        .map(|l| l.parse().unwrap())
        .collect();
    lines.sort_unstable();
    lines
}

/// The THP setting as tollfree reads it; the kernel's own is unchanged.
fn with_thp(place: &Place, setting: &str, line: &str) -> Option<Output> {
    place.write("setting", format!("{setting}\n"));
    let enabled = "/sys/kernel/mm/transparent_hugepage/enabled";
    place.in_own_mounts(&format!(
        "mount --bind setting {enabled} || exit {UNABLE}\n{line}"
    ))
}

/// Sets PR_SET_THP_DISABLE, with these flags, in the process of a command.
fn disable_thp(command: &mut Command, flags: libc::c_ulong) -> &mut Command {
    // SAFETY: the closure makes one system call, in a process of its own.
    unsafe {
        command.pre_exec(
            move || match libc::prctl(libc::PR_SET_THP_DISABLE, 1, flags, 0, 0) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            },
        )
    }
}

/// Whether huge pages can be disabled for memory that is not advised: Linux 6.18.
fn can_limit_to_advised() -> bool {
    disable_thp(&mut Command::new("true"), 2).status().is_ok()
}

#[test]
fn on_a_host_at_always_the_variants_are_never_as_it_is_and_the_plan_alone() {
    let place = Place::new();
    let line = "$TOLLFREE --json compare -n 1 --plan none.txt -- ./faulty switch file 1000";
    let Some(output) = with_thp(&place, "[always] madvise never", line) else {
        return;
    };
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let compared = schema::json("compare", &output);
    let variants = compared["variants"].as_array().unwrap().iter();
    let names: Vec<&str> = variants
        .map(|variant| variant["name"].as_str().unwrap())
        .collect();
    // Two runs of each variant; the kernel's flag for "not advised" is 2.
    if can_limit_to_advised() {
        assert_eq!(names, ["none", "plan", "all", "never", "plan-only"]);
        assert_eq!(switches(&place, "file"), [0, 0, 0, 0, 0, 0, 1, 1, 3, 3]);
    } else {
        assert_eq!(names, ["none", "plan", "all", "never"]);
        assert_eq!(switches(&place, "file"), [0, 0, 0, 0, 0, 0, 1, 1]);
    }
}

/// The setting for pages of 64 KiB.
const SMALLER: &str = "/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled";

/// Runs a line with a file in place of that setting.
fn with_smaller_pages(place: &Place, options: &str, line: &str) -> Option<Output> {
    place.write("smaller", "always inherit madvise [never]\n");
    place.in_own_mounts(&format!(
        "mount --bind smaller {SMALLER} && mount -o remount,bind,{options} {SMALLER} || exit {UNABLE}\n{line}"
    ))
}

#[test]
fn smaller_pages_are_set_for_their_runs_only() {
    let place = Place::new();
    let line = format!(
        "$TOLLFREE --json tune --mthp 64K --any-output --within 20s -o out -- \
         sh -c 'cat {SMALLER} >>seen; echo >>seen; exec ./faulty gains runs 1000'"
    );
    let Some(output) = with_smaller_pages(&place, "rw", &line) else {
        return;
    };
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let answer = schema::json("tune", &output);
    let variants = answer["upper_bound"]["variants"].as_array().unwrap();
    let smaller = variants.iter().find(|it| it["name"] == "mthp-64k");
    let smaller = smaller.unwrap_or_else(|| panic!("{answer}"));
    assert_eq!(smaller["pages"], serde_json::json!(["mthp"]));
    let runs = smaller["runs"].as_array().unwrap().len();
    let seen = place.read("seen");
    let with = seen.lines().filter(|line| *line == "always").count();
    assert!(runs > 0 && with >= runs, "{runs} runs: {seen}");
    assert!(seen.lines().any(|line| line.contains("never")), "{seen}");
    assert_eq!(place.read("smaller"), "never");
    let kinds = answer["kinds"].as_array().unwrap();
    let kind = kinds.iter().find(|kind| kind["pages"] == "mthp").unwrap();
    assert_eq!(kind["tried"], true, "{kind}");
}

#[test]
fn smaller_pages_that_cannot_be_set_are_refused_before_anything_runs() {
    let place = Place::new();
    let tune = |size: &str| {
        let line = format!("tune --mthp {size} -o out -- ./faulty gains runs 1000");
        place.run(&words(&line))
    };
    assert_fails(&tune("48K"), 2, &["--mthp 48 KiB: not one of 16K, 32K"]);
    assert_fails(&tune("2M"), 2, &["--mthp 2 MiB: not one of 16K, 32K"]);
    let line = "$TOLLFREE tune --mthp 64K -o out -- ./faulty gains runs 1000";
    if let Some(output) = with_smaller_pages(&place, "ro", line) {
        assert_fails(
            &output,
            4,
            &["hugepages-64kB/enabled: cannot be changed: Read-only"],
        );
    }
    assert!(!place.path("out").exists() && !place.path("runs").exists());
}

/// The parent of tollfree may have disabled huge pages, which the program inherits.
#[test]
fn variants_with_huge_pages_get_back_what_the_parent_switched_off() {
    let place = Place::new();
    let line = "--json compare -n 1 --plan none.txt -- ./faulty switch file 1000";
    let mut command = place.tollfree(&words(line));
    let output = disable_thp(&mut command, 0).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // "none" is the program as it would run without tollfree.
    assert_eq!(switches(&place, "file"), [0, 0, 0, 0, 1, 1]);
    assert!(
        json(&output)["notes"]
            .to_string()
            .contains("PR_SET_THP_DISABLE")
    );
}

/// A program that is already huge: its gain is measured against a run without huge pages.
#[test]
fn a_program_that_is_huge_already_is_told_what_that_brings() {
    if !thp_is_madvise() {
        return;
    }
    let place = Place::new();
    let line = "tune --within 60s -o out -- ./faulty advises - 3000000";
    let output = place.run(&words(line));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let answer = place.json("out/tune.json");
    schema::check("tune", &answer);
    let today = &answer["today"];
    assert_eq!(today["thp"], "madvise");
    assert!(today["huge_bytes"].as_u64().unwrap() >= 30 << 20, "{today}");
    let variants = answer["upper_bound"]["variants"].as_array().unwrap();
    assert_eq!(variants[1]["name"], "never");
    let text = stdout(&output);
    let mut said = vec!["already huge-page-backed: ", "% (30 MiB of 48"];
    // Without time for two rounds, nothing is measured.
    if answer["upper_bound"]["pairs"].as_u64().unwrap() >= 2 {
        let gain = today["gain"]["median"].as_f64();
        assert!(gain.is_some_and(|median| median > 1.02), "{today}");
        said.push("times as fast as without any");
    }
    for part in said {
        assert_eq!(text.matches(part).count(), 1, "{part}: {text}");
    }
}

/// The relevant memory of PostgreSQL is shared; tune cannot test its own setting.
#[test]
fn the_switch_of_postgres_is_named_though_nothing_can_be_measured() {
    let place = Place::new();
    fs::copy(place.path("faulty"), place.path("postgres")).unwrap();
    let output = place.run(&words(
        "--json tune --within 8s -o out -- ./postgres exit - 1000",
    ));
    let answer = json(&output);
    // Listed with the advice, or as a note if nothing is advised.
    let named = match answer["advice"].as_str() {
        Some("apply") => answer["permanent"].to_string(),
        _ => answer["notes"].to_string(),
    };
    assert!(
        named.contains("shared memory in reserved huge pages (huge_pages = on)"),
        "{named}"
    );
}

#[test]
fn hosts_without_huge_pages_are_named() {
    let place = Place::new();
    let never = with_thp(
        &place,
        "always madvise [never]",
        &format!("$TOLLFREE {TUNE}"),
    );
    if let Some(output) = never {
        let today = json(&output)["today"].clone();
        assert_eq!(
            (&today["thp"], &today["huge_bytes"]),
            (&"never".into(), &0.into())
        );
    }
    let mut command = place.tollfree(&words(TUNE));
    let output = disable_thp(&mut command, 0).output().unwrap();
    let answer = schema::json("tune", &output);
    assert_eq!(answer["today"]["switched_off"], "parent", "{answer}");
    // The variant with everything huge shows it; without time for two rounds it is unknown.
    let median = answer["speedup_all"]["median"].as_f64();
    if let Some(median) = median.filter(|_| thp_is_madvise()) {
        assert!(median > 1.05, "{answer}");
    }
}

/// A machine with these virtio devices: the id and feature bits of each.
fn with_devices(place: &Place, devices: &[(&str, &str)], line: &str) -> Option<Output> {
    for (number, (id, features)) in devices.iter().enumerate() {
        let directory = format!("devices/virtio{number}");
        fs::create_dir_all(place.path(&directory)).unwrap();
        place.write(format!("{directory}/device"), format!("{id}\n"));
        place.write(format!("{directory}/features"), format!("{features}\n"));
    }
    fs::create_dir_all(place.path("devices")).unwrap();
    let mount = format!("mount --bind devices /sys/bus/virtio/devices || exit {UNABLE}");
    place.in_own_mounts(&format!(
        "{mount}\nexport XDG_CACHE_HOME=$PWD/cache\n{line}"
    ))
}

/// Without free-page reporting, and without a measurement that cold blocks are expensive, warming
/// would only evict other programs' page cache.
#[test]
fn memory_is_warmed_only_where_the_host_takes_idle_memory_back() {
    for (devices, warms) in [
        (&[][..], false),
        (&[("0x0005", "011000000")], false),
        (&[("0x0005", "011001000")], true),
    ] {
        let place = Place::new();
        let lines = format!(
            "$TOLLFREE compare --plan none.txt -n 2 -- ./faulty gains runs 1000 >text || exit 1
             $TOLLFREE {TUNE}"
        );
        let Some(output) = with_devices(&place, devices, &lines) else {
            return;
        };
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let answer = schema::json("tune", &output);
        assert_eq!(answer["warming"]["on"], warms, "{}", answer["warming"]);
        assert_eq!(answer["warmed_bytes"].as_u64().unwrap() > 0, warms);
        let reason = answer["warming"]["reason"].as_str().unwrap();
        assert!(reason.contains("free-page reporting"), "{reason}");
        let said = match warms {
            true => "memory is warmed before each run: free-page reporting",
            false => "memory is not warmed before runs: no free-page reporting",
        };
        assert!(place.read("text").contains(said), "{}", place.read("text"));
    }
}

/// The kernel's files report huge pages as disabled; the requested command still runs.
#[test]
fn a_host_with_thp_never() {
    let place = Place::new();
    place.write("never", "always madvise [never]\n");
    place.write("list", "17592186044416\n");
    let enabled = "/sys/kernel/mm/transparent_hugepage/enabled";
    let line = format!(
        "mount --bind never {enabled} || exit {UNABLE}
         $TOLLFREE run --plan list -- sh -c 'exit 7' 2>run.err; echo $? >run.code
         $TOLLFREE record --source accessed -o profile.json -- ./faulty 2>/dev/null >&2; echo $? >record.code
         $TOLLFREE --json doctor >doctor.json
         $TOLLFREE {TUNE}"
    );
    let Some(output) = place.in_own_mounts(&line) else {
        return;
    };
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    schema::json("tune", &output);
    assert_eq!(place.read("run.code"), "7\n", "{}", place.read("run.err"));
    assert_eq!(place.read("record.code"), "5\n");
    let doctor = place.json("doctor.json");
    let checks = doctor["checks"].as_array().unwrap().iter();
    let thp = checks
        .clone()
        .find(|check| check["name"] == "transparent huge pages")
        .unwrap();
    assert_ne!(thp["state"], "ok", "{thp}");
}

#[test]
fn no_perf_is_said_before_anything_runs() {
    let place = Place::new();
    let (output, profile) = place.record("perf", &["touch", "ran"]);
    if output.status.success() {
        eprintln!("skipped: perf works here");
        return;
    }
    assert_fails(&output, 125, &["perf"]);
    assert!(profile.is_null() && !place.path("ran").exists());
}

/// Not in PATH and not in the cache.
fn without_qemu(place: &Place, arguments: &[&str]) -> Output {
    let mut command = place.tollfree(arguments);
    command.env("PATH", place.path("bin"));
    command.env("XDG_CACHE_HOME", place.path("cache"));
    command.env_remove("TOLLFREE_LIBDIR");
    command.output().unwrap()
}

#[test]
fn no_qemu_is_said_and_auto_takes_the_next_source() {
    let place = Place::new();
    fs::create_dir(place.path("bin")).unwrap();
    let sim = "record --source sim -o profile.json -- ./faulty sleep ran";
    let output = without_qemu(&place, &words(sim));
    assert_fails(&output, 125, &["qemu-x86_64 is missing", "qemu-user"]);
    assert!(!place.path("ran").exists() && !place.path("profile.json").exists());
    let auto = "record -o profile.json -- ./faulty";
    let output = without_qemu(&place, &words(auto));
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    let source = place.json("profile.json")["source"].clone();
    match source.as_str() {
        Some("perf") => {}
        other => {
            assert_eq!(other, Some("accessed"));
            assert!(stderr(&output).contains("qemu-x86_64 is missing"));
        }
    }
}

/// Plugins, and a QEMU that loads only `loaded`. It writes its arguments to `ran` instead of running
/// anything.
fn simulator_that_loads(place: &Place, loaded: &str) {
    for plugin in install::PLUGINS {
        place.write(plugin, "");
    }
    let qemu = format!(
        "#!/bin/sh\n\
         case $* in\n\
         --version) echo 'qemu-x86_64 version 12.3.4';;\n\
         -h) echo ' -plugin file';;\n\
         *check=on*) case $2 in\n\
           */{loaded},*) echo TOLLSIM1;;\n\
           *) echo 'the plugin is too old' >&2; exit 1;;\n\
           esac;;\n\
         *) echo \"$*\" >ran;;\n\
         esac\n"
    );
    place.executable("qemu-x86_64", qemu);
}

/// Runs tollfree with the plugins and the QEMU of `place`.
fn with_simulator_of(place: &Place, line: &str) -> Output {
    let mut command = place.tollfree(&words(line));
    let mut places = place.as_path().as_os_str().to_owned();
    if let Some(more) = std::env::var_os("TOLLFREE_LIBDIR") {
        places.push(":");
        places.push(more);
    }
    command.env("TOLLFREE_LIBDIR", places).output().unwrap()
}

#[test]
fn a_qemu_runs_with_the_plugin_that_it_loads() {
    for plugin in install::PLUGINS {
        let place = Place::new();
        simulator_that_loads(&place, plugin);
        with_simulator_of(&place, "record --source sim -o p.json -- true");
        let ran = fs::read_to_string(place.path("ran")).unwrap();
        let option = format!("-plugin {}/{plugin},out=", place.as_path().display());
        assert!(ran.contains(&option), "{ran}");
    }
}

#[test]
fn a_qemu_of_another_interface_is_refused() {
    let place = Place::new();
    simulator_that_loads(&place, "none");
    let said = ["version 12.3.4", "(the plugin is too old)"];
    let output = with_simulator_of(&place, "record --source sim -o p.json -- true");
    assert_fails(&output, 125, &said);
    assert_fails(&output, 125, &["the simulator needs QEMU 6.0 to 11.x"]);
    assert!(!place.path("ran").exists() && !place.path("p.json").exists());

    let report = json(&with_simulator_of(&place, "doctor --json"));
    let checks = report["checks"].as_array().unwrap();
    let simulator = checks.iter().find(|it| it["name"] == "simulator").unwrap();
    assert_eq!(simulator["state"], "missing");
    let detail = simulator["detail"].as_str().unwrap();
    assert!(said.iter().all(|words| detail.contains(words)), "{detail}");
}

/// An installation without its library.
#[test]
fn no_preload_library_is_said_before_anything_runs() {
    let place = Place::new();
    fs::copy(tool::tollfree(), place.path("tollfree")).unwrap();
    place.write("list", "17592186044416\n");
    let mut command = Command::new(place.path("tollfree"));
    command.args(words("run --plan list -- touch ran"));
    command.env_remove("TOLLFREE_LIBDIR");
    command.env_remove("CARGO_MANIFEST_DIR");
    command.env("XDG_CACHE_HOME", place.path("cache"));
    let output = command.current_dir(place.as_path()).output().unwrap();
    assert_fails(&output, 125, &["libtoll_preload.so is missing"]);
    assert!(!place.path("ran").exists());
}

/// As in a container with a seccomp profile: ptrace and process_madvise give EPERM.
fn in_container(command: &mut Command) -> &mut Command {
    let forbid = || -> io::Result<()> {
        let statement = |code: u32, k: u32, jump: u8| libc::sock_filter {
            code: code as u16,
            jt: jump,
            jf: 0,
            k,
        };
        let refuse = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
        let (load, equal) = (
            libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
        );
        let answer = libc::BPF_RET | libc::BPF_K;
        let mut filter = [
            // The first word of a filter's input is the number of the system call.
            statement(load, 0, 0),
            statement(equal, libc::SYS_ptrace as u32, 2),
            statement(equal, libc::SYS_process_madvise as u32, 1),
            statement(answer, libc::SECCOMP_RET_ALLOW, 0),
            statement(answer, refuse, 0),
        ];
        let program = libc::sock_fprog {
            len: filter.len() as u16,
            filter: filter.as_mut_ptr(),
        };
        // SAFETY: the program outlives the call, and prctl only reads it.
        let done = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) == 0
        };
        match done {
            true => Ok(()),
            false => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure makes two system calls and allocates nothing.
    unsafe { command.pre_exec(forbid) }
}

#[test]
fn a_container_without_ptrace_and_process_madvise() {
    let place = Place::new();
    place.write("list", "17592186044416\n");
    let server = place.serve("serve");
    let pid = server.pid().to_string();
    let mut apply = place.tollfree(&["apply", "--plan", "list", "--pid", &pid]);
    let output = in_container(&mut apply).output().unwrap();
    // Nothing is mapped there, so no rights are needed.
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let tune = [
        "tune",
        "--for",
        "1s",
        "--within",
        "20s",
        "--workload",
        "true",
    ];
    let mut live = place.tollfree(&[&tune[..], &["-o", "live", "--pid", &pid]].concat());
    let output = in_container(&mut live).output().unwrap();
    if thp_is_madvise() {
        assert_fails(&output, 4, &["--pid", "ptrace"]);
        assert!(!place.path("live").exists(), "nothing half-written");
    }
    assert!(is_running(&pid), "the process lives on");
    // A child is still started, measured and advised from inside.
    let output = in_container(&mut place.tollfree(&words(TUNE))).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    schema::json("tune", &output);
    let mut run = place.tollfree(&["run", "--plan", "list", "--", "sh", "-c", "exit 7"]);
    let output = in_container(&mut run).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
}

#[test]
fn an_address_space_of_2_gib() {
    let place = Place::new();
    for line in [TUNE, "--json calibrate --within 4s -o costs.json"] {
        let output = place.shell(&format!("ulimit -v 2097152; exec $TOLLFREE {line}"));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    let costs = place.json("costs.json");
    schema::check("costs", &costs);
    assert!(!place.json("out/tune.json").is_null());
}

/// A memory control group for one test.
struct Group(std::path::PathBuf);

impl Group {
    /// `None`, with a message, if cgroups are not available.
    fn of(bytes: u64) -> Option<Group> {
        for (parent, limit) in [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
        ] {
            let name = format!("{parent}/tollfree-test-{}", std::process::id());
            let group = Group(name.into());
            let made = fs::create_dir(&group.0);
            if made.is_ok() && fs::write(group.0.join(limit), bytes.to_string()).is_ok() {
                return Some(group);
            }
        }
        eprintln!("skipped: no memory control group can be made");
        None
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// The limit counts as the machine's memory: no process is killed by the OOM killer.
#[test]
fn a_control_group_of_2_gib() {
    let Some(group) = Group::of(2 << 30) else {
        return;
    };
    let place = Place::new();
    let procs = group.0.join("cgroup.procs");
    for line in ["--json calibrate --within 10s -o costs.json", TUNE] {
        let output = place.shell(&format!(
            "echo $$ >{} || exit {UNABLE}; exec $TOLLFREE {line}",
            procs.display()
        ));
        if output.status.code() == Some(UNABLE) {
            eprintln!("skipped: {}", stderr(&output));
            return;
        }
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    let costs = place.json("costs.json");
    let measured = costs["walk"].as_array().unwrap().iter();
    assert!(measured.clone().count() > 0, "{costs}");
    assert!(costs["memory"].as_u64().unwrap() <= 2 << 30, "{costs}");
}

#[test]
fn a_full_disk_leaves_nothing_half_written() {
    if !is_root() {
        eprintln!("skipped: not root");
        return;
    }
    let place = Place::new();
    let (output, _) = place.record("accessed", &["./faulty"]);
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    fs::create_dir(place.path("full")).unwrap();
    let fixture = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/data/perf/intel-pebs.script.txt"
    );
    let line = format!(
        "mount -t tmpfs -o size=64k none full || exit {UNABLE}
         cat /dev/zero >full/fill 2>/dev/null
         $TOLLFREE plan profile.json -o full/plan; echo $?
         $TOLLFREE report profile.json --html full/page; echo $?
         $TOLLFREE import {fixture} -o full/profile; echo $?
         $TOLLFREE calibrate --within 1s -o full/costs; echo $?
         $TOLLFREE tune --within 5s -o full/out -- ./faulty gains runs 1000; echo $?
         ls -AR full"
    );
    let Some(output) = place.in_own_mounts(&line) else {
        return;
    };
    let said = stdout(&output);
    let codes: Vec<&str> = said.lines().filter(|line| line.len() == 1).collect();
    assert_eq!(codes, ["1"; 5], "{said}{}", stderr(&output));
    for name in ["plan", "page", "profile", "costs", "out"] {
        let name = format!("full/{name}");
        let about = |line: &str| line.contains(&name) && line.contains("No space");
        assert!(
            stderr(&output).lines().any(about),
            "{name}: {}",
            stderr(&output)
        );
    }
    let names: Vec<&str> = said.lines().skip_while(|line| *line != "full:").collect();
    let whole = |name: &&&str| !["full:", "fill", "out", "", "full/out:"].contains(name);
    assert_eq!(names.iter().find(whole), None, "{said}");
}

#[test]
fn an_answer_that_cannot_be_printed_is_an_error() {
    let place = Place::new();
    let (output, _) = place.record("accessed", &["./faulty"]);
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    let own = std::process::id().to_string();
    for line in [
        "--json doctor".to_owned(),
        "doctor".to_owned(),
        "plan profile.json".to_owned(),
        "--json plan profile.json".to_owned(),
        "report profile.json".to_owned(),
        "--json compare --plan none.txt -n 1 -- true".to_owned(),
        "compare --plan none.txt -n 1 -- true".to_owned(),
        format!("apply --plan none.txt --pid {own}"),
    ] {
        let mut command = place.tollfree(&words(&line));
        command.stdout(fs::File::options().write(true).open("/dev/full").unwrap());
        let output = command.output().unwrap();
        assert_fails(&output, 1, &["No space"]);
    }
}

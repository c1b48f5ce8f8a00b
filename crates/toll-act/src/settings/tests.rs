// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

/// The settings of a program with these libraries, variables and files.
fn settings(
    program: &str,
    libraries: &[&str],
    line: &str,
    env: &[(&str, &str)],
    files: &[(&str, &str)],
) -> Vec<(&'static str, String, Origin, bool)> {
    let traits = Traits {
        program: program.to_owned(),
        libraries: libraries.iter().map(|name| (*name).to_owned()).collect(),
        jemalloc_variable: None,
        ..Traits::default()
    };
    let command: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    let look_up = |list: &[(&str, &str)], name: &str| {
        let found = list.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let program = Program {
        traits: &traits,
        command: &command,
        env: &|name| look_up(env, name),
        file: &|name| look_up(files, name),
        is_go: false,
    };
    let of = |setting: Setting| (setting.of, setting.value, setting.origin, setting.advises);
    program.settings().into_iter().map(of).collect()
}

#[test]
fn each_program_has_its_setting_and_default() {
    let own = |name, libraries: &[&str]| settings(name, libraries, name, &[], &[]);
    let default = |of, value: &str, advises| (of, value.to_owned(), Origin::Default, advises);
    for server in ["redis-server", "redis-check-rdb"] {
        assert_eq!(own(server, &[]), [default("redis", "yes", false)]);
    }
    assert_eq!(own("postgres", &[]), [default("PostgreSQL", "try", false)]);
    let jvm = own("java", &["libjvm.so", "libc.so.6"]);
    assert_eq!(jvm, [default("JVM", "off", false)]);
    let numpy = own("python3", &["_multiarray_umath.cpython.so"]);
    assert_eq!(numpy, [default("numpy", "1", true)]);
    let jemalloc = own("app", &["libjemalloc.so.2", "libc.so.6"]);
    assert_eq!(jemalloc, [default("jemalloc", "default", false)]);
    let glibc = own("app", &["libc.so.6"]);
    assert_eq!(glibc, [default("glibc", "0", false)]);
    assert_eq!(own("app", &[]), []);
}

#[test]
fn the_command_line_wins_over_variables_and_files() {
    let line = "java -XX:-UseTransparentHugePages -XX:+UseTransparentHugePages -jar a";
    let env = [
        ("JAVA_TOOL_OPTIONS", "-XX:-UseTransparentHugePages"),
        ("MALLOC_CONF", "thp:never,thp:always,x:y"),
        ("GLIBC_TUNABLES", "a=b:glibc.malloc.hugetlb=1"),
        ("NUMPY_MADVISE_HUGEPAGE", "0"),
    ];
    let of = |libraries: &[&str], line| settings("app", libraries, line, &env, &[]);
    use Origin::{CommandLine, Environment, File};
    let setting = |of, value: &str, origin, advises| (of, value.to_owned(), origin, advises);
    let jvm = of(&["libjvm.so"], line);
    assert_eq!(jvm, [setting("JVM", "on", CommandLine, true)]);
    let jvm = of(&["libjvm.so"], "java -jar a");
    assert_eq!(jvm, [setting("JVM", "off", Environment, false)]);
    let jemalloc = of(&["libjemalloc.so.2"], "");
    assert_eq!(jemalloc, [setting("jemalloc", "always", Environment, true)]);
    let glibc = of(&["libc.so.6"], "");
    assert_eq!(glibc, [setting("glibc", "1", Environment, true)]);
    let numpy = of(&["_multiarray_umath.so"], "");
    assert_eq!(numpy, [setting("numpy", "0", Environment, false)]);

    let files = [
        ("postgresql.conf", "huge_pages = on\n"),
        ("redis.conf", "port 1\ndisable-thp no\n"),
    ];
    let in_files = |program, line| settings(program, &[], line, &[], &files);
    let postgres = in_files("postgres", "postgres -D data");
    assert_eq!(postgres, [setting("PostgreSQL", "on", File, false)]);
    let postgres = in_files("postgres", "postgres -c huge_pages=off");
    assert_eq!(postgres, [setting("PostgreSQL", "off", CommandLine, false)]);
    let redis = in_files("redis-server", "redis-server redis.conf");
    assert_eq!(redis, [setting("redis", "no", File, false)]);
    let redis = in_files("redis-server", "redis-server redis.conf --disable-thp yes");
    assert_eq!(redis, [setting("redis", "yes", CommandLine, false)]);
}

/// A backend's arguments are its title; the server has written its own ones to a file.
#[test]
fn a_backend_of_postgres_was_started_with_the_servers_options() {
    let opts = "/usr/lib/postgresql/15/bin/postgres \"-D\" \"data\" \"-c\" \"huge_pages=off\"\n";
    let files = [
        ("postmaster.opts", opts),
        ("postgresql.conf", "huge_pages = on\n"),
    ];
    let title = "postgres: app db [local] SELECT";
    let found = settings("postgres", &[], title, &[], &files);
    let off = ("PostgreSQL", "off".to_owned(), Origin::CommandLine, false);
    assert_eq!(found, [off]);
    let without = [
        ("postmaster.opts", "/bin/postgres \"-D\" \"huge_pages\"\n"),
        files[1],
    ];
    let found = settings("postgres", &[], title, &[], &without);
    let on = ("PostgreSQL", "on".to_owned(), Origin::File, false);
    assert_eq!(found, [on]);
}

// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

fn found(program: &str, libraries: &[&str], env: &[(&str, &str)]) -> Vec<Candidate> {
    found_in(program, libraries, env, &[])
}

fn found_in(
    program: &str,
    libraries: &[&str],
    env: &[(&str, &str)],
    versions: &[(&str, &str)],
) -> Vec<Candidate> {
    let version = |(name, version): &(&str, &str)| ((*name).to_owned(), version.parse().unwrap());
    let traits = Traits {
        program: program.to_owned(),
        libraries: libraries.iter().map(|l| (*l).to_owned()).collect(),
        jemalloc_variable: None,
        versions: versions.iter().map(version).collect(),
    };
    let look_up = |name: &str| {
        env.iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| (*value).to_owned())
    };
    candidates(&traits, &[OsString::from(program)], &look_up)
}

fn names(candidates: &[Candidate]) -> Vec<&'static str> {
    candidates.iter().map(|candidate| candidate.name).collect()
}

#[test]
fn a_program_on_glibc_gets_the_tunable_and_keeps_its_own() {
    let got = found(
        "xz",
        &["libc.so.6", "liblzma.so.5"],
        &[("GLIBC_TUNABLES", "a.b=c")],
    );
    assert_eq!(names(&got), ["glibc-tunable"]);
    let change = got[0].variant.as_ref().unwrap();
    let expected = (
        "GLIBC_TUNABLES".to_owned(),
        "a.b=c:glibc.malloc.hugetlb=1".to_owned(),
    );
    assert_eq!(change.env, [expected]);
    for part in ["export GLIBC_TUNABLES", "[Service]", "docker run -e"] {
        assert!(got[0].how.contains(part), "{}", got[0].how);
    }
}

#[test]
fn another_allocator_replaces_glibcs() {
    assert_eq!(
        names(&found("x", &["libc.so.6", "libjemalloc.so.2"], &[])),
        ["jemalloc-thp"]
    );
    assert_eq!(
        names(&found("x", &["libc.so.6", "libmimalloc.so.2"], &[])),
        ["mimalloc-large"]
    );
    assert!(found("static", &[], &[]).is_empty());
}

#[test]
fn java_gets_its_flag_where_the_jvm_reads_it() {
    let got = found("java", &["libc.so.6", "libjvm.so"], &[]);
    assert_eq!(names(&got), ["jvm-thp"]);
    let command = got[0]
        .variant
        .as_ref()
        .unwrap()
        .command(&["java".into(), "Main".into()]);
    assert_eq!(command[1], "-XX:+UseTransparentHugePages");
    let wrapped = found("launcher", &["libc.so.6", "libjvm.so"], &[]);
    assert_eq!(wrapped[0].variant, None);
}

#[test]
fn numpy_is_told_only_where_it_was_told_not_to() {
    let umath = "_multiarray_umath.cpython-311-x86_64-linux-gnu.so";
    let off = [("NUMPY_MADVISE_HUGEPAGE", "0")];
    assert_eq!(
        names(&found("python3", &["libc.so.6", umath], &off)),
        ["numpy-advises", "python-malloc", "glibc-tunable"]
    );
    assert_eq!(
        names(&found("python3", &["libc.so.6", umath], &[])),
        ["python-malloc", "glibc-tunable"]
    );
}

#[test]
fn redis_needs_both_its_own_switch_and_its_allocators() {
    let got = found("redis-server", &["libc.so.6", "libjemalloc.so.2"], &[]);
    assert_eq!(names(&got), ["redis-thp", "jemalloc-thp"]);
    let change = got[0].variant.as_ref().unwrap();
    assert_eq!(change.last_arguments, ["--disable-thp", "no"]);
    assert_eq!(change.env[0].1, "thp:always");
}

#[test]
fn what_needs_root_is_never_measured_by_itself() {
    let got = found("postgres", &["libc.so.6"], &[]);
    assert_eq!(got[0].name, "postgres-huge-pages");
    assert_eq!(got[0].variant, None);
    assert_eq!(got[0].with(None).state, "not measured");
}

#[test]
fn a_change_puts_arguments_where_the_program_reads_them() {
    let change = Change {
        first_arguments: vec!["-XX:+UseTransparentHugePages".into()],
        last_arguments: vec!["end".into()],
        ..Change::default()
    };
    let command: Vec<OsString> = vec!["java".into(), "Main".into()];
    let expected: Vec<OsString> = ["java", "-XX:+UseTransparentHugePages", "Main", "end"]
        .map(Into::into)
        .into();
    assert_eq!(change.command(&command), expected);
}

#[test]
fn each_version_gets_what_it_has() {
    let glibc = ["libc.so.6"];
    for (version, expected) in [("2.34", 0), ("2.35", 1), ("2.41", 1)] {
        let got = found_in("x", &glibc, &[], &[("glibc", version)]);
        assert_eq!(got.len(), expected, "{version}");
    }
    let torch = ["libtorch_cpu.so"];
    for (version, expected) in [("2.1.2", 0), ("2.2.0", 1)] {
        let got = found_in("x", &torch, &[], &[("pytorch", version)]);
        assert_eq!(got.len(), expected, "{version}");
    }
    let mimalloc = |version| {
        let got = found_in("x", &["libmimalloc.so"], &[], &[("mimalloc", version)]);
        got[0].variant.as_ref().unwrap().env[0].0.clone()
    };
    assert_eq!(mimalloc("2.0.9"), "MIMALLOC_LARGE_OS_PAGES");
    assert_eq!(mimalloc("1.8.2"), "MIMALLOC_ALLOW_LARGE_OS_PAGES");
    assert_eq!(mimalloc("2.1.0"), "MIMALLOC_ALLOW_LARGE_OS_PAGES");
    let python = |version| names(&found_in("python3", &[], &[], &[("cpython", version)]));
    assert!(python("3.14").is_empty());
    assert_eq!(python("3.15"), ["python-pymalloc"]);
    assert!(found_in("x", &[], &[], &[("go", "1.20.1")]).is_empty());
    let go = found_in("x", &glibc, &[], &[("go", "1.22.0")]);
    assert_eq!(names(&go), ["go-always"]);
    let counted = |version| {
        found_in("postgres", &[], &[], &[("postgres", version)])[0]
            .how
            .clone()
    };
    assert!(counted("15.1").contains("shared_memory_size_in_huge_pages"));
    assert!(!counted("14.9").contains("shared_memory_size_in_huge_pages"));
}

#[test]
fn what_is_set_already_is_not_proposed() {
    let mimalloc = [("MIMALLOC_ALLOW_LARGE_OS_PAGES", "1")];
    assert!(found("x", &["libmimalloc.so.2.1"], &mimalloc).is_empty());
    let torch = [("THP_MEM_ALLOC_ENABLE", "1")];
    assert!(found("x", &["libtorch_cpu.so"], &torch).is_empty());
    let python = [("PYTHONMALLOC", "malloc")];
    assert_eq!(
        names(&found("python3", &["libc.so.6"], &python)),
        ["glibc-tunable"]
    );
}

#[test]
fn openj9_is_not_given_hotspots_option() {
    let libraries = ["libjvm.so", "libj9vm29.so"];
    assert!(found("java", &libraries, &[]).is_empty());
    let traits = Traits {
        program: "java".to_owned(),
        libraries: libraries.map(str::to_owned).into(),
        ..Traits::default()
    };
    let command = ["java", "-XX:-TransparentHugePage", "Main"].map(OsString::from);
    let got = candidates(&traits, &command, &|_| None);
    assert_eq!(names(&got), ["openj9-thp"]);
}

#[test]
fn a_variant_of_several_variables_sets_them_all() {
    let python = &found("python3.11", &["libc.so.6"], &[])[0];
    let env = &python.variant.as_ref().unwrap().env;
    assert_eq!(env[0], ("PYTHONMALLOC".to_owned(), "malloc".to_owned()));
    assert_eq!(env[1].0, "GLIBC_TUNABLES");
    for line in [
        "export PYTHONMALLOC='malloc'\nexport GLIBC_TUNABLES=",
        "Environment=\"PYTHONMALLOC=malloc\"\nEnvironment=\"GLIBC_TUNABLES=",
        "docker run -e PYTHONMALLOC='malloc' -e GLIBC_TUNABLES=",
        "  - name: PYTHONMALLOC\n    value: \"malloc\"\n  - name: GLIBC_TUNABLES",
    ] {
        assert!(python.how.contains(line), "{}", python.how);
    }
}

#[test]
fn options_of_programs_go_where_they_are_read() {
    let command = |program: &str, libraries: &[&str]| {
        let got = found(program, libraries, &[]);
        let change = got[0].variant.clone().unwrap();
        change.command(&[OsString::from(program), "x".into()])
    };
    assert_eq!(
        command("node", &[]),
        ["node", "--use-largepages=silent", "x"]
    );
    assert_eq!(
        command("llama-cli", &["libc.so.6"]),
        ["llama-cli", "x", "--no-mmap"]
    );
    assert_eq!(
        command("llama-bench", &["libc.so.6"]),
        ["llama-bench", "x", "-mmp", "0"]
    );
    assert_eq!(
        command("valkey-server", &[]),
        ["valkey-server", "x", "--disable-thp", "no"]
    );
}

#[test]
fn services_and_virtual_machines_are_known_by_name() {
    for (program, name) in [
        ("mysqld", "mysql-large-pages"),
        ("mariadbd", "mysql-large-pages"),
        ("mongod", "mongodb-thp"),
        ("clickhouse-server", "clickhouse-text"),
        ("qemu-system-x86_64", "qemu-hugetlb"),
        ("firecracker", "firecracker-hugetlb"),
        ("cloud-hypervisor", "cloud-hypervisor-hugetlb"),
    ] {
        let got = found(program, &[], &[]);
        assert_eq!(names(&got), [name]);
        assert_eq!(got[0].variant, None);
    }
    let dotnet = found("app", &["libcoreclr.so"], &[]);
    assert_eq!(names(&dotnet), ["dotnet-large"]);
    let tcmalloc = found("app", &["libc.so.6", "libtcmalloc_minimal.so.4"], &[]);
    assert_eq!(names(&tcmalloc), ["tcmalloc-hugetlb"]);
}

#[test]
fn mongodb_is_told_by_its_version() {
    let changes = |version: &[(&str, &str)]| {
        let got = found("mongod", &[], version);
        (got[0].change.clone(), got[0].how.clone())
    };
    let (change, how) = changes(&[("MONGO_VERSION", "7.0.14")]);
    assert!(change.contains("without huge pages"), "{change}");
    assert!(!how.contains("echo always"), "{how}");
    for version in ["8.0.0-rc1", "8.0.4", "10.1"] {
        let (change, how) = changes(&[("MONGO_VERSION", version)]);
        assert!(change.contains("with huge pages"), "{version}: {change}");
        assert!(!how.contains("MemoryTHP"), "{how}");
    }
    for unknown in [&[][..], &[("MONGO_VERSION", "latest")]] {
        let (_, how) = changes(unknown);
        assert!(
            how.contains("echo always") && how.contains("MemoryTHP"),
            "{how}"
        );
    }
}

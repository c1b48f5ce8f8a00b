// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

fn found(program: &str, libraries: &[&str], env: &[(&str, &str)]) -> Vec<Candidate> {
    let traits = Traits {
        program: program.to_owned(),
        libraries: libraries.iter().map(|l| (*l).to_owned()).collect(),
        jemalloc_variable: None,
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
    assert!(found("x", &["libc.so.6", "libmimalloc.so.2"], &[]).is_empty());
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
        ["numpy-advises", "glibc-tunable"]
    );
    assert_eq!(
        names(&found("python3", &["libc.so.6", umath], &[])),
        ["glibc-tunable"]
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

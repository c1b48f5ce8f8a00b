// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests, good and bad.

use std::io::Write;
use std::net::{Shutdown, TcpListener};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use toll_linux::proc::cpu_time;
use toll_testkit::output::{assert_fails, stderr};
use toll_testkit::process::{Running, kill};
use toll_testkit::{Directory, schema};

use crate::{Exporter, OPEN_METRICS, answer};

#[test]
fn each_scraper_gets_its_format() {
    let exporter = Exporter::start(&Directory::empty(), &[]);
    let (head, body) = exporter.get("/metrics", OPEN_METRICS);
    assert!(
        head.contains("Content-Type: application/openmetrics-text; version=1.0.0"),
        "{head}"
    );
    assert!(
        head.contains(&format!("Content-Length: {}\r\n", body.len())),
        "{head}"
    );
    assert!(body.ends_with("# EOF\n"));
    let (head, body) = exporter.get("/metrics", "");
    assert!(
        head.contains("Content-Type: text/plain; version=0.0.4"),
        "{head}"
    );
    assert!(
        body.contains("# TYPE tollfree_machine_page_faults_total counter\n"),
        "{body}"
    );
    let (head, body) = exporter.send(b"HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && body.is_empty());
    assert!(exporter.get("/", "").1.contains("/metrics"));
    exporter.end(libc::SIGTERM);
}

#[test]
fn bad_requests_are_refused_and_harm_nobody() {
    let exporter = Exporter::start(&Directory::empty(), &[]);
    let long = format!("GET /metrics HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(9_000));
    for (request, status) in [
        (&b"GET /etc/passwd HTTP/1.1\r\n\r\n"[..], "404 Not Found"),
        (
            b"DELETE /metrics HTTP/1.1\r\n\r\n",
            "405 Method Not Allowed\r\n",
        ),
        (b"\x16\x03\x01\xff\r\n\r\n", "400 Bad Request"),
        (long.as_bytes(), "431 Request Header Fields Too Large"),
    ] {
        let (head, _) = exporter.send(request);
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{head}");
    }
    // One that leaves, and one that is silent.
    exporter.connect().shutdown(Shutdown::Both).unwrap();
    let mut silent = exporter.connect();
    silent.write_all(b"GET /metrics").unwrap();
    exporter.metrics();
    let (head, _) = answer(silent);
    assert!(head.starts_with("HTTP/1.1 408 "), "{head}");
    exporter.end(libc::SIGINT);
}

#[test]
fn too_many_connections_are_refused() {
    let exporter = Exporter::start(&Directory::empty(), &[]);
    let silent: Vec<_> = (0..16).map(|_| exporter.connect()).collect();
    let (head, _) = answer(exporter.connect());
    assert!(head.starts_with("HTTP/1.1 503 "), "{head}");
    drop(silent);
    while exporter.get("/metrics", "").0.contains("503") {}
    exporter.end(libc::SIGTERM);
}

/// Sets the number of files that a process may open, and returns the one before.
fn limit_files(pid: u32, limit: Option<u64>) -> Option<u64> {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap());
    // It has inherited the maximum of this process.
    let maximum = getrlimit(Resource::Nofile).maximum;
    let current = limit;
    let before = prlimit(pid, Resource::Nofile, Rlimit { current, maximum });
    before.unwrap().current
}

#[test]
fn a_connection_waits_while_no_file_can_be_opened() {
    let exporter = Exporter::start(&Directory::empty(), &[]);
    let pid = exporter.running.pid();
    let before = limit_files(pid, Some(3));
    let mut stream = exporter.connect();
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        .unwrap();
    let began = cpu_time(pid).unwrap();
    thread::sleep(Duration::from_secs(1));
    // A try each 100 ms, not all the time.
    let ran = cpu_time(pid).unwrap() - began;
    assert!(ran < Duration::from_millis(500), "{ran:?}");
    limit_files(pid, before);
    let (head, _) = answer(stream);
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    exporter.end(libc::SIGTERM);
}

#[test]
fn a_port_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let directory = Directory::empty();
    let output = directory.run(&["exporter", "--listen", &address]);
    assert_fails(&output, 1, &[&address, "in use"]);
    for wrong in ["localhost", "127.0.0.1", "127.0.0.1:99999"] {
        let output = directory.run(&["exporter", "--listen", wrong]);
        assert_fails(&output, 2, &["--listen"]);
    }
}

#[test]
fn json_prints_where_the_metrics_are() {
    let directory = Directory::empty();
    let line = ["--json", "exporter", "--listen", "127.0.0.1:0"];
    let mut exporter = Running::start(&mut directory.tollfree(&line));
    let mut text = exporter.line();
    while !text.ends_with('}') {
        text += &exporter.line();
    }
    schema::check("exporter", &serde_json::from_str(&text).unwrap());
}

#[test]
fn an_address_for_everyone_is_warned_of() {
    let directory = Directory::empty();
    let line = ["exporter", "--listen", "0.0.0.0:0"];
    let mut exporter = directory.tollfree(&line).spawn().unwrap();
    let mut first = [0; 8];
    std::io::Read::read_exact(exporter.stdout.as_mut().unwrap(), &mut first).unwrap();
    assert_eq!(&first, b"serving ");
    kill(exporter.id(), libc::SIGTERM);
    let output = exporter.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(
        stderr(&output).contains("not a loopback address"),
        "{}",
        stderr(&output)
    );
}

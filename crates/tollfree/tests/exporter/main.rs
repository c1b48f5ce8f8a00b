// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree exporter`: requests, metrics, and the dashboard.

mod dashboard;
mod metrics;
mod requests;
mod strict;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::time::Duration;

use toll_testkit::Directory;
use toll_testkit::process::{Running, kill};

const OPEN_METRICS: &str = "Accept: application/openmetrics-text; version=1.0.0\r\n";

/// A running exporter on a free port.
struct Exporter {
    running: Running,
    address: String,
}

impl Exporter {
    fn start(directory: &Directory, arguments: &[&str]) -> Exporter {
        let line = [&["exporter", "--listen", "127.0.0.1:0"], arguments].concat();
        let mut command = directory.tollfree(&line);
        // SAFETY: one async-signal-safe call between fork and exec. The parent of the tests may
        // ignore Ctrl-C.
        unsafe {
            command.pre_exec(|| {
                libc::signal(libc::SIGINT, libc::SIG_DFL);
                Ok(())
            });
        }
        let mut running = Running::start(&mut command);
        let line = running.answer("serving http://");
        let address = line.strip_suffix("/metrics").unwrap().to_owned();
        Exporter { running, address }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        let patience = Some(Duration::from_secs(60));
        stream.set_read_timeout(patience).unwrap();
        stream
    }

    /// Sends bytes, and returns head and body of the answer.
    fn send(&self, request: &[u8]) -> (String, String) {
        let mut stream = self.connect();
        stream.write_all(request).unwrap();
        answer(stream)
    }

    fn get(&self, target: &str, headers: &str) -> (String, String) {
        self.send(format!("GET {target} HTTP/1.1\r\nHost: x\r\n{headers}\r\n").as_bytes())
    }

    /// The metrics, checked.
    fn metrics(&self) -> strict::Metrics {
        let (head, body) = self.get("/metrics", OPEN_METRICS);
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        strict::parse(&body)
    }

    /// Ends it with a signal; its status is 0.
    fn end(mut self, signal: i32) {
        kill(self.running.pid(), signal);
        assert!(self.running.child.wait().unwrap().success());
    }
}

fn answer(mut stream: TcpStream) -> (String, String) {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("{text:?}"));
    (format!("{head}\r\n"), body.to_owned())
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The server: one thread for each connection, a limited number of them, one request for each.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use toll_act::signals;

use super::collector::Collector;
use super::request::{self, BUSY, LARGE, LATE, METHOD, Refused, Request, Target};

/// Largest head of a request, bytes.
const HEAD: usize = 8 << 10;
/// Time for a request, and for its answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pause after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);
/// Connections at a time.
const CONNECTIONS: usize = 16;

const START: &str = "tollfree exporter: the metrics are at /metrics\n";

/// An answer.
struct Response {
    status: Refused,
    content_type: &'static str,
    body: String,
    sends_body: bool,
}

/// Answers requests until a signal asks to end.
pub fn serve(listener: &TcpListener, collector: Collector) -> Result<()> {
    let collector = Arc::new(Mutex::new(collector));
    let open = Arc::new(AtomicUsize::new(0));
    listener.set_nonblocking(true).context("the socket")?;
    while signals::interrupted().is_none() {
        wait(listener)?;
        for note in signals::take() {
            if note.signal == libc::SIGTSTP {
                signals::default_action(libc::SIGTSTP);
            }
        }
        match listener.accept() {
            Ok((stream, _)) => handle(stream, &collector, &open),
            // A signal, or a connection that broke meanwhile.
            Err(error) if is_passing(&error) => {}
            // Too many open files: the connection stays, and a later try may succeed.
            Err(_) => thread::sleep(PAUSE),
        }
    }
    Ok(())
}

fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted | ConnectionAborted)
}

fn wait(listener: &TcpListener) -> Result<()> {
    let signals = signals::readable()?;
    let mut fds = [
        PollFd::new(&signals, PollFlags::IN),
        PollFd::new(listener, PollFlags::IN),
    ];
    match poll(&mut fds, None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error).context("waiting"),
    }
}

/// Answers in a thread of its own, or refuses.
fn handle(stream: TcpStream, collector: &Arc<Mutex<Collector>>, open: &Arc<AtomicUsize>) {
    if open.load(Relaxed) >= CONNECTIONS {
        // It may not read: do not wait for it.
        let _ = stream.set_nonblocking(true);
        let _ = Response::refusal(BUSY).send(stream);
        return;
    }
    open.fetch_add(1, Relaxed);
    let (collector, done) = (collector.clone(), open.clone());
    let answer = move || {
        // The scraper has gone: nobody to tell.
        let _ = converse(stream, &collector);
        done.fetch_sub(1, Relaxed);
    };
    if thread::Builder::new().spawn(answer).is_err() {
        open.fetch_sub(1, Relaxed);
    }
}

fn converse(mut stream: TcpStream, collector: &Mutex<Collector>) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let response = match read_head(&mut stream)?.and_then(|head| request::parse(&head)) {
        Ok(request) => answer(&request, collector),
        Err(refused) => Response::refusal(refused),
    };
    response.send(stream)
}

/// Reads up to the empty line. The time is for the whole of it, so that a slow sender ends too.
fn read_head(stream: &mut TcpStream) -> io::Result<Result<Vec<u8>, Refused>> {
    let end = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    while !head.windows(4).any(|it| it == b"\r\n\r\n") {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Err(LATE));
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(number) => head.extend(&buffer[..number]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Err(LATE)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if head.len() > HEAD {
            return Ok(Err(LARGE));
        }
    }
    Ok(Ok(head))
}

fn answer(request: &Request, collector: &Mutex<Collector>) -> Response {
    let (content_type, body) = match request.target {
        Target::Start => ("text/plain; charset=utf-8", START.to_owned()),
        Target::Metrics(format) => {
            let mut collector = collector.lock().unwrap_or_else(PoisonError::into_inner);
            (format.content_type(), collector.collect().encode(format))
        }
    };
    Response {
        status: Refused(200, "OK"),
        content_type,
        body,
        sends_body: request.wants_body,
    }
}

impl Response {
    fn refusal(status: Refused) -> Response {
        Response {
            status,
            content_type: "text/plain; charset=utf-8",
            body: format!("{}\n", status.1),
            sends_body: true,
        }
    }

    fn send(&self, mut stream: TcpStream) -> io::Result<()> {
        let Refused(code, reason) = self.status;
        let allow = match self.status == METHOD {
            true => "Allow: GET, HEAD\r\n",
            false => "",
        };
        let mut text = format!(
            "HTTP/1.1 {code} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{allow}Connection: close\r\n\r\n",
            self.content_type,
            self.body.len()
        );
        if self.sends_body {
            text += &self.body;
        }
        stream.write_all(text.as_bytes())?;
        stream.shutdown(Shutdown::Write)
    }
}

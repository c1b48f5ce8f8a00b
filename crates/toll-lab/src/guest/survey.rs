// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests that may crash or hang: collects the result of each job and the kernel's reports while it
//! ran.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;

use super::job::parse_status;
use super::{Done, Guest, Status, TRIES, crash, is_passing};
use crate::files;
use crate::workspace::Workspace;

/// Printed by the guest's init before a job, with the job's name.
const BEGINS: &str = "lab: ";

/// Reports of the OOM killer, which memory tests trigger.
const EXPECTED: &str = "Out of memory: ";

/// Outcome of a job.
#[derive(Debug)]
pub enum Part {
    /// It ended; the kernel's reports while it ran.
    Ended(Done, Vec<String>),
    /// The guest ended while it ran: why, and the kernel's reports until then.
    Broken(String, Vec<String>),
    /// The guest ended before the job started.
    NotBegun,
}

/// Results of a guest that may have crashed or hung.
#[derive(Debug)]
pub struct Survey {
    /// The kernel's reports before the first job.
    pub boot: Vec<String>,
    /// Outcome of each job, in order.
    pub parts: Vec<Part>,
    pub console: PathBuf,
    pub seconds: f64,
}

impl Guest<'_> {
    /// Boots the guest and waits until it ends. Kernel reports, panics and jobs that never end are
    /// results here, not errors. The guest is killed if its console is silent for this time.
    ///
    /// # Errors
    /// Anything that prevents the start.
    pub fn survey(&self, workspace: &Workspace, silence: Duration) -> Result<Survey> {
        let mut stopped = self.start(workspace, Some(silence))?;
        for _ in 1..TRIES {
            if !stopped.why.as_deref().is_some_and(is_passing) {
                break;
            }
            stopped = self.start(workspace, Some(silence))?;
        }
        let before = stopped.text.lines();
        let before = before.take_while(|line| !line.starts_with(BEGINS));
        let boot = before.filter_map(report).collect();
        let mut why = stopped.why;
        let mut parts = Vec::new();
        for job in self.jobs {
            let said = said_during(&stopped.text, &job.name);
            let reports: Vec<String> = said.iter().filter_map(|line| report(line)).collect();
            parts.push(match ended(&stopped.out, &job.name)? {
                Some(done) => Part::Ended(done, reports),
                // Only one job was running.
                None => why.take().map_or(Part::NotBegun, |why| {
                    let fatal = reports.iter().find(|it| it.contains("panic")).cloned();
                    Part::Broken(fatal.unwrap_or(why), reports)
                }),
            });
        }
        Ok(Survey {
            boot,
            parts,
            console: stopped.console,
            seconds: stopped.seconds,
        })
    }
}

/// Returns the console lines between the start of a job and that of the next.
fn said_during<'a>(console: &'a str, job: &str) -> Vec<&'a str> {
    let begin = format!("{BEGINS}{job}");
    console
        .lines()
        .skip_while(|line| line.trim_end() != begin)
        .skip(1)
        .take_while(|line| !line.starts_with(BEGINS))
        .collect()
}

/// Returns the report on a line, without the numbers that differ between boots.
fn report(line: &str) -> Option<String> {
    let found = crash(line)?;
    if found.starts_with(EXPECTED) {
        return None;
    }
    let words = found.split_whitespace().map(plain);
    Some(words.collect::<Vec<_>>().join(" "))
}

/// Normalizes a word of a report: `N` replaces numbers (process, CPU) and addresses.
fn plain(word: &str) -> String {
    let digits = word
        .trim_start_matches("0x")
        .trim_end_matches([',', ':', ')']);
    let is_hexadecimal = digits.len() >= 8 && digits.chars().all(|it| it.is_ascii_hexdigit());
    match is_hexadecimal || digits.parse::<u64>().is_ok() {
        true => "N".to_owned(),
        false => word.to_owned(),
    }
}

/// Returns a job's result if it ended.
fn ended(out: &Path, name: &str) -> Result<Option<Done>> {
    let read = |suffix: &str| -> Result<Option<String>> {
        let content = files::read(&out.join(format!("{name}.{suffix}")))?;
        Ok(content.map(|it| String::from_utf8_lossy(&it).into_owned()))
    };
    let status: Option<Status> = read("status")?.as_deref().and_then(parse_status);
    let Some(status) = status else {
        return Ok(None);
    };
    Ok(Some(Done {
        name: name.to_owned(),
        status,
        out: read("out")?.unwrap_or_default(),
        err: read("err")?.unwrap_or_default(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONSOLE: &str = "[ 0.1] WARNING: before all\nlab: a\n[ 1.0] BUG: in a\n\
        lab: ab\n[ 2.0] Out of memory: Killed process 70 (x)\n[ 2.1] noise\n";

    #[test]
    fn reports_belong_to_the_job_that_runs() {
        assert_eq!(said_during(CONSOLE, "a"), ["[ 1.0] BUG: in a"]);
        assert_eq!(said_during(CONSOLE, "ab").len(), 2);
        assert!(said_during(CONSOLE, "b").is_empty());
    }

    #[test]
    fn a_report_is_the_same_on_each_boot() {
        let of = |cpu: u32, pid: u32| {
            report(&format!(
                "[    9.{pid}] WARNING: CPU: {cpu} PID: {pid} at mm/rmap.c:1321 __page_check+0x1/0x2"
            ))
        };
        assert_eq!(of(0, 71), of(1, 1234));
        assert_eq!(
            of(0, 71).unwrap(),
            "WARNING: CPU: N PID: N at mm/rmap.c:1321 __page_check+0x1/0x2"
        );
        assert_eq!(report("[ 2.0] Out of memory: Killed process 70 (x)"), None);
        assert_eq!(report("[ 2.0] some words"), None);
        assert_eq!(
            report("[ 1] BUG: Bad page state in process x pfn:1 ffff888012345678"),
            Some("BUG: Bad page state in process x pfn:1 N".to_owned())
        );
    }

    #[test]
    fn a_job_without_a_status_has_not_ended() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a.out"), "half").unwrap();
        assert!(ended(directory.path(), "a").unwrap().is_none());
        std::fs::write(directory.path().join("a.status"), "exit 3\n").unwrap();
        let done = ended(directory.path(), "a").unwrap().unwrap();
        assert_eq!((done.status, done.out.as_str()), (Status::Exit(3), "half"));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree kernel top`.

mod change;
mod text;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use toll_act::error::UserError;
use toll_act::signals;
use toll_linux::Root;
use toll_linux::econ::{self, Machine, Process};
use toll_model::units::parse_duration;

use change::Change;

use crate::terminal::{self, Key, Screen, Woken};

/// Watch the decisions of the kernel's estimator, for the machine and for each process
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  tollfree kernel top
  tollfree kernel top -n 10 --interval 5s > decisions.txt

Shows the decisions since boot, then those of each interval: requests to the estimator and
approvals, the estimated cost and saving of what was approved, and the estimated saving of
what was rejected. Lists the processes with a profile, the most requests first. On a terminal
it is drawn in place until q or Ctrl-C; elsewhere, and with -n, each update is a block of
lines; with --json, an object per line.

Needs a kernel with econ (the exit code is 4 on another). Other users' processes are shown
only to root.")]
pub struct Args {
    /// Time between two updates
    #[arg(short = 'I', long, default_value = "1s", value_name = "TIME", value_parser = parse_duration)]
    pub interval: Duration,
    /// Number of updates (default: until interrupted)
    #[arg(short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub times: Option<u64>,
    /// Print once what was decided since boot
    #[arg(long, conflicts_with = "times")]
    pub once: bool,
}

/// A snapshot of the kernel's state.
#[derive(Debug)]
struct Snapshot {
    at: Instant,
    machine: Machine,
    processes: Vec<Process>,
}

/// How updates are displayed.
enum Display {
    Json,
    Blocks { is_first: bool },
    Screen(Screen),
}

pub fn run(args: Args, root: &Root, json: bool) -> Result<ExitCode> {
    if args.interval < Duration::from_millis(10) {
        return Err(UserError::Usage("--interval: at least 10 ms".to_owned()).into());
    }
    let times = if args.once { Some(1) } else { args.times };
    let mut before = look(root)?;
    let _signals = signals::watch().context("no pipe for signals")?;
    let mut display = Display::new(json, times)?;
    let mut change = Change::since_boot(&before);
    for shown in 1.. {
        display.show(&change)?;
        if Some(shown) == times || !display.wait(args.interval, &change)? {
            break;
        }
        let now = look(root)?;
        change = Change::between(&before, &now);
        before = now;
    }
    Ok(ExitCode::SUCCESS)
}

fn look(root: &Root) -> Result<Snapshot> {
    let machine =
        Machine::read(root).ok_or_else(|| UserError::Missing(super::decisions::no_econ()))?;
    Ok(Snapshot {
        at: Instant::now(),
        machine,
        processes: econ::processes(root),
    })
}

impl Display {
    fn new(json: bool, times: Option<u64>) -> Result<Display> {
        Ok(match times {
            _ if json => Display::Json,
            None if io::stdout().is_terminal() => Display::Screen(Screen::open()?),
            // A run with a fixed number of updates prints blocks, so that they can be read
            // afterwards.
            _ => Display::Blocks { is_first: true },
        })
    }

    fn show(&mut self, change: &Change) -> Result<()> {
        let text = match self {
            Display::Json => format!("{}\n", serde_json::to_string(change)?),
            Display::Blocks { is_first } => {
                let gap = if std::mem::take(is_first) { "" } else { "\n" };
                format!("{gap}{}", text::whole(change))
            }
            Display::Screen(screen) => return screen.draw(&text::whole(change)),
        };
        let mut out = io::stdout().lock();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        written.context("stdout: cannot be written")
    }

    /// Waits for the next update. Returns false to end.
    fn wait(&mut self, interval: Duration, change: &Change) -> Result<bool> {
        let end = Instant::now() + interval;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let keys = matches!(self, Display::Screen(_));
            match terminal::wait(left, keys)? {
                Woken::End => return Ok(false),
                Woken::Time => return Ok(true),
                Woken::Stop => self.stop(change)?,
                Woken::Redraw => self.redraw(change)?,
                Woken::Keys(keys) if keys.iter().any(ends) => return Ok(false),
                Woken::Keys(_) | Woken::Nothing => {}
            }
        }
    }

    /// Handles Ctrl-Z: restores the terminal for the shell.
    fn stop(&mut self, change: &Change) -> Result<()> {
        let Display::Screen(screen) = self else {
            signals::default_action(libc::SIGTSTP);
            return Ok(());
        };
        screen.close();
        signals::default_action(libc::SIGTSTP);
        *screen = Screen::open()?;
        self.redraw(change)
    }

    fn redraw(&mut self, change: &Change) -> Result<()> {
        match self {
            Display::Screen(_) => self.show(change),
            _ => Ok(()),
        }
    }
}

fn ends(key: &Key) -> bool {
    matches!(key, Key::Char('q' | 'Q'))
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree exporter`.

mod collector;
mod exposition;
mod request;
mod server;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::Serialize;
use toll_act::{messages, signals};
use toll_linux::Root;

use crate::output;
use collector::Collector;

/// Serve what virtual memory costs as metrics for Prometheus
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tollfree exporter
  tollfree exporter --listen 127.0.0.1:9765 --processes 0
  curl http://127.0.0.1:9765/metrics

Serves GET /metrics in the OpenMetrics format, or in Prometheus' text format to those that do
not ask for it: counters of the machine and of each cgroup, with the CPU time lost, and the
processes that lost most. docs/guide/exporter.md lists the metrics; examples/grafana has a
dashboard. Runs until Ctrl-C or SIGTERM, which end it with 0.")]
pub struct Args {
    /// Address and port; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:9765", value_name = "ADDRESS:PORT")]
    pub listen: SocketAddr,
    /// Number of processes with metrics of their own: those that lost most
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub processes: usize,
    /// Use this directory as / (for tests)
    #[arg(long, hide = true, value_name = "PATH")]
    pub root: Option<PathBuf>,
}

/// `--json`: where the metrics are.
#[derive(Serialize)]
struct Started {
    format: &'static str,
    version: u32,
    url: String,
}

pub fn run(args: Args, json: bool) -> Result<ExitCode> {
    let listener = TcpListener::bind(args.listen)
        .with_context(|| format!("{}: cannot listen there", args.listen))?;
    let address = listener.local_addr().context("the socket")?;
    if !address.ip().is_loopback() {
        messages::note(format_args!(
            "warning: {address} is not a loopback address: everyone who reaches it can read the names of processes and cgroups"
        ));
    }
    let root = args.root.as_ref().map_or_else(Root::system, Root::at);
    let costs = super::options::event_costs(&root);
    let collector = Collector::new(&root, costs, args.processes);
    let _signals = signals::watch().context("no pipe for signals")?;
    announce(address, json)?;
    server::serve(&listener, collector)?;
    Ok(ExitCode::SUCCESS)
}

fn announce(address: SocketAddr, json: bool) -> Result<()> {
    let url = format!("http://{address}/metrics");
    if !json {
        return output::text(&format!("serving {url}\n"));
    }
    output::json(&Started {
        format: "tollfree-exporter",
        version: 1,
        url,
    })
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of the page: permanent changes, method, machine, command, glossary.

use std::fmt::Write;

use super::data::PageData;
use super::format::{escape, interval};

pub fn permanent(data: &PageData) -> String {
    if data.permanent.is_empty() {
        return String::new();
    }
    let mut out = String::from("<section><h2>Make it permanent, without tollfree</h2>");
    for change in &data.permanent {
        let number = change.speedup.as_ref().map_or_else(
            || "not measured".to_owned(),
            |e| format!("measured speed-up {}", interval(e)),
        );
        let _ = write!(
            out,
            "<div class=\"card\"><h3>{}</h3><p><b>{number}</b></p><pre>{}</pre><p class=\"soft\">{}</p></div>",
            escape(&change.title),
            escape(&change.paste),
            escape(&change.note)
        );
    }
    out.push_str("</section>");
    out
}

pub fn method(data: &PageData) -> String {
    if data.method.is_empty() {
        return String::new();
    }
    let items: String = data
        .method
        .iter()
        .map(|m| format!("<li>{}</li>", escape(m)))
        .collect();
    format!("<section><h2>How it was measured</h2><ul>{items}</ul></section>")
}

pub fn environment(data: &PageData) -> String {
    if data.environment.is_empty() {
        return String::new();
    }
    let items: String = data
        .environment
        .iter()
        .map(|(name, value)| format!("<dt>{}</dt><dd>{}</dd>", escape(name), escape(value)))
        .collect();
    format!("<section><h2>Machine</h2><dl>{items}</dl></section>")
}

pub fn command(data: &PageData) -> String {
    let Some(command) = &data.command else {
        return String::new();
    };
    format!(
        "<section><h2>Command</h2><pre>{}</pre><details><summary>Environment of the program</summary><pre>{}</pre></details></section>",
        escape(&command.arguments.join(" ")),
        escape(&command.environment.join("\n"))
    )
}

/// The terms of the page.
pub const GLOSSARY: &str = "<section><h2>Glossary</h2><dl>\
<dt>Translation overhead</dt><dd>The time that a program spends on address translation: page walks.</dd>\
<dt>TLB miss</dt><dd>An access that finds no translation in any TLB level, so that the CPU walks the page table.</dd>\
<dt>Huge page</dt><dd>A page of 2 MiB instead of 4 KiB: one TLB entry covers 512 times as much memory.</dd>\
<dt>Region</dt><dd>A range of 2 MiB that one huge page can hold.</dd>\
<dt>Site</dt><dd>Identifies memory in every run, whatever its address: the place in the program that allocated or mapped it.</dd>\
<dt>Plan</dt><dd>The regions with their benefit, cost and verdict.</dd>\
<dt>Speed-up</dt><dd>Time before divided by time after: above 1 is faster.</dd>\
<dt>Interval</dt><dd>The range of the true value, with the stated confidence. If it contains 1, the runs do not show whether there is an effect.</dd>\
</dl></section>";

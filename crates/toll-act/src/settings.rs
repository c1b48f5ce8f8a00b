// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings of a running program that decide about huge pages: of its runtime, its allocator, or of
//! the program itself. The environment is that of the start: later changes are not visible.

mod postgres;

use std::ffi::OsString;

use serde::Serialize;

use crate::traits::Traits;

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    Default,
    Environment,
    CommandLine,
    File,
}

/// A setting with its effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// `glibc`, `JVM`, `PostgreSQL`.
    pub of: &'static str,
    pub name: &'static str,
    pub value: String,
    pub origin: Origin,
    pub effect: &'static str,
    /// Whether the program advises its memory (MADV_HUGEPAGE) with this value.
    pub advises: bool,
}

/// What is known of a running program.
pub struct Program<'a> {
    pub traits: &'a Traits,
    pub command: &'a [OsString],
    /// Looks up its environment.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// Reads a file, by a path relative to the program's working directory.
    pub file: &'a dyn Fn(&str) -> Option<String>,
    /// Whether it has the heap of a Go program.
    pub is_go: bool,
}

impl Program<'_> {
    /// Returns the settings that apply, the program's own first.
    pub fn settings(&self) -> Vec<Setting> {
        let all = [
            self.redis(),
            postgres::huge_pages(self),
            self.jvm(),
            self.go(),
            self.numpy(),
            self.jemalloc(),
            self.glibc(),
        ];
        all.into_iter().flatten().collect()
    }

    /// The last argument that starts with `prefix`: what follows it.
    fn argument(&self, prefix: &str) -> Option<String> {
        let words = self.command.iter().rev();
        words
            .filter_map(|word| word.to_str()?.strip_prefix(prefix).map(str::to_owned))
            .next()
    }

    /// redis switches huge pages off for itself, since 6.2. Packages link its server to a tool.
    fn redis(&self) -> Option<Setting> {
        let servers = ["redis-server", "redis-check-rdb", "valkey-server"];
        servers.iter().find(|name| self.traits.is(name))?;
        let (value, origin) = self
            .after("--disable-thp")
            .map(|value| (value, Origin::CommandLine))
            .or_else(|| Some((self.in_redis_file()?, Origin::File)))
            .unwrap_or(("yes".to_owned(), Origin::Default));
        Some(Setting {
            of: "redis",
            name: "disable-thp",
            effect: match value.as_str() {
                "no" => "huge pages as the machine has them",
                _ => "where THP is always, redis switches huge pages off for itself (prctl)",
            },
            value,
            origin,
            advises: false,
        })
    }

    /// The argument behind this one.
    fn after(&self, option: &str) -> Option<String> {
        let at = self.command.iter().rposition(|word| word == option)?;
        Some(self.command.get(at + 1)?.to_str()?.to_owned())
    }

    fn in_redis_file(&self) -> Option<String> {
        let path = self.command.get(1)?.to_str()?;
        let text = (self.file)(path)?;
        let lines = text.lines().rev().map(str::trim);
        lines
            .filter_map(|line| line.strip_prefix("disable-thp"))
            .map(|value| value.trim().to_owned())
            .next()
    }

    fn jvm(&self) -> Option<Setting> {
        if !self.traits.uses("libjvm.so") {
            return None;
        }
        let name = "UseTransparentHugePages";
        let (is_on, origin) = self.jvm_flag(name).unwrap_or((false, Origin::Default));
        Some(Setting {
            of: "JVM",
            name,
            value: if is_on { "on" } else { "off" }.to_owned(),
            origin,
            effect: match is_on {
                true => "the JVM advises its heap",
                false => "the JVM advises nothing",
            },
            advises: is_on,
        })
    }

    /// A flag of the JVM: on the command line, or in one of its variables.
    fn jvm_flag(&self, name: &str) -> Option<(bool, Origin)> {
        const VARIABLES: [&str; 3] = ["_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"];
        let of = |word: &str| match word.strip_prefix("-XX:")?.split_at_checked(1)? {
            ("+", flag) if flag == name => Some(true),
            ("-", flag) if flag == name => Some(false),
            _ => None,
        };
        let words = self.command.iter().rev();
        let on_line = words.filter_map(|word| of(word.to_str()?)).next();
        let in_variable = |variable: &&str| {
            let value = (self.env)(variable)?;
            value.split_whitespace().rev().find_map(of)
        };
        on_line
            .map(|is_on| (is_on, Origin::CommandLine))
            .or_else(|| Some((VARIABLES.iter().find_map(in_variable)?, Origin::Environment)))
    }

    fn go(&self) -> Option<Setting> {
        let value = (self.env)("GODEBUG").filter(|value| value.contains("disablethp=1"));
        self.is_go.then(|| Setting {
            of: "Go",
            name: "GODEBUG",
            origin: origin(&value),
            effect: match value {
                Some(_) => "the runtime advises against huge pages in its heap",
                None => "the runtime leaves its heap to the machine's setting",
            },
            value: value.unwrap_or_default(),
            advises: false,
        })
    }

    fn numpy(&self) -> Option<Setting> {
        if !self.traits.uses("_multiarray_umath") {
            return None;
        }
        let value = (self.env)("NUMPY_MADVISE_HUGEPAGE");
        let advises = value.as_deref() != Some("0");
        Some(Setting {
            of: "numpy",
            name: "NUMPY_MADVISE_HUGEPAGE",
            origin: origin(&value),
            value: value.unwrap_or_else(|| "1".to_owned()),
            effect: match advises {
                true => {
                    "numpy advises arrays of 4 MiB and more; the advice stays on these addresses after the array"
                }
                false => "numpy advises nothing",
            },
            advises,
        })
    }

    fn jemalloc(&self) -> Option<Setting> {
        let text = (self.env)(self.traits.jemalloc()?);
        let found = text.as_deref().and_then(|text| option(text, ',', "thp:"));
        let value = found.unwrap_or("default");
        Some(Setting {
            of: "jemalloc",
            name: "thp",
            value: value.to_owned(),
            origin: origin(&found.map(str::to_owned)),
            effect: match value {
                "always" => "jemalloc advises its memory; what it purges splits huge pages again",
                "never" => "jemalloc advises against huge pages",
                _ => "jemalloc leaves its memory to the machine's setting",
            },
            advises: value == "always",
        })
    }

    fn glibc(&self) -> Option<Setting> {
        let others = ["libjemalloc", "libtcmalloc", "libmimalloc", "libjvm"];
        let other = others.iter().any(|name| self.traits.uses(name));
        if !self.traits.uses("libc.so.6") || other || self.traits.jemalloc().is_some() {
            return None;
        }
        let text = (self.env)("GLIBC_TUNABLES");
        let tunable = "glibc.malloc.hugetlb=";
        let found = text.as_deref().and_then(|text| option(text, ':', tunable));
        let value = found.unwrap_or("0");
        Some(Setting {
            of: "glibc",
            name: "glibc.malloc.hugetlb",
            value: value.to_owned(),
            origin: origin(&found.map(str::to_owned)),
            effect: match value {
                "0" => "malloc advises nothing",
                "1" => "malloc advises its memory",
                _ => "malloc takes its memory from hugetlb",
            },
            advises: value == "1",
        })
    }
}

fn origin(value: &Option<String>) -> Origin {
    match value {
        Some(_) => Origin::Environment,
        None => Origin::Default,
    }
}

/// The value of the last option in a list that starts with `prefix`.
fn option<'a>(text: &'a str, separator: char, prefix: &str) -> Option<&'a str> {
    let options = text.rsplit(separator);
    options
        .filter_map(|option| option.trim().strip_prefix(prefix))
        .next()
}

#[cfg(test)]
mod tests;

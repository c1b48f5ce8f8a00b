// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stored form of a profile: as [`Profile`], but each frame is stored once, in a table, and
//! allocation events refer to frames by index; code stacks and their functions likewise. Thousands
//! of events come from few call sites; without the table their names would be most of the file.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{PROFILE, Place, Profile, Program, Row, SiteRows, Source, Stack};
use crate::error::FormatError;
use crate::site::{Frame, Level, SiteKind};

impl Profile {
    /// Formats the profile as one JSON document.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] for invalid values that a reader would reject.
    pub fn to_json(&self) -> Result<String, FormatError> {
        self.check()?;
        serde_json::to_string(&Written::new(self))
            .map_err(|error| PROFILE.invalid(error.to_string()))
    }

    /// Parses a profile.
    ///
    /// # Errors
    /// [`FormatError`] names the problem and its location; no input panics.
    pub fn from_json(bytes: impl AsRef<[u8]>) -> Result<Profile, FormatError> {
        let stored: Stored = PROFILE.read_json(bytes.as_ref())?;
        let profile = stored
            .into_profile()
            .map_err(|detail| PROFILE.invalid(detail))?;
        profile.check()?;
        Ok(profile)
    }
}

/// A profile for writing.
#[derive(Serialize)]
struct Written<'a> {
    format: &'a str,
    version: u32,
    source: Source,
    source_detail: &'a str,
    program: &'a Program,
    command: &'a [String],
    complete: bool,
    sampled: f64,
    observations: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    native_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    native_cpu_ns: Option<u64>,
    footprint: u64,
    warnings: &'a [String],
    frames: Vec<&'a Frame>,
    sites: Vec<WrittenSite<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    functions: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stacks: Vec<StoredStack>,
}

/// A code stack: its functions by index in their table.
#[derive(Serialize, Deserialize)]
struct StoredStack {
    frames: Vec<u32>,
    misses: f64,
}

#[derive(Serialize)]
struct WrittenSite<'a> {
    id: u32,
    #[serde(flatten)]
    kind: WrittenKind<'a>,
    length: u64,
    misalignment: u64,
    level: Level,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    freed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<u64>,
    rows: &'a [Row],
    #[serde(skip_serializing_if = "<[Place]>::is_empty")]
    places: &'a [Place],
}

#[derive(Serialize)]
#[serde(untagged)]
enum WrittenKind<'a> {
    Alloc {
        kind: &'static str,
        frames: Vec<u32>,
        class: u8,
        ordinal: u32,
        thread: u32,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        shared: bool,
    },
    Other(&'a SiteKind),
}

/// The frames, or functions, so far.
struct Table<'a, T: ?Sized> {
    places: HashMap<&'a T, u32>,
    entries: Vec<&'a T>,
}

impl<T: ?Sized> Default for Table<'_, T> {
    fn default() -> Self {
        Table {
            places: HashMap::new(),
            entries: Vec::new(),
        }
    }
}

impl<'a, T: Eq + Hash + ?Sized> Table<'a, T> {
    fn place(&mut self, entry: &'a T) -> u32 {
        *self.places.entry(entry).or_insert_with(|| {
            self.entries.push(entry);
            (self.entries.len() - 1) as u32
        })
    }
}

impl<'a> Table<'a, str> {
    fn stack(&mut self, stack: &'a Stack) -> StoredStack {
        StoredStack {
            frames: stack.frames.iter().map(|name| self.place(name)).collect(),
            misses: stack.misses,
        }
    }
}

impl<'a> Table<'a, Frame> {
    fn kind(&mut self, kind: &'a SiteKind) -> WrittenKind<'a> {
        match kind {
            SiteKind::Alloc {
                frames,
                class,
                ordinal,
                thread,
                shared,
            } => WrittenKind::Alloc {
                kind: "alloc",
                frames: frames.iter().map(|frame| self.place(frame)).collect(),
                class: *class,
                ordinal: *ordinal,
                thread: *thread,
                shared: *shared,
            },
            other => WrittenKind::Other(other),
        }
    }
}

impl<'a> Written<'a> {
    fn new(profile: &'a Profile) -> Written<'a> {
        let mut table = Table::default();
        let mut site = |rows: &'a SiteRows| WrittenSite {
            id: rows.site.id,
            kind: table.kind(&rows.site.kind),
            length: rows.site.length,
            misalignment: rows.site.misalignment,
            level: rows.site.level,
            freed: rows.freed,
            address: rows.address,
            rows: &rows.rows,
            places: &rows.places,
        };
        let sites = profile.sites.iter().map(&mut site).collect();
        let mut functions = Table::default();
        let stacks = profile.stacks.iter();
        let stacks = stacks.map(|stack| functions.stack(stack)).collect();
        Written {
            format: &profile.format,
            version: profile.version,
            source: profile.source,
            source_detail: &profile.source_detail,
            program: &profile.program,
            command: &profile.command,
            complete: profile.complete,
            sampled: profile.sampled,
            observations: profile.observations,
            instructions: profile.instructions,
            native_ns: profile.native_ns,
            native_cpu_ns: profile.native_cpu_ns,
            footprint: profile.footprint,
            warnings: &profile.warnings,
            frames: table.entries,
            sites,
            functions: functions.entries,
            stacks,
        }
    }
}

/// A profile for reading: frames of events may be indices into the table.
#[derive(Deserialize)]
struct Stored {
    format: String,
    version: u32,
    source: Source,
    source_detail: String,
    program: Program,
    command: Vec<String>,
    complete: bool,
    sampled: f64,
    observations: u64,
    instructions: Option<u64>,
    native_ns: Option<u64>,
    native_cpu_ns: Option<u64>,
    footprint: u64,
    #[serde(default)]
    warnings: Vec<String>,
    #[serde(default)]
    frames: Vec<Arc<Frame>>,
    #[serde(alias = "anchors")]
    sites: Vec<SiteRows>,
    #[serde(default)]
    functions: Vec<Arc<str>>,
    #[serde(default)]
    stacks: Vec<StoredStack>,
}

impl Stored {
    /// Returns the profile with all frames resolved.
    ///
    /// # Errors
    /// Names the event with a frame, or the stack with a function, that is not in its table.
    fn into_profile(mut self) -> Result<Profile, String> {
        for rows in &mut self.sites {
            let id = rows.site.id;
            let SiteKind::Alloc { frames, .. } = &mut rows.site.kind else {
                continue;
            };
            for frame in frames {
                let Some(place) = frame.place() else { continue };
                let found = usize::try_from(place)
                    .ok()
                    .and_then(|place| self.frames.get(place));
                *frame = found
                    .cloned()
                    .ok_or_else(|| format!("site {id}: there is no frame {place}"))?;
            }
        }
        let numbered = self.stacks.iter().enumerate();
        let stacks = numbered.map(|(number, stack)| {
            let resolved = stack.resolve(&self.functions);
            resolved.map_err(|detail| format!("stack {number}: {detail}"))
        });
        let stacks = stacks.collect::<Result<_, _>>()?;
        Ok(Profile {
            format: self.format,
            version: self.version,
            source: self.source,
            source_detail: self.source_detail,
            program: self.program,
            command: self.command,
            complete: self.complete,
            sampled: self.sampled,
            observations: self.observations,
            instructions: self.instructions,
            native_ns: self.native_ns,
            native_cpu_ns: self.native_cpu_ns,
            footprint: self.footprint,
            warnings: self.warnings,
            sites: self.sites,
            stacks,
        })
    }
}

impl StoredStack {
    /// Returns the stack with the names of its functions.
    fn resolve(&self, functions: &[Arc<str>]) -> Result<Stack, String> {
        let name = |place: &u32| {
            let found = functions.get(*place as usize).cloned();
            found.ok_or_else(|| format!("there is no function {place}"))
        };
        let frames: Result<_, String> = self.frames.iter().map(name).collect();
        Ok(Stack {
            frames: frames?,
            misses: self.misses,
        })
    }
}

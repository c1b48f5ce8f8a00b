// SPDX-License-Identifier: MIT OR Apache-2.0
//! All results, and the differences from the first kernel.

use std::fmt::Write as _;

use serde::Serialize;

use super::plan::{Plan, SuiteName};
use super::verdict::{End, Verdict};

/// A test and its results.
#[derive(Debug, Serialize)]
pub struct Row {
    pub suite: SuiteName,
    pub test: String,
    /// By kernel: the results of all its runs.
    pub seen: Vec<Vec<Verdict>>,
}

/// A kernel that was tested.
#[derive(Debug, Serialize)]
pub struct Kernel {
    pub variant: String,
    pub release: String,
}

/// All results; the first kernel is the reference.
#[derive(Debug, Serialize)]
pub struct Sheet {
    pub kernels: Vec<Kernel>,
    pub rows: Vec<Row>,
}

/// A result that the first kernel never had.
#[derive(Debug, Serialize)]
pub struct Difference {
    pub suite: SuiteName,
    pub test: String,
    pub variant: String,
    pub is: String,
    /// The explanation.
    pub reason: Option<String>,
    pub remarks: Vec<String>,
}

impl Row {
    /// The results of a kernel that the first one never had, each once.
    fn unmatched(&self, kernel: usize) -> Vec<&Verdict> {
        let mut found: Vec<&Verdict> = Vec::new();
        for verdict in &self.seen[kernel] {
            if !self.seen[0].contains(verdict) && !found.contains(&verdict) {
                found.push(verdict);
            }
        }
        found
    }

    /// A kernel's results, with their counts if they differ.
    fn cell(&self, kernel: usize) -> String {
        let mut counts: Vec<(String, usize)> = Vec::new();
        for verdict in &self.seen[kernel] {
            let text = verdict.to_string();
            match counts.iter_mut().find(|(it, _)| *it == text) {
                Some((_, count)) => *count += 1,
                None => counts.push((text, 1)),
            }
        }
        match &counts[..] {
            [] => "-".to_owned(),
            [(text, _)] => text.clone(),
            several => {
                let each = several
                    .iter()
                    .map(|(text, count)| format!("{count} of {}: {text}", self.seen[kernel].len()));
                each.collect::<Vec<_>>().join(" | ")
            }
        }
    }
}

impl Sheet {
    pub fn new(kernels: Vec<Kernel>) -> Sheet {
        Sheet {
            kernels,
            rows: Vec::new(),
        }
    }

    pub fn add(&mut self, kernel: usize, suite: SuiteName, test: &str, verdict: Verdict) {
        let is = |row: &&mut Row| row.suite == suite && row.test == test;
        let count = self.kernels.len();
        let row = match self.rows.iter_mut().find(is) {
            Some(row) => row,
            None => {
                self.rows.push(Row {
                    suite,
                    test: test.to_owned(),
                    seen: vec![Vec::new(); count],
                });
                self.rows.last_mut().expect("one was added")
            }
        };
        row.seen[kernel].push(verdict);
    }

    /// Whether some kernel had a result that the first one did not have.
    pub fn differs(&self, suite: SuiteName, test: &str) -> bool {
        let mut rows = self.rows.iter();
        let row = rows.find(|row| row.suite == suite && row.test == test);
        row.is_some_and(|row| (1..self.kernels.len()).any(|it| !row.unmatched(it).is_empty()))
    }

    pub fn differences(&self, plan: &Plan) -> Vec<Difference> {
        let mut found = Vec::new();
        for row in &self.rows {
            for (number, kernel) in self.kernels.iter().enumerate().skip(1) {
                for verdict in row.unmatched(number) {
                    let is = verdict.to_string();
                    let mut all = plan.explained.iter();
                    let why = all.find(|it| it.is_of(row.suite, &row.test, &kernel.variant, &is));
                    found.push(Difference {
                        suite: row.suite,
                        test: row.test.clone(),
                        variant: kernel.variant.clone(),
                        is,
                        reason: why.map(|it| it.reason.clone()),
                        remarks: verdict.remarks.clone(),
                    });
                }
            }
        }
        found
    }

    /// By kernel: the number of tests, and of those that passed.
    fn sums(&self, suite: SuiteName) -> Vec<(usize, usize)> {
        let of = |kernel: usize| {
            let rows = self.rows.iter().filter(|row| row.suite == suite);
            let first: Vec<&Verdict> = rows.filter_map(|row| row.seen[kernel].first()).collect();
            let passed = first.iter().filter(|it| it.end == End::Passed);
            (first.len(), passed.count())
        };
        (0..self.kernels.len()).map(of).collect()
    }

    fn suites(&self) -> Vec<SuiteName> {
        let mut suites: Vec<SuiteName> = self.rows.iter().map(|row| row.suite).collect();
        suites.dedup();
        suites
    }

    /// For a terminal: one line for a test if all kernels agree, else one for each kernel.
    pub fn table(&self, plan: &Plan) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let cells: Vec<String> = (0..self.kernels.len()).map(|it| row.cell(it)).collect();
            let name = format!("{:7}{}", row.suite.name(), row.test);
            if cells.iter().all(|cell| *cell == cells[0]) {
                let _ = writeln!(text, "{name:52} {}", cells[0]);
                continue;
            }
            let _ = writeln!(text, "{name}");
            for (kernel, cell) in self.kernels.iter().zip(cells) {
                let _ = writeln!(text, "       {:45} {cell}", kernel.variant);
            }
        }
        for suite in self.suites() {
            let passed = |(all, passed): &(usize, usize)| format!("{passed} of {all}");
            let sums: Vec<String> = self.sums(suite).iter().map(passed).collect();
            let names: Vec<&str> = self.kernels.iter().map(|it| it.variant.as_str()).collect();
            let each = names
                .iter()
                .zip(sums)
                .map(|(name, sum)| format!("{name} {sum}"));
            let each: Vec<String> = each.collect();
            let _ = writeln!(text, "{}: passed: {}", suite.name(), each.join(", "));
        }
        for it in self.differences(plan) {
            let reason = it.reason.as_deref().unwrap_or("NOT EXPLAINED");
            let (suite, test) = (it.suite.name(), it.test);
            let _ = writeln!(text, "{suite} {test}, {}: {}: {reason}", it.variant, it.is);
            for line in it.remarks {
                let _ = writeln!(text, "    {line}");
            }
        }
        text
    }

    /// The document.
    pub fn markdown(&self, plan: &Plan, command: &str) -> String {
        let first = &self.kernels[0].variant;
        let mut text = format!(
            "<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->\n# Outside test suites\n\n\
             Made by `{command}`. `lab/outside.toml` lists the tests and the explained differences from {first}; \
             [the guide](../guide/lab.md#outside-test-suites) describes the method. Patched kernels have LUF and econ \
             enabled and a morselfs mounted. Tests with results that differ from those of {first} are \
             repeated on all kernels; if the results of one kernel vary, all are listed with their counts.\n\n\
             | kernel | release |\n|---|---|\n"
        );
        for kernel in &self.kernels {
            let _ = writeln!(text, "| {} | {} |", kernel.variant, kernel.release);
        }
        let _ = writeln!(text, "\n## Differences from {first}\n");
        let differences = self.differences(plan);
        if differences.is_empty() {
            let _ = writeln!(text, "None.");
        } else {
            text += "| test | kernel | result | why |\n|---|---|---|---|\n";
        }
        for it in differences {
            let _ = writeln!(
                text,
                "| {}: {} | {} | {} | {} |",
                it.suite.name(),
                cell(&it.test),
                it.variant,
                cell(&it.is),
                cell(it.reason.as_deref().unwrap_or("**not explained**"))
            );
        }
        for suite in self.suites() {
            self.suite(&mut text, suite);
        }
        text += "\n## Left out\n\n| tests | why |\n|---|---|\n";
        for it in &plan.left_out {
            let (suite, tests) = (it.suite.name(), it.tests.join(", "));
            let _ = writeln!(text, "| {suite}: {} | {} |", cell(&tests), cell(&it.reason));
        }
        text
    }

    fn suite(&self, text: &mut String, suite: SuiteName) {
        let names: Vec<&str> = self.kernels.iter().map(|it| it.variant.as_str()).collect();
        let _ = writeln!(text, "\n## {}\n", suite.name());
        let _ = writeln!(text, "| test | {} |", names.join(" | "));
        let _ = writeln!(text, "|---|{}", "---|".repeat(names.len()));
        for row in self.rows.iter().filter(|row| row.suite == suite) {
            let cells: Vec<String> = (0..names.len()).map(|it| cell(&row.cell(it))).collect();
            let _ = writeln!(text, "| {} | {} |", cell(&row.test), cells.join(" | "));
        }
        let sum = |(all, passed): &(usize, usize)| format!("{passed} of {all} passed");
        let sums: Vec<String> = self.sums(suite).iter().map(sum).collect();
        let _ = writeln!(text, "| all | {} |", sums.join(" | "));
    }
}

/// A text in a table's cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::{Done, Part, Status};

    fn verdict(out: &str) -> Verdict {
        let done = Done {
            name: String::new(),
            status: Status::Exit(i32::from(out.contains("not ok"))),
            out: out.to_owned(),
            err: String::new(),
        };
        Verdict::of(&Part::Ended(done, Vec::new()), &[4]).unwrap()
    }

    fn sheet(seen: &[(usize, &str, &str)]) -> Sheet {
        let kernel = |name: &str| Kernel {
            variant: name.to_owned(),
            release: format!("6.12-{name}"),
        };
        let mut sheet = Sheet::new(vec![kernel("vanilla"), kernel("tollfree")]);
        for (number, test, out) in seen {
            sheet.add(*number, SuiteName::Mm, test, verdict(out));
        }
        sheet
    }

    fn plan(explained: &str) -> Plan {
        let text = format!(
            "patched = 'true'\nmachine = {{ cpus = 1, memory_mib = 256 }}\nsuite = {{}}\n{explained}"
        );
        toml::from_str(&text).unwrap()
    }

    #[test]
    fn a_result_that_the_first_kernel_never_had_is_a_difference() {
        let mut sheet = sheet(&[
            (0, "a", "ok 1 x"),
            (1, "a", "not ok 1 x"),
            (0, "b", ""),
            (1, "b", ""),
        ]);
        assert!(sheet.differs(SuiteName::Mm, "a"));
        assert!(!sheet.differs(SuiteName::Mm, "b"));
        assert_eq!(sheet.differences(&plan("")).len(), 1);
        sheet.add(1, SuiteName::Mm, "a", verdict("ok 1 x"));
        assert_eq!(sheet.differences(&plan("")).len(), 1);
        sheet.add(0, SuiteName::Mm, "a", verdict("not ok 1 x"));
        assert!(sheet.differences(&plan("")).is_empty());
    }

    #[test]
    fn a_reason_is_in_the_data() {
        let sheet = sheet(&[(0, "a", "ok 1 x"), (1, "a", "not ok 1 x")]);
        let why = "[[explained]]\nsuite = 'mm'\ntest = 'a'\nvariant = 'tollfree'\nsays = 'FAILED'\nreason = 'it is slow'\n";
        let found = sheet.differences(&plan(why));
        assert_eq!(found[0].reason.as_deref(), Some("it is slow"));
        assert!(sheet.markdown(&plan(why), "x").contains("it is slow"));
        assert!(sheet.table(&plan("")).contains("NOT EXPLAINED"));
    }

    #[test]
    fn the_tables_have_every_test() {
        let sheet = sheet(&[
            (0, "a|b", "ok 1 x"),
            (1, "a|b", "ok 1 x"),
            (0, "c", ""),
            (1, "c", "not ok 1 y"),
            (1, "c", ""),
        ]);
        let text = sheet.markdown(&plan(""), "toll-lab outside");
        assert!(
            text.contains("| a\\|b | ok, 1 passed | ok, 1 passed |"),
            "{text}"
        );
        assert!(
            text.contains("1 of 2: FAILED (status 1), failed: N y"),
            "{text}"
        );
        assert!(
            text.contains("| all | 2 of 2 passed | 1 of 2 passed |"),
            "{text}"
        );
        let table = sheet.table(&plan(""));
        assert!(
            table.contains("mm: passed: vanilla 2 of 2, tollfree 1 of 2"),
            "{table}"
        );
    }
}

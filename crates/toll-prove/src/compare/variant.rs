// SPDX-License-Identifier: MIT OR Apache-2.0
//! Variants: the compared ways of running the program.

use std::path::PathBuf;

use toll_act::machine::MachineSetting;
use toll_act::permanent::Change;
use toll_model::pages::PageKind;

use super::invocation::Invocation;

/// One way of running the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// The name in tables and JSON.
    pub name: String,
    pub way: Way,
    /// The kinds of large pages that it adds.
    pub pages: Vec<PageKind>,
}

/// The settings of a variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// As the user runs it today.
    None,
    /// With huge pages disabled (if today's run is already huge).
    Never,
    /// Under a plan.
    Plan(PathBuf),
    /// Under a plan, with huge pages only in advised memory, as on a machine at `madvise`.
    PlanOnly(PathBuf),
    /// Under a plan with program text.
    Text(PathBuf),
    /// Everything huge.
    All,
    /// As today, with one permanent change.
    Change(Change),
    /// The first of two commands.
    First(Invocation),
    /// The second, which is judged.
    Second(Invocation),
}

impl Variant {
    pub fn none() -> Variant {
        Variant::new("none", Way::None)
    }

    pub fn never() -> Variant {
        Variant::new("never", Way::Never)
    }

    pub fn plan(file: impl Into<PathBuf>) -> Variant {
        Variant::new("plan", Way::Plan(file.into()))
    }

    pub fn plan_only(file: impl Into<PathBuf>) -> Variant {
        Variant::new("plan-only", Way::PlanOnly(file.into()))
    }

    /// Program text in huge pages, and the regions of a plan.
    pub fn text(name: &str, file: impl Into<PathBuf>) -> Variant {
        Variant::new(name, Way::Text(file.into()))
    }

    /// A plan without the line of this number.
    pub fn without(line: usize, file: impl Into<PathBuf>) -> Variant {
        Variant::new(&format!("without {line}"), Way::Plan(file.into()))
    }

    pub fn all() -> Variant {
        Variant::new("all", Way::All).with(vec![PageKind::Anonymous, PageKind::Shared])
    }

    pub fn change(name: &str, change: Change) -> Variant {
        Variant::new(name, Way::Change(change))
    }

    /// Two commands, which are called a and b.
    pub fn two(a: Invocation, b: Invocation) -> Vec<Variant> {
        vec![
            Variant::new("a", Way::First(a)),
            Variant::new("b", Way::Second(b)),
        ]
    }

    fn new(name: &str, way: Way) -> Variant {
        Variant {
            name: name.to_owned(),
            way,
            pages: Vec::new(),
        }
    }

    /// Names the kinds of pages that it adds.
    pub fn with(self, pages: Vec<PageKind>) -> Variant {
        Variant { pages, ..self }
    }

    /// Whether the variant can be applied as it is, so that its gain is judged.
    pub fn is_judged(&self) -> bool {
        matches!(
            self.way,
            Way::Plan(_) | Way::Text(_) | Way::Change(_) | Way::Second(_)
        )
    }

    /// A setting of the machine that its runs need.
    pub(crate) fn machine(&self) -> Option<&MachineSetting> {
        match &self.way {
            Way::Change(change) => change.machine.as_ref(),
            _ => None,
        }
    }

    /// One of two commands.
    pub fn invocation(&self) -> Option<&Invocation> {
        match &self.way {
            Way::First(invocation) | Way::Second(invocation) => Some(invocation),
            _ => None,
        }
    }

    /// The description of the variant.
    pub fn meaning(&self) -> String {
        let text = match &self.way {
            Way::None => "as it is run today",
            Way::Never => "without huge pages",
            Way::Plan(_) => "the plan's regions huge",
            Way::PlanOnly(_) => "only the plan's regions and other advised memory huge",
            Way::Text(_) if self.pages == [PageKind::Text] => "program text huge",
            Way::Text(_) => "the plan's regions and program text huge",
            Way::All => "everything huge",
            Way::Change(_) => "with this change, without tollfree",
            Way::First(invocation) | Way::Second(invocation) => return invocation.text(),
        };
        text.to_owned()
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A variant's .config: allnoconfig plus its fragments.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

use super::make::Make;
use super::variant::Variant;
use crate::error::LabError;
use crate::files;

/// Writes the .config, unless it is up to date.
///
/// # Errors
/// [`LabError::Input`] names each symbol that a fragment sets and Kconfig does not accept.
pub fn configure(make: &Make, variant: &Variant) -> Result<()> {
    let mut all = String::new();
    let mut wanted = BTreeMap::new();
    for fragment in &variant.fragments {
        let text = files::read_text(fragment)?;
        for (symbol, value) in symbols(&text) {
            wanted.insert(symbol.to_owned(), (value.to_owned(), fragment.as_path()));
        }
        all += &text;
        all.push('\n');
    }
    let merged = make.build.join("wanted.config");
    files::write(&merged, all.as_bytes())?;
    // Built beside the old one, which keeps its modification time if nothing changes.
    let new = make.build.join("new.config");
    let set = |name: &str, path: &Path| format!("{name}={}", path.display());
    make.run(
        &[
            &set("KCONFIG_ALLCONFIG", &merged),
            &set("KCONFIG_CONFIG", &new),
            "allnoconfig",
        ],
        "configuring",
    )?;
    let text = files::read_text(&new)?;
    check(&text, &wanted)?;
    let config = make.config_path();
    if files::read(&config)?.as_deref() != Some(text.as_bytes()) {
        files::write(&config, text.as_bytes())?;
    }
    Ok(())
}

/// Parses the symbols that a .config sets, with their values; `n` for `# CONFIG_X is not set`.
fn symbols(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| {
        let line = line.trim();
        match line.strip_prefix("# CONFIG_") {
            Some(rest) => Some((rest.strip_suffix(" is not set")?, "n")),
            None => line.strip_prefix("CONFIG_")?.split_once('='),
        }
    })
}

fn check(config: &str, wanted: &BTreeMap<String, (String, &Path)>) -> Result<()> {
    let got: BTreeMap<&str, &str> = symbols(config).collect();
    let mut wrong = String::new();
    for (symbol, (value, fragment)) in wanted {
        let is = got.get(symbol.as_str()).copied().unwrap_or("n");
        if is != value {
            wrong += &format!(
                "\n{}: CONFIG_{symbol}={value} becomes {is}",
                fragment.display()
            );
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(LabError::Input(format!(
        "not accepted by Kconfig (unmet dependency or unknown symbol):{wrong}"
    ))
    .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_set_or_not_set() {
        let text = "# a comment\nCONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=\"a=b\"\n";
        let found: Vec<_> = symbols(text).collect();
        assert_eq!(found, [("A", "y"), ("B", "n"), ("C", "\"a=b\"")]);
    }

    #[test]
    fn every_symbol_that_is_not_accepted_is_named_with_its_fragment() {
        let path = Path::new("lab.config");
        let want = |pairs: &[(&str, &str)]| {
            let one =
                |&(symbol, value): &(&str, &str)| (symbol.to_owned(), (value.to_owned(), path));
            check(
                "CONFIG_A=y\nCONFIG_D=16\n",
                &pairs.iter().map(one).collect(),
            )
        };
        assert!(want(&[("A", "y"), ("B", "n"), ("D", "16")]).is_ok());
        let error = want(&[("A", "n"), ("B", "y"), ("D", "16")])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("lab.config: CONFIG_A=n becomes y"),
            "{error}"
        );
        assert!(
            error.contains("lab.config: CONFIG_B=y becomes n"),
            "{error}"
        );
        assert!(!error.contains("CONFIG_D"), "{error}");
    }
}

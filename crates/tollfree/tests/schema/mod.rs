// SPDX-License-Identifier: MIT OR Apache-2.0
//! JSON output against the schemas of the repository.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// The violations of schemas/NAME.schema.json in a document; empty if it is valid.
pub fn errors(name: &str, document: &Value) -> Vec<String> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../schemas/{name}.schema.json"));
    let schema: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    validator
        .iter_errors(document)
        .map(|e| format!("{}: {e}", e.instance_path))
        .collect()
}

/// Fails with all violations in a document.
pub fn check(name: &str, document: &Value) {
    let errors = errors(name, document);
    assert!(errors.is_empty(), "{errors:#?}");
}

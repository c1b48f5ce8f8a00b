// SPDX-License-Identifier: MIT OR Apache-2.0
//! JSON output against the schemas of the repository.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// What is wrong with a document by schemas/NAME.schema.json; nothing if it keeps to it.
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

/// Fails with all that is wrong with a document.
pub fn check(name: &str, document: &Value) {
    let errors = errors(name, document);
    assert!(errors.is_empty(), "{errors:#?}");
}

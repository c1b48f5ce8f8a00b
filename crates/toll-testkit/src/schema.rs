// SPDX-License-Identifier: MIT OR Apache-2.0
//! JSON output against the schemas of the repository.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::output;

/// Returns the violations of schemas/NAME.schema.json in a document; empty if it is valid.
pub fn errors(name: &str, document: &Value) -> Vec<String> {
    let schemas = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas");
    let path = schemas.join(format!("{name}.schema.json"));
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

/// Returns the JSON that a command printed; fails if it violates the schema.
pub fn json(name: &str, output: &Output) -> Value {
    let document = output::json(output);
    check(name, &document);
    document
}

//! The bill of materials of a program, in CycloneDX 1.6: each crate that is linked or that builds it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::payload::{Payload, Target};
use crate::context::Context;
use crate::process;

/// `linchpin-VERSION-TARGET.cdx.json`.
pub(crate) fn sbom(context: &Context, payload: &Payload, target: &Target) -> Result<(String, Vec<u8>)> {
    let mut cargo = process::cargo();
    cargo.args(["metadata", "--locked", "--format-version", "1", "--filter-platform", &target.triple]);
    cargo.args(["--manifest-path", "apps/cli/Cargo.toml", "--features", "keyring,redis"]);
    let done = cargo.current_dir(&context.root).output().context("cannot run cargo metadata")?;
    let metadata: Value = serde_json::from_slice(&done.stdout).context("cargo metadata says no JSON")?;
    let lock: toml::Table = toml::from_str(&std::fs::read_to_string(context.root.join("Cargo.lock"))?)?;
    let document = document(&metadata, &checksums(&lock), &payload.version, &target.triple)?;
    Ok((format!("linchpin-{}-{}.cdx.json", payload.version, target.triple), serde_json::to_vec_pretty(&document)?))
}

/// Checksums by name and version.
fn checksums(lock: &toml::Table) -> BTreeMap<(String, String), String> {
    let packages = lock.get("package").and_then(toml::Value::as_array).into_iter().flatten();
    let text = |package: &toml::Value, member: &str| Some(package.get(member)?.as_str()?.to_owned());
    packages
        .filter_map(|package| Some(((text(package, "name")?, text(package, "version")?), text(package, "checksum")?)))
        .collect()
}

fn document(
    metadata: &Value,
    checksums: &BTreeMap<(String, String), String>,
    version: &str,
    triple: &str,
) -> Result<Value> {
    let all = |member: &Value| member.as_array().cloned().unwrap_or_default();
    let packages: BTreeMap<String, Value> =
        all(&metadata["packages"]).into_iter().map(|package| (id(&package["id"]), package)).collect();
    let edges: BTreeMap<String, Vec<String>> =
        all(&metadata["resolve"]["nodes"]).iter().map(|node| (id(&node["id"]), needed(node))).collect();
    let root = packages.iter().find(|(_, package)| package["name"] == "linchpin-cli").context("no linchpin-cli")?.0;
    let mut reached = BTreeSet::from([root.clone()]);
    let mut next = VecDeque::from([root.clone()]);
    while let Some(package) = next.pop_front() {
        for other in edges.get(&package).into_iter().flatten() {
            if reached.insert(other.clone()) {
                next.push_back(other.clone());
            }
        }
    }
    let url = |id: &str| {
        let package = &packages[id];
        format!(
            "pkg:cargo/{}@{}",
            package["name"].as_str().unwrap_or_default(),
            package["version"].as_str().unwrap_or_default()
        )
    };
    let mut components = Vec::new();
    let mut dependencies = Vec::new();
    for id in &reached {
        let (package, url_of) = (&packages[id], url(id));
        let needs: BTreeSet<String> = edges.get(id).into_iter().flatten().map(|other| url(other)).collect();
        dependencies.push(json!({ "ref": url_of, "dependsOn": needs }));
        if id == root {
            continue;
        }
        let mut component = json!({
            "type": "library", "bom-ref": url_of, "name": package["name"], "version": package["version"], "purl": url_of,
        });
        if let Some(licence) = package["license"].as_str() {
            component["licenses"] = json!([{ "expression": licence.replace('/', " OR ") }]);
        }
        let name = |member: &str| package[member].as_str().unwrap_or_default().to_owned();
        if let Some(checksum) = checksums.get(&(name("name"), name("version"))) {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
        }
        components.push(component);
    }
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": { "type": "application", "bom-ref": url(root), "name": "linchpin", "version": version, "purl": url(root) },
            "properties": [{ "name": "cargo:target", "value": triple }],
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

fn id(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// What a crate is built with and of: not what only its tests use.
fn needed(node: &Value) -> Vec<String> {
    let of_tests = |kind: &Value| kind["kind"] == "dev";
    let all = node["deps"].as_array().into_iter().flatten();
    all.filter(|dep| !dep["dep_kinds"].as_array().is_some_and(|kinds| kinds.iter().all(of_tests)))
        .map(|dep| id(&dep["pkg"]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_tests_use_is_not_listed() {
        let package = |name: &str, version: &str| json!({ "id": name, "name": name, "version": version, "license": "MIT/Apache-2.0" });
        let dep = |name: &str, kind: Value| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        let metadata = json!({
            "packages": [package("linchpin-cli", "1.0.0"), package("bytes", "2.0.0"), package("tempfile", "3.0.0")],
            "resolve": { "nodes": [
                { "id": "linchpin-cli", "deps": [dep("bytes", Value::Null), dep("tempfile", json!("dev"))] },
                { "id": "bytes", "deps": [] },
            ] },
        });
        let sums = BTreeMap::from([(("bytes".to_owned(), "2.0.0".to_owned()), "00ff".to_owned())]);
        let made = document(&metadata, &sums, "1.0.0", "x86_64-unknown-linux-gnu").unwrap();
        assert_eq!(
            made["components"],
            json!([{
                "type": "library", "bom-ref": "pkg:cargo/bytes@2.0.0", "name": "bytes", "version": "2.0.0",
                "purl": "pkg:cargo/bytes@2.0.0", "licenses": [{ "expression": "MIT OR Apache-2.0" }],
                "hashes": [{ "alg": "SHA-256", "content": "00ff" }],
            }])
        );
        assert_eq!(
            made["dependencies"][1],
            json!({ "ref": "pkg:cargo/linchpin-cli@1.0.0", "dependsOn": ["pkg:cargo/bytes@2.0.0"] })
        );
    }
}

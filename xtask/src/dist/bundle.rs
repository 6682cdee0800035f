//! For each server: a bundle that hosts install with one click (MCPB), and its entry in the MCP registry
//! (`server.json`). The registry wants npm and PyPI packages to name the one entry that they belong to: the program's.

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::archive::{Entry, zip};
use super::payload::{Payload, Program, Target};
use super::places::PLACES;

/// Servers that refuse to start on Windows.
const UNIX_ONLY: &[&str] = &["browser", "filesystem"];

/// Whether a server starts on a target.
pub(crate) fn runs_on(server: &Value, target: &Target) -> bool {
    target.os() != "win32" || UNIX_ONLY.iter().all(|name| server["name"] != *name)
}

/// The names of a bundle's file.
fn file(server: &str, version: &str, target: &Target) -> String {
    format!("linchpin-{server}-{version}-{}.mcpb", target.triple)
}

/// The bundle of a server as `(file name, bytes)`: the program, and a manifest that says how to start it.
pub(crate) fn bundle(payload: &Payload, program: &Program, server: &Value) -> Result<(String, Vec<u8>)> {
    let name = name(server)?;
    let manifest = manifest(payload, &program.target, server)?;
    let entries = [
        Entry::file("manifest.json", serde_json::to_vec_pretty(&manifest)?),
        Entry::program(format!("server/{}", program.target.program()), program.bytes.clone()),
        payload.text("LICENSE-APACHE")?.clone(),
        payload.text("LICENSE-MIT")?.clone(),
    ];
    Ok((file(name, &payload.version, &program.target), zip(&entries, payload.level)?))
}

fn name(server: &Value) -> Result<&str> {
    server["name"].as_str().context("a server without a name")
}

/// What a server wants on its command line, and the variables that a user is asked for.
fn asked<'a>(server: &'a Value, what: &str) -> impl Iterator<Item = &'a Value> {
    server[what].as_array().into_iter().flatten()
}

/// Whether the value of a variable is a secret, as its name tells.
fn is_secret(variable: &str) -> bool {
    ["TOKEN", "KEY", "SECRET", "PASSWORD"].iter().any(|word| variable.contains(word))
}

/// What a host reads: how the server is started, and what the user is asked for.
pub(crate) fn manifest(payload: &Payload, target: &Target, server: &Value) -> Result<Value> {
    let mut args = vec!["serve".to_owned(), name(server)?.to_owned()];
    let (mut questions, mut env) = (Map::new(), Map::new());
    for argument in asked(server, "arguments") {
        let key = argument["name"].as_str().context("an argument without a name")?.replace('-', "_");
        let kind = argument["kind"].as_str().filter(|kind| matches!(*kind, "directory" | "file")).unwrap_or("string");
        // Several values become several arguments.
        args.push(format!("${{user_config.{key}}}"));
        questions.insert(
            key.clone(),
            json!({
                "type": kind, "title": title(&key), "description": argument["about"], "required": true,
                "multiple": argument["repeated"], "sensitive": argument["secret"],
            }),
        );
    }
    for variable in asked(server, "variables") {
        let name = variable["name"].as_str().context("a variable without a name")?;
        let key = name.to_lowercase();
        env.insert(name.to_owned(), json!(format!("${{user_config.{key}}}")));
        questions.insert(
            key,
            json!({
                "type": "string", "title": variable["about"], "description": format!("The variable {name}"),
                "required": false, "sensitive": is_secret(name),
            }),
        );
    }
    let tools = server["tools"].as_array().into_iter().flatten().filter(|tool| tool["default"] == true);
    let tools: Vec<Value> = tools.map(|tool| json!({ "name": tool["name"], "description": tool["title"] })).collect();
    Ok(json!({
        "manifest_version": "0.3",
        "name": format!("linchpin-{}", name(server)?),
        "display_name": server["title"],
        "version": payload.version,
        "description": server["about"],
        "author": { "name": "The Linchpin developers", "url": PLACES.homepage },
        "homepage": PLACES.homepage,
        "license": "MIT OR Apache-2.0",
        "server": {
            "type": "binary",
            "entry_point": format!("server/{}", target.program()),
            "mcp_config": {
                "command": format!("${{__dirname}}/server/{}", target.program()),
                "args": args,
                "env": env,
            },
        },
        "tools": tools,
        "compatibility": { "platforms": [target.os()] },
        "user_config": questions,
    }))
}

/// `auth_token` as `Auth token`.
fn title(key: &str) -> String {
    let words = key.replace('_', " ");
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().collect::<String>() + letters.as_str()).unwrap_or_default()
}

/// The entry of a server in the registry: its bundles among `made`. What they need is in their manifests.
pub(crate) fn registry(payload: &Payload, server: &Value, made: &[(String, Vec<u8>)]) -> Result<(String, Vec<u8>)> {
    let name = name(server)?;
    let mut packages = Vec::new();
    for program in &payload.programs {
        let file = file(name, &payload.version, &program.target);
        if let Some((file, bytes)) = made.iter().find(|(made, _)| *made == file) {
            packages.push(json!({
                "registryType": "mcpb",
                "identifier": format!("{}/v{}/{file}", PLACES.downloads, payload.version),
                "fileSha256": super::hex(&Sha256::digest(bytes)),
                "transport": { "type": "stdio" },
            }));
        }
    }
    let about = server["about"].as_str().unwrap_or_default();
    entry(payload, name, &format!("{}/{name}", PLACES.registry), &server["title"], about, &packages)
}

/// The entry of the whole program: its npm and PyPI packages, told which servers to run.
pub(crate) fn registry_of_all(payload: &Payload) -> Result<(String, Vec<u8>)> {
    let arguments = json!([
        { "type": "positional", "value": "serve" },
        {
            "type": "positional", "valueHint": "server", "isRequired": true, "isRepeated": true,
            "description": "A server, with its argument after a colon: filesystem:., git:., memory, time, …",
        },
    ]);
    let mut variables = Vec::new();
    for variable in payload.bundled().flat_map(|server| asked(server, "variables")) {
        let name = variable["name"].as_str().context("a variable without a name")?;
        variables.push(json!({ "name": name, "description": variable["about"], "isSecret": is_secret(name) }));
    }
    let packages = [("npm", PLACES.npm, "npx"), ("pypi", PLACES.pypi, "uvx")].map(|(kind, identifier, hint)| {
        json!({
            "registryType": kind, "identifier": identifier, "version": payload.version, "runtimeHint": hint,
            "transport": { "type": "stdio" }, "packageArguments": arguments, "environmentVariables": variables,
        })
    });
    let about = "Servers for files, git, databases, web pages and APIs, one or several in one process";
    entry(payload, "linchpin", &PLACES.entry(), &json!("Linchpin"), about, &packages)
}

fn entry(
    payload: &Payload,
    folder: &str,
    name: &str,
    title: &Value,
    about: &str,
    packages: &[Value],
) -> Result<(String, Vec<u8>)> {
    let entry = json!({
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": name,
        "title": title,
        "description": about.chars().take(100).collect::<String>(),
        "version": payload.version,
        "websiteUrl": PLACES.homepage,
        "packages": packages,
    });
    Ok((format!("registry/{folder}/server.json"), serde_json::to_vec_pretty(&entry)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::payload::example;

    fn parsed(bytes: &[u8]) -> Value {
        serde_json::from_slice(bytes).unwrap()
    }

    #[test]
    fn secrets_are_asked_for_as_such_and_nothing_else() {
        let payload = example();
        let questions = |server: &Value| manifest(&payload, &payload.programs[0].target, server).unwrap();
        assert_eq!(questions(&payload.servers[0])["user_config"]["url"]["sensitive"], true);
        let slack = &questions(&payload.servers[1])["user_config"];
        assert_eq!(
            (&slack["slack_bot_token"]["sensitive"], &slack["slack_team_id"]["sensitive"]),
            (&json!(true), &json!(false))
        );
    }

    #[test]
    fn the_entry_of_a_server_names_its_bundle_and_no_package_that_belongs_to_another_entry() {
        let payload = example();
        let made = [bundle(&payload, &payload.programs[0], &payload.servers[1]).unwrap()];
        let (file, bytes) = registry(&payload, &payload.servers[1], &made).unwrap();
        assert_eq!(file, "registry/slack/server.json");
        let entry = parsed(&bytes);
        let packages = entry["packages"].as_array().unwrap();
        assert_eq!(packages.len(), 1);
        assert_eq!(packages[0]["registryType"], "mcpb");
        assert_eq!(packages[0]["fileSha256"], crate::dist::hex(&Sha256::digest(&made[0].1)));
        assert!(packages[0]["identifier"].as_str().unwrap().ends_with(&format!("/v1.0.0/{}", made[0].0)));
    }

    #[test]
    fn no_bundle_is_made_of_a_server_that_would_not_start() {
        let runs = |name: &str, triple| runs_on(&json!({ "name": name }), &Target::new(triple).unwrap());
        assert!(runs("filesystem", "aarch64-apple-darwin") && runs("time", "x86_64-pc-windows-gnu"));
        assert!(!runs("filesystem", "x86_64-pc-windows-gnu") && !runs("browser", "x86_64-pc-windows-msvc"));
    }

    #[test]
    fn the_packages_of_npm_and_pypi_are_in_the_entry_that_they_name() {
        let payload = example();
        let entry = parsed(&registry_of_all(&payload).unwrap().1);
        let kinds: Vec<&Value> = entry["packages"].as_array().unwrap().iter().map(|one| &one["registryType"]).collect();
        assert_eq!(kinds, ["npm", "pypi"]);
        let asked = &entry["packages"][0]["environmentVariables"];
        assert_eq!((&asked[0]["isSecret"], &asked[1]["isSecret"]), (&json!(true), &json!(false)));
        let name = entry["name"].as_str().unwrap();
        assert!(payload.page("uvx linchpin").unwrap().contains(&format!("<!-- mcp-name: {name} -->")));
    }
}

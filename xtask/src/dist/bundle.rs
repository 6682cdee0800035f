//! For each server: a bundle that hosts install with one click (MCPB), and its entry in the MCP registry (`server.json`).

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::archive::{Entry, zip};
use super::payload::{Payload, Program, Target};
use super::places::PLACES;

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

fn manifest(payload: &Payload, target: &Target, server: &Value) -> Result<Value> {
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
                "multiple": argument["repeated"],
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
                "required": false, "sensitive": true,
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

/// The entry of a server in the registry: every package of this release, with its bundles among `made`.
pub(crate) fn registry(payload: &Payload, server: &Value, made: &[(String, Vec<u8>)]) -> Result<(String, Vec<u8>)> {
    let name = name(server)?;
    let mut arguments =
        vec![json!({ "type": "positional", "value": "serve" }), json!({ "type": "positional", "value": name })];
    for argument in asked(server, "arguments") {
        let is_path = matches!(argument["kind"].as_str(), Some("directory" | "file"));
        arguments.push(json!({
            "type": "positional", "valueHint": argument["name"], "description": argument["about"],
            "format": if is_path { "filepath" } else { "string" }, "isRepeated": argument["repeated"],
        }));
    }
    let secret =
        |variable: &Value| json!({ "name": variable["name"], "description": variable["about"], "isSecret": true });
    let variables: Vec<Value> = asked(server, "variables").map(secret).collect();
    let package = |kind: &str, identifier: String, hint: Option<&str>| {
        let mut package = json!({
            "registryType": kind, "identifier": identifier, "version": payload.version,
            "transport": { "type": "stdio" }, "packageArguments": arguments, "environmentVariables": variables,
        });
        if let Some(hint) = hint {
            package["runtimeHint"] = json!(hint);
        }
        package
    };
    let mut packages =
        vec![package("npm", PLACES.npm.into(), Some("npx")), package("pypi", PLACES.pypi.into(), Some("uvx"))];
    for program in &payload.programs {
        let file = file(name, &payload.version, &program.target);
        if let Some((file, bytes)) = made.iter().find(|(made, _)| *made == file) {
            // What a bundle needs is in its manifest.
            packages.push(json!({
                "registryType": "mcpb",
                "identifier": format!("{}/v{}/{file}", PLACES.downloads, payload.version),
                "fileSha256": super::hex(&Sha256::digest(bytes)),
                "transport": { "type": "stdio" },
            }));
        }
    }
    let about: String = server["about"].as_str().unwrap_or_default().chars().take(100).collect();
    let entry = json!({
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": format!("{}/{name}", PLACES.registry),
        "title": server["title"],
        "description": about,
        "version": payload.version,
        "websiteUrl": PLACES.homepage,
        "packages": packages,
    });
    Ok((format!("registry/{name}/server.json"), serde_json::to_vec_pretty(&entry)?))
}

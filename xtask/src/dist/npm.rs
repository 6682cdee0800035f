//! npm packages: one that people name, with a launcher, and one for each platform with the program.

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::archive::{Entry, gzip, tar};
use super::payload::{Payload, Program, Target};
use super::places::PLACES;

/// The npm name of a platform's package.
pub(crate) fn name(target: &Target) -> String {
    let cpu = if target.cpu() == "aarch64" { "arm64" } else { "x64" };
    let libc = match target.os() {
        "linux" if target.is_static() => "-musl",
        "linux" => "-gnu",
        _ => "",
    };
    format!("{}/{}-{cpu}{libc}", PLACES.npm_scope, target.os())
}

/// All npm packages as `(file name, bytes)`, those of platforms first.
pub(crate) fn packages(payload: &Payload) -> Result<Vec<(String, Vec<u8>)>> {
    let mut made = Vec::new();
    let mut platforms = Map::new();
    for program in &payload.programs {
        platforms.insert(name(&program.target), json!(payload.version));
        made.push(platform(payload, program)?);
    }
    made.push(launcher(payload, platforms)?);
    Ok(made)
}

fn platform(payload: &Payload, program: &Program) -> Result<(String, Vec<u8>)> {
    let target = &program.target;
    let name = name(target);
    let mut manifest = json!({
        "name": name,
        "version": payload.version,
        "description": format!("The program linchpin for {}", target.triple),
        "license": "MIT OR Apache-2.0",
        "homepage": PLACES.homepage,
        "repository": { "type": "git", "url": PLACES.repository },
        "os": [target.os()],
        "cpu": [if target.cpu() == "aarch64" { "arm64" } else { "x64" }],
        "preferUnplugged": true,
    });
    if target.os() == "linux" && !target.is_static() {
        manifest["libc"] = json!(["glibc"]);
    }
    let files = vec![Entry::program(format!("package/{}", target.program()), program.bytes.clone())];
    package(payload, &name, manifest, files)
}

fn launcher(payload: &Payload, platforms: Map<String, Value>) -> Result<(String, Vec<u8>)> {
    let manifest = json!({
        "name": PLACES.npm,
        "version": payload.version,
        "description": "Model Context Protocol servers, and a client for any other, in one program",
        "keywords": ["mcp", "model-context-protocol", "mcp-server", "inspector"],
        "license": "MIT OR Apache-2.0",
        "homepage": PLACES.homepage,
        "repository": { "type": "git", "url": PLACES.repository },
        "mcpName": PLACES.entry(),
        "bin": { "linchpin": "linchpin.js" },
        "engines": { "node": ">=18" },
        "optionalDependencies": platforms,
    });
    let launcher = include_str!("launcher.js").replace("@SCOPE", PLACES.npm_scope);
    let files = vec![
        Entry::program("package/linchpin.js", launcher),
        Entry::file("package/README.md", payload.page(&format!("npx {}", PLACES.npm))?),
    ];
    package(payload, PLACES.npm, manifest, files)
}

/// The archive that `npm install FILE` and `npm publish FILE` take.
fn package(payload: &Payload, name: &str, manifest: Value, files: Vec<Entry>) -> Result<(String, Vec<u8>)> {
    let mut entries = vec![Entry::file("package/package.json", serde_json::to_vec_pretty(&manifest)?)];
    entries.extend(files);
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
        entries.push(payload.text(licence)?.at(format!("package/{licence}")));
    }
    let file = format!("{}-{}.tgz", name.trim_start_matches('@').replace('/', "-"), payload.version);
    Ok((file, gzip(&tar(&entries, payload.epoch)?, payload.level)?))
}

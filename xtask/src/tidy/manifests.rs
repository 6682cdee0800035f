//! Who may depend on whom.

use super::{Finding, Tree};

/// What a crate may or must not have among its dependencies (not its dev-dependencies).
enum Rule {
    /// Nothing but these.
    Only(&'static [&'static str]),
    /// Anything but these.
    Never(&'static [&'static str]),
}

use Rule::{Never, Only};

/// The arrows of ARCHITECTURE.md, one row per crate.
const RULES: &[(&str, Rule)] = &[
    ("crates/types", Only(&["serde", "serde_json", "base64"])),
    (
        "crates/core",
        Never(&[
            "tokio",
            "ring",
            "hyper",
            "hyper-util",
            "reqwest",
            "linchpin-proto",
            "linchpin-server",
            "linchpin-client",
            "linchpin-transport",
            "linchpin-auth",
            "linchpin-macros",
            "linchpin",
        ]),
    ),
    (
        "crates/proto",
        Never(&[
            "tokio",
            "hyper",
            "hyper-util",
            "reqwest",
            "linchpin-server",
            "linchpin-client",
            "linchpin-transport",
            "linchpin-auth",
            "linchpin-macros",
            "linchpin",
        ]),
    ),
    ("crates/server", Never(&["hyper", "hyper-util", "reqwest", "linchpin-transport", "linchpin-client", "linchpin"])),
    (
        "crates/client",
        Never(&[
            "hyper",
            "hyper-util",
            "reqwest",
            "http",
            "linchpin-server",
            "linchpin-transport",
            "linchpin-auth",
            "linchpin-macros",
            "linchpin",
        ]),
    ),
    (
        "crates/auth",
        Never(&[
            "hyper",
            "hyper-util",
            "reqwest",
            "linchpin-server",
            "linchpin-client",
            "linchpin-transport",
            "linchpin-macros",
            "linchpin",
        ]),
    ),
    (
        "crates/transport",
        Never(&["reqwest", "linchpin-server", "linchpin-client", "linchpin-auth", "linchpin-macros", "linchpin"]),
    ),
    (
        "crates/guard",
        Never(&[
            "hyper",
            "hyper-util",
            "reqwest",
            "linchpin-proto",
            "linchpin-types",
            "linchpin-server",
            "linchpin-client",
            "linchpin-transport",
            "linchpin-auth",
            "linchpin-macros",
            "linchpin",
        ]),
    ),
    (
        "crates/issuer",
        Never(&[
            "hyper",
            "hyper-util",
            "reqwest",
            "linchpin-proto",
            "linchpin-types",
            "linchpin-server",
            "linchpin-client",
            "linchpin-transport",
            "linchpin-auth",
            "linchpin-macros",
            "linchpin",
        ]),
    ),
    // None of them knows the protocol: any program could use them.
    ("crates/oauth", Only(&["base64", "http", "ring", "rustls-pki-types", "serde", "serde_json", "zeroize"])),
    (
        "crates/web",
        Only(&[
            "base64",
            "bytes",
            "getrandom",
            "http",
            "http-body",
            "http-body-util",
            "httpdate",
            "hyper",
            "hyper-util",
            "reqwest",
            "rustls",
            "rustls-platform-verifier",
            "tokio",
            "tower-service",
            "url",
        ]),
    ),
    ("crates/process", Only(&["memchr", "rustix", "shell-words", "tokio", "tracing"])),
    ("crates/store", Only(&["bytes", "redis", "ring", "rusqlite", "tokio", "tracing"])),
    (
        "crates/middleware",
        Never(&[
            "hyper",
            "hyper-util",
            "reqwest",
            "http",
            "linchpin-proto",
            "linchpin-transport",
            "linchpin-client",
            "linchpin",
        ]),
    ),
    (
        "crates/otel",
        Never(&[
            "hyper",
            "reqwest",
            "linchpin-proto",
            "linchpin-server",
            "linchpin-transport",
            "linchpin-client",
            "linchpin",
        ]),
    ),
    ("crates/skills", Never(&["hyper", "reqwest", "http", "linchpin-proto", "linchpin-transport", "linchpin"])),
    (
        "crates/apps",
        Never(&["hyper", "reqwest", "http", "linchpin-proto", "linchpin-transport", "linchpin-client", "tokio"]),
    ),
    (
        "crates/gateway",
        Never(&[
            "hyper",
            "hyper-util",
            "reqwest",
            "http",
            "linchpin-server",
            "linchpin-transport",
            "linchpin-auth",
            "linchpin-macros",
            "linchpin",
        ]),
    ),
    ("crates/macros", Only(&["proc-macro2", "quote", "syn"])),
    (
        "crates/linchpin",
        Only(&[
            "linchpin-types",
            "linchpin-core",
            "linchpin-proto",
            "linchpin-server",
            "linchpin-client",
            "linchpin-transport",
            "linchpin-auth",
            "linchpin-guard",
            "linchpin-issuer",
            "linchpin-macros",
            "linchpin-middleware",
            "linchpin-otel",
            "linchpin-skills",
            "linchpin-apps",
            "linchpin-testing",
            "linchpin-web",
            // Re-exported too: their types and derives are part of what a server is written with.
            "schemars",
            "serde",
            "serde_json",
        ]),
    ),
    // The program replays recorded servers below the API for servers.
    (
        "apps/cli",
        Never(&[
            "linchpin-types",
            "linchpin-server",
            "linchpin-client",
            "linchpin-transport",
            "linchpin-auth",
            "linchpin-web",
            "linchpin-process",
            "linchpin-macros",
            "linchpin-middleware",
            "linchpin-otel",
            "linchpin-skills",
            "linchpin-apps",
        ]),
    ),
    ("xtask", Only(&["anyhow", "base64", "flate2", "serde_json", "sha2", "tar", "toml", "zip"])),
];

/// Servers, apps and examples use the facade, not the rooms behind it.
const BEHIND_THE_FACADE: &[&str] = &[
    "linchpin-types",
    "linchpin-core",
    "linchpin-proto",
    "linchpin-server",
    "linchpin-client",
    "linchpin-transport",
    "linchpin-oauth",
    "linchpin-auth",
    "linchpin-guard",
    "linchpin-issuer",
    "linchpin-web",
    "linchpin-macros",
    "linchpin-middleware",
    "linchpin-otel",
    "linchpin-skills",
    "linchpin-apps",
];

/// Who must use the facade.
const PRODUCTS: &[&str] = &["servers/", "apps/", "examples/"];

/// Compares every manifest with the table.
pub(super) fn check(tree: &Tree<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for path in tree.files.iter().filter(|path| path.ends_with("Cargo.toml")) {
        let Some(text) = tree.read(path) else {
            continue;
        };
        let folder = path.trim_end_matches("/Cargo.toml");
        for dependency in violations(folder, &text) {
            let what = format!("{folder} must not depend on {dependency} (ARCHITECTURE.md)");
            found.push(Finding::new(path, what));
        }
    }
    found
}

/// The dependencies of the manifest of `folder` that it must not have.
fn violations(folder: &str, manifest: &str) -> Vec<String> {
    let dependencies = dependencies(manifest);
    let product = Never(BEHIND_THE_FACADE);
    let rule = match RULES.iter().find(|(name, _)| *name == folder) {
        Some((_, rule)) => rule,
        None if PRODUCTS.iter().any(|room| format!("{folder}/").starts_with(room)) => &product,
        None => return Vec::new(),
    };
    let allowed = |name: &str| match rule {
        Only(names) => names.contains(&name),
        Never(names) => !names.contains(&name),
    };
    dependencies.into_iter().filter(|name| !allowed(name)).collect()
}

/// The packages in `[dependencies]`, `[build-dependencies]` and their `[target.…]` forms.
pub(super) fn dependencies(manifest: &str) -> Vec<String> {
    let Ok(manifest) = manifest.parse::<toml::Table>() else {
        return vec!["(the manifest is not valid TOML)".to_string()];
    };
    let mut tables = vec![&manifest];
    if let Some(targets) = manifest.get("target").and_then(toml::Value::as_table) {
        tables.extend(targets.values().filter_map(toml::Value::as_table));
    }
    let mut names = Vec::new();
    for table in tables {
        for kind in ["dependencies", "build-dependencies"] {
            let Some(entries) = table.get(kind).and_then(toml::Value::as_table) else {
                continue;
            };
            names.extend(entries.iter().map(|(name, entry)| {
                let renamed = entry.get("package").and_then(toml::Value::as_str);
                renamed.unwrap_or(name).to_string()
            }));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arrows_between_crates_are_held() {
        let cases = [
            ("crates/types", "serde.workspace = true", 0),
            ("crates/types", "base64 = \"1\"", 0),
            ("crates/types", "bytes = \"1\"", 1),
            ("crates/proto", "tokio = { version = \"1\", optional = true }", 1),
            ("crates/server", "http = { package = \"hyper\", version = \"1\" }", 1),
            ("crates/transport", "linchpin-server.workspace = true", 1),
            ("crates/transport", "linchpin-web.workspace = true", 0),
            ("crates/web", "linchpin-proto.workspace = true", 1),
            ("crates/process", "linchpin-proto.workspace = true", 1),
            ("crates/transport", "hyper = \"1\"", 0),
            ("servers/everything", "linchpin-proto = \"1\"", 1),
            ("servers/everything", "linchpin = \"1\"", 0),
            ("conformance", "linchpin-proto = \"1\"", 0),
        ];
        for (folder, entry, expected) in cases {
            let manifest = format!("[dependencies]\n{entry}\n");
            assert_eq!(violations(folder, &manifest).len(), expected, "{folder}: {entry}");
        }
    }

    #[test]
    fn dev_dependencies_are_free_and_target_tables_are_not() {
        let manifest = "[dev-dependencies]\ntokio = \"1\"\n[target.'cfg(unix)'.dependencies]\nhyper = \"1\"\n";
        assert_eq!(violations("crates/proto", manifest), ["hyper"]);
    }
}

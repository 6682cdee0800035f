//! Configuration files with servers: `mcpServers` as hosts have them, VS Code's `servers`, `.mcp.json`.

use crate::fail::Failure;
use crate::show::out::near;
use jsonc_parser::errors::ParseError;
use jsonc_parser::{ParseOptions, parse_to_serde_value};
use linchpin::transport::is_secret_name;
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Maximum file size, in bytes.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Files searched for a server given by name only: in the project, then those of hosts.
const PLACES: [&str; 3] = [".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json"];

/// Returns the existing files of [`PLACES`], and those of Cursor and Claude Desktop.
fn places(env: &dyn Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let variable = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = variable("HOME").or_else(|| variable("USERPROFILE"));
    let settings = match std::env::consts::OS {
        "macos" => home.as_ref().map(|home| home.join("Library/Application Support")),
        "windows" => variable("APPDATA"),
        _ => variable("XDG_CONFIG_HOME").or_else(|| Some(home.as_ref()?.join(".config"))),
    };
    let cursor = home.map(|home| home.join(".cursor/mcp.json"));
    let desktop = settings.map(|folder| folder.join("Claude").join("claude_desktop_config.json"));
    PLACES.iter().map(PathBuf::from).chain(cursor).chain(desktop).filter(|file| file.is_file()).collect()
}

/// Whether one of these files has a server of this name.
pub(crate) fn has(name: &str) -> bool {
    let env = |variable: &str| std::env::var(variable).ok();
    let named =
        |file: &PathBuf| read(file).is_ok_and(|value| servers(&value).is_some_and(|all| all.contains_key(name)));
    places(&env).iter().any(named)
}

/// Returns the member of a file that holds servers.
fn servers(value: &Value) -> Option<&Map<String, Value>> {
    let servers = ["mcpServers", "servers", "context_servers"].iter().find_map(|member| value.get(member)?.as_object());
    // VS Code workspace files nest them.
    let servers = servers.or_else(|| value.pointer("/mcp/servers")?.as_object());
    servers.or_else(|| value.pointer("/settings/mcp/servers")?.as_object())
}

/// A server of a configuration file, with its variables expanded.
#[derive(Debug, PartialEq)]
pub(crate) enum Entry {
    /// A program to start.
    Program { command: String, args: Vec<String>, env: BTreeMap<String, String>, cwd: Option<PathBuf> },
    /// A URL to connect to.
    Address { url: String, headers: BTreeMap<String, String>, sse: bool },
}

/// A server in a file: its name, its entry, and the values of its variables with secret-like names.
pub(crate) type Found = (String, Entry, Vec<String>);

/// Finds a server in a file; without a file, in the default locations.
pub(crate) fn find(file: Option<&Path>, name: Option<&str>) -> Result<Found, Failure> {
    let env = |variable: &str| std::env::var(variable).ok();
    match file {
        Some(file) => pick(file, &read(file)?, name, &env),
        None => {
            let (mut first, mut files, mut known) = (None, Vec::new(), BTreeSet::new());
            let places = places(&env);
            for file in &places {
                let value = read(file);
                if let Ok(Some(all)) = value.as_ref().map(servers) {
                    known.extend(all.keys().cloned());
                    files.push(file.display().to_string());
                }
                match value.and_then(|value| pick(file, &value, name, &env)) {
                    Ok(found) => return Ok(found),
                    Err(e) => first = first.or(Some(e)),
                }
            }
            // A file that cannot be read may have it.
            if let Some(name) =
                name.filter(|name| files.len() > 1 && files.len() == places.len() && !known.contains(*name))
            {
                return Err(unknown(&files.join(", "), "have", name, known.iter().map(String::as_str)));
            }
            Err(first.unwrap_or_else(|| {
                let here = PLACES.join(", ");
                Failure::usage(format!(
                    "no {here} in this directory, and no configuration file of Cursor or Claude Desktop"
                ))
                .hint("pass the file with --config FILE")
            }))
        }
    }
}

fn read(file: &Path) -> Result<Value, Failure> {
    let wrong = |why: String| Failure::usage(format!("{}: {why}", file.display()));
    let size = std::fs::metadata(file).map_err(|e| wrong(e.to_string()))?.len();
    if size > FILE_BYTES_MAX {
        return Err(wrong(format!("larger than {FILE_BYTES_MAX} bytes")));
    }
    let text = std::fs::read_to_string(file).map_err(|e| wrong(e.to_string()))?;
    parsed(&text).map_err(|e| wrong(format!("invalid JSON: {e}")))
}

/// JSON with the comments and trailing commas that editors allow, and nothing else that hosts would refuse.
fn parsed(text: &str) -> Result<Value, ParseError> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    parse_to_serde_value(text.strip_prefix('\u{feff}').unwrap_or(text), &options)
}

/// The failure for a name that is in no file.
fn unknown<'a>(files: &str, verb: &str, name: &str, known: impl Iterator<Item = &'a str> + Clone) -> Failure {
    let failure = Failure::usage(format!("{files} {verb} no server `{name}`"));
    match near(name, known.clone()) {
        Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
        None => failure.hint(format!("known servers: {}", known.collect::<Vec<_>>().join(", "))),
    }
}

/// Picks the server of this name.
fn pick(
    file: &Path,
    value: &Value,
    name: Option<&str>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Found, Failure> {
    let shown = file.display();
    let servers = servers(value).ok_or_else(|| {
        Failure::usage(format!("{shown} has no servers")).hint("expected a member `mcpServers` or `servers`")
    })?;
    let names = || servers.keys().map(String::as_str).collect::<Vec<_>>();
    let (name, entry) = match name {
        Some(name) => servers
            .get_key_value(name)
            .ok_or_else(|| unknown(&shown.to_string(), "has", name, servers.keys().map(String::as_str)))?,
        None => match servers.iter().next() {
            Some(only) if servers.len() == 1 => only,
            Some(_) => {
                return Err(Failure::usage(format!("{shown} has {} servers", servers.len()))
                    .hint(format!("choose one with --server NAME: {}", names().join(", "))));
            }
            None => return Err(Failure::usage(format!("{shown} has no servers"))),
        },
    };
    let folder = folder_of(file);
    let secrets = RefCell::new(Vec::new());
    let noticed = |variable: &str| {
        let value = env(variable);
        secrets.borrow_mut().extend(value.clone().filter(|_| is_secret_name(variable)));
        value
    };
    let fill = |text: &str| expand(text, &noticed, &folder);
    let entry = entry.as_object().ok_or_else(|| "is not an object".to_owned()).and_then(|entry| of(entry, &fill));
    let entry = entry.map_err(|why| Failure::usage(format!("{shown}: server `{name}` {why}")))?;
    Ok((name.clone(), entry, secrets.take()))
}

/// Returns the project directory of a file: its parent, or that of `.vscode` or `.cursor`.
fn folder_of(file: &Path) -> PathBuf {
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let parent = file.parent().unwrap_or(Path::new("."));
    match (parent.file_name(), parent.parent()) {
        (Some(name), Some(above)) if name == ".vscode" || name == ".cursor" => above.to_owned(),
        _ => parent.to_owned(),
    }
}

fn of(entry: &Map<String, Value>, fill: &dyn Fn(&str) -> Result<String, String>) -> Result<Entry, String> {
    let text = |member: &str| match entry.get(member) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => fill(text).map(Some),
        Some(_) => Err(format!("has a `{member}` that is not a string")),
    };
    let texts = |member: &str| match entry.get(member) {
        None | Some(Value::Null) => Ok(BTreeMap::new()),
        Some(Value::Object(members)) => {
            let mut texts = BTreeMap::new();
            for (name, value) in members.iter().filter(|(_, value)| !value.is_null()) {
                texts.insert(name.clone(), fill(&plain_text(value, member)?)?);
            }
            Ok(texts)
        }
        Some(_) => Err(format!("has a `{member}` that is not an object")),
    };
    let kind = text("type")?.or(text("transport")?).unwrap_or_default();
    let address = [text("url")?, text("serverUrl")?, text("httpUrl")?].into_iter().flatten().next();
    match (kind.to_ascii_lowercase().as_str(), address, text("command")?) {
        ("" | "stdio", None, Some(command)) => {
            let args = match entry.get("args") {
                None | Some(Value::Null) => Vec::new(),
                Some(Value::Array(args)) => {
                    args.iter().map(|arg| fill(&plain_text(arg, "args")?)).collect::<Result<_, String>>()?
                }
                Some(_) => return Err("has an `args` that is not an array".to_owned()),
            };
            Ok(Entry::Program { command, args, env: texts("env")?, cwd: text("cwd")?.map(PathBuf::from) })
        }
        ("" | "http" | "streamable-http" | "streamablehttp" | "sse", Some(url), _) => {
            Ok(Entry::Address { url, headers: texts("headers")?, sse: kind.eq_ignore_ascii_case("sse") })
        }
        ("stdio", _, None) => Err("has no `command`".to_owned()),
        ("http" | "streamable-http" | "streamablehttp" | "sse", None, _) => Err("has no `url`".to_owned()),
        ("", None, None) => Err("has neither `command` nor `url`".to_owned()),
        (kind, _, _) => Err(format!("has the unknown type `{kind}`; expected stdio, http or sse")),
    }
}

fn plain_text(value: &Value, member: &str) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        _ => Err(format!("has a value in `{member}` that is not a string")),
    }
}

/// Expands `${VAR}`, `${env:VAR}`, `${VAR:-default}`, and VS Code's predefined variables.
pub(crate) fn expand(text: &str, env: &dyn Fn(&str) -> Option<String>, folder: &Path) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let Some(end) = rest[at..].find('}') else { break };
        let (inner, whole) = (&rest[at + 2..at + end], &rest[at..=at + end]);
        out.push_str(&rest[..at]);
        rest = &rest[at + end + 1..];
        if let Some(input) = inner.strip_prefix("input:") {
            return Err(format!(
                "uses the editor input `{input}`, which is not supported; use ${{{}}} instead and set that variable",
                input.to_ascii_uppercase().replace('-', "_")
            ));
        }
        match inner {
            "workspaceFolder" => out.push_str(&folder.to_string_lossy()),
            "userHome" => out.push_str(&env("HOME").or_else(|| env("USERPROFILE")).unwrap_or_default()),
            "pathSeparator" | "/" => out.push(std::path::MAIN_SEPARATOR),
            _ => {
                let inner = inner.strip_prefix("env:").unwrap_or(inner);
                let (name, default) = match inner.split_once(":-") {
                    Some((name, default)) => (name, Some(default)),
                    None => (inner, None),
                };
                if name.is_empty() || name.contains(|c: char| !c.is_alphanumeric() && !"_-.()".contains(c)) {
                    return Err(format!("has the invalid variable {whole}"));
                }
                // As in shells: with `:-`, an empty value counts as unset.
                match (env(name), default) {
                    (Some(value), None) => out.push_str(&value),
                    (Some(value), Some(_)) if !value.is_empty() => out.push_str(&value),
                    (_, Some(default)) => out.push_str(default),
                    (None, None) => {
                        return Err(format!(
                            "requires the environment variable {name}, which is not set; set it, or write ${{{name}:-default}}"
                        ));
                    }
                }
            }
        }
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(name: &str) -> Option<String> {
        match name {
            "HOME" => Some("/people/ann".into()),
            "KEY" => Some("k3y".into()),
            "EMPTY" => Some(String::new()),
            _ => None,
        }
    }

    #[test]
    fn variables_are_filled_in_or_named() {
        let rows: &[(&str, Result<&str, &str>)] = &[
            ("plain", Ok("plain")),
            ("a ${KEY} b ${env:KEY}", Ok("a k3y b k3y")),
            ("${KEY:-x}", Ok("k3y")),
            ("${NONE:-x y}", Ok("x y")),
            ("${env:NONE:-}", Ok("")),
            ("${EMPTY:-x}", Ok("x")),
            ("[${EMPTY}]", Ok("[]")),
            ("${workspaceFolder}/a", Ok("/w/a")),
            ("${userHome}", Ok("/people/ann")),
            ("$KEY ${ open", Ok("$KEY ${ open")),
            ("${NONE}", Err("NONE, which is not set")),
            ("${env:NONE}", Err("NONE, which is not set")),
            ("Bearer ${input:api-key}", Err("uses the editor input `api-key`")),
            ("${a b}", Err("has the invalid variable")),
        ];
        for (text, want) in rows {
            match (expand(text, &env, Path::new("/w")), want) {
                (Ok(got), Ok(want)) => assert_eq!(got, *want, "{text}"),
                (Err(got), Err(want)) => assert!(got.contains(want), "{text}: {got}"),
                (got, want) => panic!("{text}: {got:?} instead of {want:?}"),
            }
        }
    }

    #[test]
    fn files_of_every_host_are_understood() {
        let program = |command: &str, args: &[&str]| Entry::Program {
            command: command.into(),
            args: args.iter().map(ToString::to_string).collect(),
            env: BTreeMap::new(),
            cwd: None,
        };
        let address = |url: &str, sse| Entry::Address { url: url.into(), headers: BTreeMap::new(), sse };
        let rows = [
            (
                r#"{"mcpServers":{"a":{"command":"npx","args":["-y","${KEY}",1]}}}"#,
                None,
                Ok(program("npx", &["-y", "k3y", "1"])),
            ),
            (r#"{"servers":{"a":{"type":"stdio","command":"x"}}}"#, Some("a"), Ok(program("x", &[]))),
            (
                "// c\n{\"servers\":{/* b */\"a\":{\"type\":\"http\",\"url\":\"http://x//y\",},},\n}",
                None,
                Ok(address("http://x//y", false)),
            ),
            (r#"{"mcpServers":{"a":{"type":"sse","url":"http://x/sse"}}}"#, None, Ok(address("http://x/sse", true))),
            (r#"{"mcpServers":{"a":{"serverUrl":"http://x"}}}"#, None, Ok(address("http://x", false))),
            (r#"{"mcpServers":{"a":{"command":"x"},"b":{"command":"y"}}}"#, Some("b"), Ok(program("y", &[]))),
            (r#"{"mcpServers":{"a":{"command":"x"},"b":{"command":"y"}}}"#, None, Err("has 2 servers")),
            (r#"{"mcpServers":{"alpha":{"command":"x"}}}"#, Some("alhpa"), Err("no server `alhpa`")),
            (r#"{"mcpServers":{"a":{}}}"#, None, Err("neither `command` nor `url`")),
            (r#"{"mcpServers":{"a":{"type":"ws","url":"ws://x"}}}"#, None, Err("the unknown type `ws`")),
            (r#"{"mcpServers":{"a":{"url":"http://x","headers":{"Authorization":"${NONE}"}}}}"#, None, Err("NONE")),
            (r#"{"mcpServers":{"a":{"command":"x","args":"y"}}}"#, None, Err("that is not an array")),
            ("{}", None, Err("has no servers")),
        ];
        for (text, name, want) in rows {
            let value = parsed(text).unwrap_or_else(|e| panic!("{text}: {e}"));
            match (pick(Path::new("f.json"), &value, name, &env), want) {
                (Ok((_, got, secrets)), Ok(want)) => {
                    assert_eq!(got, want, "{text}");
                    assert_eq!(secrets.contains(&"k3y".to_owned()), text.contains("${KEY}"), "{text}");
                }
                (Err(got), Err(want)) => assert!(got.message().contains(want), "{text}: {got:?}"),
                (got, want) => panic!("{text}: {got:?} instead of {want:?}"),
            }
        }
    }

    #[test]
    fn comments_and_trailing_commas_are_allowed_and_nothing_else_that_hosts_refuse() {
        for (text, want) in [
            (r#"{"a":"// no, }"}"#, Some(r#"{"a":"// no, }"}"#)),
            (r#"["\"/*", 1 , ]"#, Some(r#"["\"/*",1]"#)),
            ("\u{feff}[1, // x\n]", Some("[1]")),
            ("[1,/* , */2]", Some("[1,2]")),
            ("{a: 1}", None),
            ("['a']", None),
            ("[1 2]", None),
            ("[0x1]", None),
            ("[NaN]", None),
            ("[1", None),
            ("[1] 2", None),
            (&"[".repeat(100_000), None),
        ] {
            assert_eq!(parsed(text).ok().map(|value| value.to_string()).as_deref(), want, "{:.40}", text);
        }
    }
}

//! Each package, installed from its file as people do, answers a call.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::bundle;
use super::payload::{self, Payload};
use crate::context::Context;
use crate::process;
use crate::report::Report;

/// How long installing one package, or a call, may take.
const STEP_S_MAX: u64 = 120;

/// What a user answers where a bundle asks for something: other secrets are `answer`.
const ANSWERS: &[(&str, &str)] = &[
    ("url", "postgres://user@localhost/database"),
    ("gitlab_api_url", "https://gitlab.example/api/v4"),
    ("aws_region", "eu-central-1"),
];

/// Calls of bundles whose servers need nobody else: arguments, and what the answer contains. `$HOME` is a repository of git with
/// a file `note.txt`.
const CALLS: &[(&str, &[&str], &str)] = &[
    ("linchpin-time", &["get_current_time", r#"{"timezone":"UTC"}"#], "UTC"),
    ("linchpin-filesystem", &["read_text_file", "path=$HOME/note.txt"], "written by the user"),
    ("linchpin-git", &["git_status", "repo_path=$HOME"], "note.txt"),
    ("linchpin-memory", &["read_graph"], "entities"),
    ("linchpin-sqlite", &["read_query", "query=SELECT 6 * 7 AS answer"], "42"),
    ("linchpin-everything", &["echo", "message=hi"], "Echo: hi"),
    (
        "linchpin-sequential-thinking",
        &["sequentialthinking", r#"{"thought":"a","thoughtNumber":1,"totalThoughts":1,"nextThoughtNeeded":false}"#],
        "thoughtNumber",
    ),
];

/// What the login of a server has left, before a host starts its bundle.
const LOGINS: &[(&str, &str)] = &[("linchpin-google-drive", "GDRIVE_ACCESS_TOKEN=answer")];

/// Installs what is in `out`, made of `payload`, and fits this machine.
pub(crate) fn check(context: &Context, payload: &Payload, out: &Path) -> Result<Report> {
    let mut report = Report::default();
    let home = context.results("dist")?.join("installed");
    let _ = std::fs::remove_dir_all(&home);
    let steps = Steps { context, payload, out, home };
    let kinds: [(&str, Kind<'_>); 6] = [
        ("tarball", Steps::tarball),
        ("deb", Steps::debian),
        ("npm", Steps::npm),
        ("wheel", Steps::wheel),
        ("mcpb", Steps::bundles),
        ("image", Steps::image),
    ];
    for (kind, step) in kinds {
        std::fs::create_dir_all(steps.home.join(kind))?;
        match step(&steps, &steps.home.join(kind)) {
            Ok(Outcome::Calls(calls)) => report.counts.passed += calls,
            Ok(Outcome::Skipped(why)) => {
                report.counts.skipped += 1;
                report.skips.push(format!("{kind}: {why}"));
            }
            Err(error) => {
                report.counts.failed += 1;
                report.text.push_str(&format!("{kind}: {error:#}\n"));
            }
        }
    }
    // Hundreds of megabytes of which nothing is read again.
    let _ = std::fs::remove_dir_all(&steps.home);
    Ok(report)
}

type Kind<'a> = fn(&Steps<'a>, &Path) -> Result<Outcome>;

enum Outcome {
    /// How many calls were answered.
    Calls(u64),
    Skipped(String),
}

struct Steps<'a> {
    context: &'a Context,
    payload: &'a Payload,
    out: &'a Path,
    home: PathBuf,
}

impl Steps<'_> {
    fn tarball(&self, home: &Path) -> Result<Outcome> {
        let mut calls = 0;
        for file in self.files(|name| name.ends_with(".tar.gz") && name.contains(std::env::consts::ARCH))? {
            self.run("tar", Command::new("tar").arg("-xzf").arg(&file).arg("-C").arg(home))?;
            let folder = home.join(name(&file).trim_end_matches(".tar.gz"));
            for wanted in ["LICENSE-MIT", "README.md", "man/linchpin-serve.1", "completions/_linchpin"] {
                let _ = std::fs::metadata(folder.join(wanted)).with_context(|| format!("{wanted} is missing"))?;
            }
            self.call(&[&folder.join("linchpin").display().to_string(), "serve", "time"])?;
            calls += 1;
        }
        Ok(Outcome::Calls(calls))
    }

    /// Installed under a folder of its own, so that the system stays as it is.
    fn debian(&self, home: &Path) -> Result<Outcome> {
        if !process::exists("dpkg", "--version") {
            return Ok(Outcome::Skipped("dpkg is not installed".into()));
        }
        let mut calls = 0;
        for file in self.files(|name| name.ends_with(".deb"))? {
            let state = home.join("var/lib/dpkg");
            for folder in ["info", "updates", "triggers"] {
                std::fs::create_dir_all(state.join(folder))?;
            }
            std::fs::write(state.join("status"), "")?;
            let mut dpkg = Command::new("dpkg");
            // Its dependencies are those of the machine.
            dpkg.arg(format!("--root={}", home.display())).args([
                "--force-not-root",
                "--force-depends",
                "--log=/dev/null",
                "-i",
            ]);
            self.run("dpkg", dpkg.arg(&file))?;
            for wanted in ["usr/share/man/man1/linchpin.1.gz", "usr/share/doc/linchpin/copyright"] {
                let _ = std::fs::metadata(home.join(wanted)).with_context(|| format!("{wanted} is missing"))?;
            }
            self.call(&[&home.join("usr/bin/linchpin").display().to_string(), "serve", "time"])?;
            calls += 1;
        }
        Ok(Outcome::Calls(calls))
    }

    fn npm(&self, home: &Path) -> Result<Outcome> {
        std::fs::write(home.join("package.json"), r#"{"private":true}"#)?;
        let files = self.files(|name| name.ends_with(".tgz"))?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--offline", "--no-audit", "--no-fund", "--ignore-scripts"])
            .args(&files)
            .current_dir(home);
        self.run("npm", npm.env("npm_config_cache", home.join("cache")))?;
        let launcher = home.join("node_modules/.bin/linchpin").display().to_string();
        self.call(&[&launcher, "serve", "time"])?;
        let prefix = format!("--prefix={}", home.display());
        self.call(&["npx", &prefix, "--offline", "--no", "linchpin", "serve", "time"])?;
        // The launcher passes the exit status on.
        let status = Command::new(&launcher).args(["serve", "nothing-of-this-name"]).output()?.status;
        if status.code() != Some(2) {
            bail!("the launcher ended with {status} where the program ends with 2");
        }
        Ok(Outcome::Calls(2))
    }

    fn wheel(&self, home: &Path) -> Result<Outcome> {
        let python = ["python3.11", "python3"].into_iter().find(|python| process::exists(python, "--version"));
        let Some(python) = python else { return Ok(Outcome::Skipped("Python is not installed".into())) };
        let files = self.files(|name| name.ends_with(".whl") && !name.contains("musllinux"))?;
        let environment = home.join("venv");
        self.run("venv", Command::new(python).args(["-m", "venv"]).arg(&environment))?;
        let mut pip = Command::new(environment.join("bin/pip"));
        self.run("pip", pip.args(["install", "--quiet", "--no-index", "--disable-pip-version-check"]).args(&files))?;
        self.call(&[&environment.join("bin/linchpin").display().to_string(), "serve", "time"])?;
        Ok(Outcome::Calls(1))
    }

    /// Each is started as a host does. Of a quick build two are packed, and what the others would say is done with the
    /// program of one of these.
    fn bundles(&self, home: &Path) -> Result<Outcome> {
        let (folder, answers) = (home.join("bundle"), home.join("answers"));
        std::fs::create_dir_all(&answers)?;
        std::fs::write(answers.join("note.txt"), "written by the user")?;
        self.run("git", Command::new("git").args(["init", "--quiet"]).current_dir(&answers))?;
        let mut started = Vec::new();
        for file in self.files(|name| name.ends_with(".mcpb"))? {
            let _ = std::fs::remove_dir_all(&folder);
            zip::ZipArchive::new(std::fs::File::open(&file)?)?.extract(&folder)?;
            let manifest: Value = serde_json::from_slice(&std::fs::read(folder.join("manifest.json"))?)?;
            self.start(&manifest, &folder, &answers).with_context(|| name(&file))?;
            started.push(manifest["name"].clone());
        }
        for server in &self.payload.servers {
            let manifest = bundle::manifest(self.payload, &payload::here()?, server)?;
            if !started.contains(&manifest["name"]) {
                self.start(&manifest, &folder, &answers).with_context(|| manifest["name"].to_string())?;
                started.push(manifest["name"].clone());
            }
        }
        if let Some((name, ..)) = CALLS.iter().find(|(name, ..)| started.iter().all(|one| one != name)) {
            bail!("there is no bundle {name}");
        }
        Ok(Outcome::Calls(started.len() as u64))
    }

    /// Lists the tools of a bundle, which must be those of its manifest, and makes the call of [`CALLS`].
    fn start(&self, manifest: &Value, folder: &Path, answers: &Path) -> Result<()> {
        let config = &manifest["server"]["mcp_config"];
        let filled = |word: &Value| {
            let word = word.as_str().unwrap_or_default().replace("${__dirname}", &folder.display().to_string());
            match word.strip_prefix("${user_config.").and_then(|word| word.strip_suffix('}')) {
                Some(key) => answer(key, &manifest["user_config"][key], answers),
                None => word,
            }
        };
        let mut client = Vec::new();
        for (name, value) in config["env"].as_object().into_iter().flatten() {
            client.extend(["-e".to_owned(), format!("{name}={}", filled(value))]);
        }
        let logins = LOGINS.iter().filter(|(name, _)| manifest["name"] == *name);
        client.extend(logins.flat_map(|(_, left)| ["-e".to_owned(), (*left).to_owned()]));
        let client: Vec<&str> = client.iter().map(String::as_str).collect();
        let mut words = vec![filled(&config["command"])];
        words.extend(config["args"].as_array().into_iter().flatten().map(filled));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let said = self.client(&[&["tools"], &client[..], &["--"]].concat(), &words)?;
        let tools = manifest["tools"].as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str());
        let missing: Vec<&str> =
            tools.filter(|tool| !said.lines().any(|line| line.split(' ').next() == Some(tool))).collect();
        if !missing.is_empty() {
            bail!("it does not list {missing:?}:\n{said}");
        }
        for (_, call, answer) in CALLS.iter().filter(|(name, ..)| manifest["name"] == *name) {
            let home = answers.display().to_string();
            let call: Vec<String> = call.iter().map(|word| word.replace("$HOME", &home)).collect();
            let call: Vec<&str> = call.iter().map(String::as_str).collect();
            let said = self.client(&[&["call"], &call[..], &client[..], &["--"]].concat(), &words)?;
            if !said.contains(answer) {
                bail!("the call was answered with: {said}");
            }
        }
        Ok(())
    }

    /// The root of the image, with nothing beside it, as its user.
    fn image(&self, home: &Path) -> Result<Outcome> {
        let files = self.files(|name| name.contains("-image-") && name.ends_with(".tar"))?;
        let Some(file) = files.first() else { return Ok(Outcome::Skipped("no static program was built".into())) };
        if !process::exists("chroot", "--version") {
            return Ok(Outcome::Skipped("chroot is not installed".into()));
        }
        let (layout, root) = (home.join("layout"), home.join("root"));
        std::fs::create_dir_all(&layout)?;
        std::fs::create_dir_all(&root)?;
        self.run("layout", Command::new("tar").arg("-xf").arg(file).arg("-C").arg(&layout))?;
        let read = |path: &str| -> Result<Value> { Ok(serde_json::from_slice(&std::fs::read(layout.join(path))?)?) };
        let blob = |descriptor: &Value| {
            format!("blobs/{}", descriptor["digest"].as_str().unwrap_or_default().replace(':', "/"))
        };
        let manifest = read(&blob(&read("index.json")?["manifests"][0]))?;
        let config = read(&blob(&manifest["config"]))?;
        for layer in manifest["layers"].as_array().into_iter().flatten() {
            self.run("layer", Command::new("tar").arg("-xzf").arg(layout.join(blob(layer))).arg("-C").arg(&root))?;
        }
        let user = config["config"]["User"].as_str().context("the image names no user")?;
        let program = config["config"]["Entrypoint"][0].as_str().context("the image has no entry point")?;
        let root = root.display().to_string();
        let user = format!("--userspec={user}");
        self.call(&["chroot", &user, &root, program, "serve", "time"])?;
        let _ = std::fs::metadata(format!("{root}/etc/ssl/certs/ca-certificates.crt"))
            .context("the certificates are missing")?;
        // The user can write to its home, which the image names.
        let variables = config["config"]["Env"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let mut words = vec!["env", "-u", "XDG_DATA_HOME"];
        words.extend(variables.filter(|variable| !variable.starts_with("PATH=")));
        words.extend(["chroot", &user, &root, program, "serve", "memory"]);
        let entities = r#"{"entities":[{"name":"Ann","entityType":"user","observations":[]}]}"#;
        self.client(&["call", "create_entities", entities, "--"], &words)?;
        Ok(Outcome::Calls(2))
    }

    /// Calls a tool of the server of time that this command line starts.
    fn call(&self, server: &[&str]) -> Result<()> {
        let arguments = ["call", "get_current_time", r#"{"timezone":"UTC"}"#, "--"];
        let said = self.client(&arguments, server)?;
        match said.contains("UTC") {
            true => Ok(()),
            false => bail!("the call was answered with: {said}"),
        }
    }

    /// What our client says about a server.
    fn client(&self, arguments: &[&str], server: &[&str]) -> Result<String> {
        let mut client = Command::new(self.context.binary("linchpin"));
        self.run(server[0].rsplit('/').next().unwrap_or("call"), client.args(arguments).args(server))
    }

    fn run(&self, name: &str, command: &mut Command) -> Result<String> {
        let log = self.home.join(format!("{name}.log"));
        let done = process::run(command, &log, Duration::from_secs(STEP_S_MAX))?;
        if !done.ok {
            bail!("{command:?} failed:\n{}", done.output);
        }
        Ok(done.output)
    }

    /// The files whose names fit, sorted.
    fn files(&self, fits: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(self.out)? {
            let path = entry?.path();
            if fits(&name(&path)) {
                files.push(path);
            }
        }
        files.sort();
        Ok(files)
    }
}

/// What a user answers to a question of a bundle: directories and files are below `home`.
fn answer(key: &str, question: &Value, home: &Path) -> String {
    if let Some((_, answer)) = ANSWERS.iter().find(|(asked, _)| *asked == key) {
        return (*answer).to_owned();
    }
    match question["type"].as_str() {
        Some("directory") => home.display().to_string(),
        // The memory server writes no other files than these.
        Some("file") => home.join(format!("{key}.jsonl")).display().to_string(),
        _ => "answer".to_owned(),
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

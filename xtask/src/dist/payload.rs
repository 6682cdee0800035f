//! What every package holds: the program for one target, its licences, manual pages and completions.

use std::io::Read as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use flate2::read::GzDecoder;
use serde_json::Value;

use super::archive::Entry;
use super::npm;
use super::page::page;
use crate::context::Context;
use crate::process;
use crate::world::{DIST_CONFIG, WORLD};

/// How long a build with fat LTO may take.
const BUILD_S_MAX: u64 = 3600;

/// What packages are made of.
pub(crate) struct Payload {
    pub(crate) version: String,
    /// The time of the commit, in seconds since 1970.
    pub(crate) epoch: u64,
    /// `license`, `readme`, `changelog` and so on, by their file names.
    pub(crate) texts: Vec<Entry>,
    /// Pages of section 1, by their file names.
    pub(crate) man: Vec<Entry>,
    /// Completions for bash, zsh and fish, in this order.
    pub(crate) completions: Vec<Entry>,
    /// What `linchpin servers --json` says.
    pub(crate) servers: Vec<Value>,
    pub(crate) programs: Vec<Program>,
    /// How much to compress: 1 to 9.
    pub(crate) level: u32,
}

/// The program for one target.
pub(crate) struct Program {
    pub(crate) target: Target,
    pub(crate) bytes: Vec<u8>,
}

/// A platform as the packagers call it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// As Rust calls it.
    pub(crate) triple: String,
}

impl Target {
    pub(crate) fn new(triple: &str) -> Result<Target> {
        let target = Target { triple: triple.to_owned() };
        let known = matches!(target.cpu(), "x86_64" | "aarch64") && target.os() != "unknown";
        if !known {
            bail!("{triple}: packages are made for x86_64 and aarch64, of Linux, macOS and Windows");
        }
        Ok(target)
    }

    pub(crate) fn cpu(&self) -> &str {
        self.triple.split('-').next().unwrap_or_default()
    }

    pub(crate) fn os(&self) -> &'static str {
        match () {
            () if self.triple.contains("-linux-") => "linux",
            () if self.triple.contains("-apple-") => "darwin",
            () if self.triple.contains("-windows-") => "win32",
            () => "unknown",
        }
    }

    /// Whether it is Linux with everything linked statically.
    pub(crate) fn is_static(&self) -> bool {
        self.triple.ends_with("-musl")
    }

    /// The name of the program's file.
    pub(crate) fn program(&self) -> &'static str {
        if self.os() == "win32" { "linchpin.exe" } else { "linchpin" }
    }

    /// As Debian, Go and container images call the processor.
    pub(crate) fn debian_cpu(&self) -> &'static str {
        if self.cpu() == "aarch64" { "arm64" } else { "amd64" }
    }
}

/// Builds the program for `targets` and collects everything else.
pub(crate) fn collect(context: &Context, targets: &[Target], profile: &str, level: u32) -> Result<Payload> {
    let epoch = git(context, &["log", "-1", "--format=%ct"])?.parse().context("the commit has no time")?;
    let host = host(context, targets, profile)?;
    let programs = targets.iter().map(|target| build(context, target, profile, epoch)).collect::<Result<Vec<_>>>()?;
    let scratch = context.results("dist")?.join("man");
    let _ = std::fs::remove_dir_all(&scratch);
    said(Command::new(&host).arg("man").arg(&scratch))?;
    let mut man = Vec::new();
    for page in std::fs::read_dir(&scratch)? {
        let page = page?;
        man.push(Entry::file(page.file_name().to_string_lossy(), std::fs::read(page.path())?));
    }
    man.sort_by(|a, b| a.path.cmp(&b.path));
    let mut completions = Vec::new();
    for (shell, file) in [("bash", "linchpin"), ("zsh", "_linchpin"), ("fish", "linchpin.fish")] {
        completions.push(Entry::file(file, said(Command::new(&host).args(["completions", shell]))?));
    }
    let listed: Value = serde_json::from_slice(&said(Command::new(&host).args(["servers", "--json"]))?)?;
    let servers = listed["servers"].as_array().cloned().unwrap_or_default();
    let mut texts = Vec::new();
    for file in ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "CHANGELOG.md"] {
        texts.push(Entry::file(file, std::fs::read(context.root.join(file)).with_context(|| file.to_owned())?));
    }
    Ok(Payload { version: version(context)?, epoch, texts, man, completions, servers, programs, level })
}

impl Payload {
    /// The servers of which bundles are made: all, and of a quick build those that are called.
    pub(crate) fn bundled(&self) -> impl Iterator<Item = &Value> {
        let called = |server: &Value| server["name"] == "time" || server["name"] == "filesystem";
        self.servers.iter().filter(move |server| self.level > 1 || called(server))
    }

    /// The README for the page of a package that this command starts.
    pub(crate) fn page(&self, start: &str) -> Result<String> {
        let readme = String::from_utf8_lossy(&self.text("README.md")?.bytes);
        Ok(page(&readme, &self.version, start))
    }

    /// One of `texts`.
    pub(crate) fn text(&self, name: &str) -> Result<&Entry> {
        self.texts.iter().find(|entry| entry.path == name).with_context(|| format!("{name} is not collected"))
    }
}

/// The program in a tarball that `cargo xtask dist` made of the same sources on another machine.
pub(crate) fn added(file: &Path, payload: &Payload) -> Result<Program> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let folder = name.strip_suffix(".tar.gz").unwrap_or_default();
    let triple = folder.strip_prefix(&format!("linchpin-{}-", payload.version));
    let Some(triple) = triple else {
        bail!("{}: the name must be linchpin-{}-TARGET.tar.gz", file.display(), payload.version);
    };
    let target = Target::new(triple)?;
    // Packages of npm and PyPI do not tell two toolchains of Windows apart.
    if payload.programs.iter().any(|program| npm::name(&program.target) == npm::name(&target)) {
        bail!("{}: there is a program for {} already", file.display(), npm::name(&target));
    }
    let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let mut archive = tar::Archive::new(GzDecoder::new(&bytes[..]));
    let program = format!("{folder}/{}", target.program());
    for entry in archive.entries()? {
        let mut entry = entry.with_context(|| format!("{} is not a tarball", file.display()))?;
        if entry.path()?.as_ref() != Path::new(&program) {
            continue;
        }
        if entry.header().mtime()? != payload.epoch {
            bail!("{}: it was made of another commit; run `cargo xtask dist` there again", file.display());
        }
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes)?;
        return Ok(Program { target, bytes });
    }
    bail!("{}: it has no file {program}", file.display());
}

/// The version of the workspace.
pub(crate) fn version(context: &Context) -> Result<String> {
    let manifest: toml::Table = toml::from_str(&std::fs::read_to_string(context.root.join("Cargo.toml"))?)?;
    let version = manifest["workspace"]["package"]["version"].as_str();
    version.map(str::to_owned).context("Cargo.toml has no workspace version")
}

fn git(context: &Context, words: &[&str]) -> Result<String> {
    let done = Command::new("git").args(words).current_dir(&context.root).output().context("cannot run git")?;
    Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned())
}

/// The triple of this machine.
pub(crate) fn here() -> Result<Target> {
    let done = Command::new("rustc").arg("-vV").output().context("cannot run rustc")?;
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    let triple = said.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names no host")?;
    Target::new(triple)
}

fn file_of(context: &Context, target: &Target, profile: &str) -> Result<std::path::PathBuf> {
    let folder = if profile == "dev" { "debug" } else { profile };
    let home = match *target == here()? {
        true => context.target.clone(),
        false => context.target.join(&target.triple),
    };
    Ok(home.join(folder).join(target.program()))
}

/// A program of the collected ones that runs here.
fn host(context: &Context, targets: &[Target], profile: &str) -> Result<std::path::PathBuf> {
    let here = here()?;
    let runs = |target: &&Target| target.cpu() == here.cpu() && target.os() == here.os();
    let target = targets.iter().find(runs).context("one of the targets must be that of this machine")?;
    file_of(context, target, profile)
}

/// Builds the program so that neither this machine's paths nor the time are in it.
fn build(context: &Context, target: &Target, profile: &str, epoch: u64) -> Result<Program> {
    let mut cargo = process::cargo();
    match profile {
        // The program that the stage `build` has made: any other build would be one from nothing.
        "dev" => cargo.args(["test", "--no-run"]).args(WORLD),
        _ => cargo.args([
            "build",
            "--locked",
            "--package",
            "linchpin-cli",
            "--features",
            "keyring,redis",
            "--profile",
            profile,
        ]),
    };
    if *target != here()? {
        cargo.args(["--target", &target.triple]);
    }
    if profile != "dev" {
        let home = std::env::var("CARGO_HOME")
            .unwrap_or_else(|_| format!("{}/.cargo", std::env::var("HOME").unwrap_or_default()));
        let root = context.root.display();
        // Beside those of `DIST_CONFIG`, which the variable would replace.
        let triple = &target.triple;
        let flags = format!("['--remap-path-prefix={root}=/linchpin', '--remap-path-prefix={home}=/cargo']");
        cargo.env_remove("RUSTFLAGS").args(["--config", DIST_CONFIG]);
        cargo.args(["--config", &format!("target.{triple}.rustflags={flags}")]);
        cargo.env("CFLAGS", format!("-ffile-prefix-map={root}=/linchpin -ffile-prefix-map={home}=/cargo"));
        cargo.env("SOURCE_DATE_EPOCH", epoch.to_string());
    }
    let log = context.results("dist")?.join(format!("{}.log", target.triple));
    let done = process::run(cargo.current_dir(&context.root), &log, Duration::from_secs(BUILD_S_MAX))?;
    if !done.ok {
        bail!("{} cannot be built:\n{}", target.triple, done.output);
    }
    let file = file_of(context, target, profile)?;
    Ok(Program { target: target.clone(), bytes: stripped(context, &file)? })
}

/// A program without what only debuggers read, where `strip` is there to remove it.
fn stripped(context: &Context, file: &Path) -> Result<Vec<u8>> {
    let copy = context.results("dist")?.join("stripped");
    std::fs::copy(file, &copy).with_context(|| format!("cannot read {}", file.display()))?;
    let mut strip = Command::new("strip");
    let _ = strip.arg(&copy).stderr(std::process::Stdio::null()).status();
    let bytes = std::fs::read(&copy)?;
    std::fs::remove_file(&copy)?;
    Ok(bytes)
}

fn said(command: &mut Command) -> Result<Vec<u8>> {
    let done = command.output().with_context(|| format!("cannot start {command:?}"))?;
    if !done.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&done.stderr));
    }
    Ok(done.stdout)
}

/// The newest version of glibc that a program wants, as `2.34`: `None` where it wants none.
pub(crate) fn glibc(program: &[u8]) -> Option<String> {
    let mark = b"GLIBC_2.";
    let minor = |at: usize| {
        let digits: Vec<u8> = program[at..].iter().take(3).copied().take_while(u8::is_ascii_digit).collect();
        String::from_utf8(digits).ok()?.parse::<u32>().ok()
    };
    // Tens of megabytes, read by code that is not optimized: only what begins like the mark is compared with it.
    let begins = program.iter().enumerate().filter(|(_, byte)| **byte == mark[0]).map(|(at, _)| at);
    let found = begins.filter(|at| program[*at..].starts_with(mark));
    found.filter_map(|at| minor(at + mark.len())).max().map(|minor| format!("2.{minor}"))
}

/// A payload for tests.
#[cfg(test)]
pub(crate) fn example() -> Payload {
    use serde_json::json;
    let servers = json!([
        {
            "name": "postgres", "title": "PostgreSQL", "about": "One database",
            "arguments": [
                { "name": "url", "about": "The database", "kind": "url", "repeated": false, "secret": true },
            ],
            "variables": [],
        },
        {
            "name": "slack", "title": "Slack", "about": "One workspace", "arguments": [],
            "variables": [
                { "name": "SLACK_BOT_TOKEN", "about": "Token" },
                { "name": "SLACK_TEAM_ID", "about": "Id" },
            ],
        },
        { "name": "everything", "title": "Everything", "about": "For tests", "arguments": [], "variables": [] },
    ]);
    let target = Target::new("x86_64-unknown-linux-musl").unwrap();
    Payload {
        version: "1.0.0".into(),
        epoch: 0,
        texts: ["LICENSE-APACHE", "LICENSE-MIT", "README.md"].map(|file| Entry::file(file, "text")).into(),
        man: Vec::new(),
        completions: Vec::new(),
        servers: servers.as_array().unwrap().clone(),
        programs: vec![Program { target, bytes: vec![1] }],
        level: 9,
    }
}

#[cfg(test)]
mod tests {
    use super::super::linux;
    use super::*;

    #[test]
    fn a_target_has_the_names_that_packagers_use() {
        let target = Target::new("aarch64-unknown-linux-musl").unwrap();
        assert_eq!((target.os(), target.debian_cpu(), target.is_static()), ("linux", "arm64", true));
        assert_eq!(Target::new("x86_64-pc-windows-msvc").unwrap().program(), "linchpin.exe");
        assert!(Target::new("riscv64gc-unknown-linux-gnu").is_err());
    }

    #[test]
    fn programs_of_other_machines_are_added_from_their_tarballs() {
        let folder = std::env::temp_dir().join(format!("xtask-added-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let tarball = |triple: &str, epoch| {
            let program = Program { target: Target::new(triple).unwrap(), bytes: b"of another machine".to_vec() };
            let (name, bytes) = linux::tarball(&Payload { epoch, ..example() }, &program).unwrap();
            let file = folder.join(name);
            std::fs::write(&file, bytes).unwrap();
            file
        };
        let mut payload = example();
        let wrong = |file: &Path, payload: &Payload| format!("{:#}", added(file, payload).err().unwrap());
        let of_another_commit = tarball("x86_64-apple-darwin", 1);
        assert!(wrong(&of_another_commit, &payload).ends_with("of another commit; run `cargo xtask dist` there again"));
        let of_another_version = of_another_commit.with_file_name("linchpin-0.9.0-x86_64-apple-darwin.tar.gz");
        assert!(wrong(&of_another_version, &payload).ends_with("the name must be linchpin-1.0.0-TARGET.tar.gz"));
        for triple in ["aarch64-apple-darwin", "x86_64-pc-windows-gnu"] {
            let file = tarball(triple, 0);
            let program = added(&file, &payload).unwrap();
            assert_eq!((program.target.triple.as_str(), &program.bytes[..]), (triple, &b"of another machine"[..]));
            payload.programs.push(program);
            let again = [file, tarball(&triple.replace("-gnu", "-msvc"), 0)];
            assert!(again.iter().all(|file| wrong(file, &payload).ends_with(" already")));
        }
        // The launcher of npm knows the packages of all of them.
        let (_, launcher) = npm::packages(&payload).unwrap().pop().unwrap();
        let mut archive = tar::Archive::new(GzDecoder::new(&launcher[..]));
        let manifest: Value = serde_json::from_reader(archive.entries().unwrap().nth(1).unwrap().unwrap()).unwrap();
        let mut platforms: Vec<&String> = manifest["optionalDependencies"].as_object().unwrap().keys().collect();
        // Members keep their order only where another crate asks serde_json for that.
        platforms.sort();
        assert_eq!(platforms, ["@linchpin/darwin-arm64", "@linchpin/linux-x64-musl", "@linchpin/win32-x64"]);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_newest_glibc_that_a_program_wants_is_found() {
        assert_eq!(glibc(b"\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.9\0").as_deref(), Some("2.34"));
        assert_eq!(glibc(b"static"), None);
    }
}

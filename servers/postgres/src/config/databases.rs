//! The databases of a configuration: that of its connection string, those of its file, or that of the environment.

use super::Config;
use super::service::read_file;
use super::target::Target;
use linchpin_kit::{Secret, ToolError};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

impl Config {
    /// The databases, the default one first, and warnings.
    pub(crate) fn targets(&self) -> Result<(Vec<Target>, Vec<String>), ToolError> {
        let mut warnings = Vec::new();
        let mut targets = Vec::new();
        let environment = &self.environment;
        let in_environment =
            ["host", "dbname", "user", "service"].iter().any(|p| environment.parameters.contains_key(*p));
        if let Some(url) = &self.url {
            targets.push(Target::resolve("default", url.reveal(), None, self, &mut warnings)?);
        }
        if let Some(path) = &self.file {
            targets.extend(self.listed_in(path, &mut warnings)?);
        }
        if targets.is_empty() && in_environment {
            targets.push(Target::resolve("default", "", None, self, &mut warnings)?);
        }
        if targets.is_empty() {
            return Err(ToolError::new("Please provide a database URL as a command-line argument")
                .hint("For example postgres://reader@localhost/mydb; or set DATABASE_URL, or PGHOST and PGDATABASE."));
        }
        Ok((targets, warnings))
    }

    fn listed_in(&self, path: &Path, warnings: &mut Vec<String>) -> Result<Vec<Target>, ToolError> {
        let text = read_file(path)?;
        let file: File = toml::from_str(&text).map_err(|e| {
            // The parser's message shows the line, which may hold a password.
            ToolError::new(format!("{} is invalid: {}", path.display(), e.message())).hint(
                "The file needs [databases.NAME] tables with url, password_file and schemas, and default = \"NAME\".",
            )
        })?;
        let mut names: Vec<&String> = file.databases.keys().collect();
        if let Some(default) = &file.default {
            if !file.databases.contains_key(default) {
                return Err(ToolError::new(format!(
                    "{} does not define its default database {default}",
                    path.display()
                )));
            }
            names.sort_by_key(|name| *name != default);
        }
        let targets = names.into_iter().map(|name| {
            let entry = &file.databases[name];
            let mut target = Target::resolve(name, entry.url.reveal(), entry.password_file.as_deref(), self, warnings)?;
            if let Some(schemas) = &entry.schemas {
                target.schemas.clone_from(schemas);
            }
            Ok(target)
        });
        targets.collect()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    default: Option<String>,
    databases: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    url: Secret,
    password_file: Option<PathBuf>,
    schemas: Option<Vec<String>>,
}

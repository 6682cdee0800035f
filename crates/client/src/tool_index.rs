//! What is known about a server's tools: arguments mirrored in HTTP headers, output schemas, and rejected definitions.

use crate::lock::lock;
use linchpin_core::service::HeaderParam;
use linchpin_proto::http::headers::header_params;
use linchpin_proto::http::request_headers::mirror;
use linchpin_types::tool::{TaskSupport, Tool};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// The maximum number of known tools; beyond it the index is cleared.
const TOOLS_MAX: usize = 100_000;

#[derive(Default)]
pub(crate) struct ToolIndex {
    known: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    tools: HashMap<Box<str>, Entry>,
    /// Whether all pages were read since the last change.
    complete: bool,
}

enum Entry {
    Fine { mirrored: Arc<[HeaderParam]>, output: Option<Arc<Output>>, task: Option<TaskSupport> },
    Refused(Arc<str>),
}

/// The output schema of a tool, compiled on first use.
pub(crate) struct Output {
    #[cfg_attr(not(feature = "validate"), expect(dead_code, reason = "only results that are checked need it"))]
    schema: Box<RawValue>,
    #[cfg(feature = "validate")]
    compiled: std::sync::OnceLock<Result<jsonschema::Validator, String>>,
}

impl ToolIndex {
    /// Validates and records a definition. The caller decides whether header annotations matter.
    pub(crate) fn learn(&self, tool: &Tool, headers_matter: bool) -> Result<(), String> {
        let judged = judge(tool).and_then(|()| match header_params(tool.input_schema.get()) {
            Err(why) if headers_matter => Err(why),
            params => Ok(params.unwrap_or_default()),
        });
        let entry = match &judged {
            Err(why) => Entry::Refused(why.as_str().into()),
            Ok(params) => Entry::Fine {
                mirrored: params.clone().into(),
                output: tool.output_schema.clone().map(|schema| Arc::new(Output::new(schema))),
                task: tool.execution.and_then(|execution| execution.task_support),
            },
        };
        let mut book = lock(&self.known);
        if book.tools.len() >= TOOLS_MAX {
            book.tools.clear();
        }
        book.tools.insert(tool.name.as_str().into(), entry);
        judged.map(drop)
    }

    /// Marks that all pages were read.
    pub(crate) fn complete(&self) {
        lock(&self.known).complete = true;
    }

    /// Marks the index as outdated. It is still used until the list is read again.
    pub(crate) fn outdated(&self) {
        lock(&self.known).complete = false;
    }

    /// Clears the index before a list is read from its beginning.
    pub(crate) fn forget(&self) {
        *lock(&self.known) = Book::default();
    }

    pub(crate) fn is_complete(&self) -> bool {
        lock(&self.known).complete
    }

    /// Returns whether a tool may run as a task, if that is known.
    pub(crate) fn task_support(&self, name: &str) -> Option<TaskSupport> {
        match lock(&self.known).tools.get(name)? {
            Entry::Fine { task, .. } => *task,
            Entry::Refused(_) => None,
        }
    }

    /// Returns why a tool was rejected, if it was.
    pub(crate) fn refused(&self, name: &str) -> Option<Arc<str>> {
        match lock(&self.known).tools.get(name)? {
            Entry::Refused(why) => Some(why.clone()),
            Entry::Fine { .. } => None,
        }
    }

    /// Returns the headers that mirror a call's arguments (JSON text).
    pub(crate) fn mirror(&self, name: &str, arguments: &str) -> Vec<(Box<str>, String)> {
        let params = match lock(&self.known).tools.get(name) {
            Some(Entry::Fine { mirrored, .. }) if !mirrored.is_empty() => mirrored.clone(),
            _ => return Vec::new(),
        };
        mirror(&params, arguments)
    }

    #[cfg_attr(not(feature = "validate"), expect(dead_code, reason = "only results that are checked need it"))]
    pub(crate) fn output(&self, name: &str) -> Option<Arc<Output>> {
        match lock(&self.known).tools.get(name)? {
            Entry::Fine { output, .. } => output.clone(),
            Entry::Refused(_) => None,
        }
    }
}

fn judge(tool: &Tool) -> Result<(), String> {
    if tool.name.is_empty() {
        return Err("it has no name".to_owned());
    }
    if !tool.input_schema.get().trim_start().starts_with('{') {
        return Err("its inputSchema is not an object".to_owned());
    }
    Ok(())
}

impl Output {
    fn new(schema: Box<RawValue>) -> Output {
        Output {
            schema,
            #[cfg(feature = "validate")]
            compiled: std::sync::OnceLock::new(),
        }
    }

    /// Validates a structured result (JSON text) against the schema. External schemas are never fetched: a schema that
    /// needs them validates nothing, which is logged.
    #[cfg(feature = "validate")]
    pub(crate) fn check(&self, structured: &str) -> Result<(), String> {
        let compiled = self.compiled.get_or_init(|| {
            let schema = serde_json::from_str(self.schema.get()).map_err(|e| e.to_string())?;
            jsonschema::validator_for(&schema).map_err(|e| e.to_string())
        });
        let validator = match compiled {
            Ok(validator) => validator,
            Err(why) => {
                tracing::warn!(why, "the output schema of a tool cannot be used");
                return Ok(());
            }
        };
        let value = serde_json::from_str(structured).map_err(|e| e.to_string())?;
        let problems: Vec<_> =
            validator.iter_errors(&value).take(8).map(|e| format!("at `{}`: {}", e.instance_path(), e)).collect();
        if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
    }
}

//! Examples of Linchpin, one folder a story. Run one with `cargo run -p linchpin-examples --example NAME`.
//!
//! The code of the guide (`docs/guide`) is compiled and run as doc tests of this crate: a line for each chapter.

/// Chapters of the guide as documentation of modules that exist in doc tests only.
macro_rules! chapters {
    ($($chapter:ident $file:literal;)*) => {
        $(#[cfg(doctest)]
        #[doc = include_str!(concat!("../docs/guide/src/", $file))]
        mod $chapter {})*
    };
}

chapters! {
    introduction "introduction.md";
    first_server "first-server.md";
    first_host "first-host.md";
    state_and_errors "state-and-errors.md";
    structured_output "structured-output.md";
    elicitation "elicitation.md";
    progress "progress.md";
    resources_and_prompts "resources-and-prompts.md";
    dynamic_tools "dynamic-tools.md";
    middleware "middleware.md";
    tasks "tasks.md";
    extensions "extensions.md";
    extending "extending.md";
    testing "testing.md";
    sessions "sessions.md";
    deployment "deployment.md";
    authorization "authorization.md";
    observability "observability.md";
    performance "performance.md";
    security "security.md";
    program "program.md";
    bridging "bridging.md";
    from_rmcp "from-rmcp.md";
    from_typescript "from-typescript.md";
    from_published_servers "from-published-servers.md";
    examples "examples.md";
    revisions "revisions.md";
    glossary "glossary.md";
    limits "../../LIMITS.md";
    tasks_in_full "../../TASKS.md";
}

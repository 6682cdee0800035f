//! Where packages are published. Nothing is published yet: a maintainer sets these, and `homepage` and `repository` in the workspace's `Cargo.toml`, before the first release.

/// Names and addresses of the project outside of this repository.
pub(crate) struct Places {
    /// The project's site.
    pub(crate) homepage: &'static str,
    /// The repository, for browsers.
    pub(crate) repository: &'static str,
    /// Where the files of a release are downloaded; followed by `/vVERSION/FILE`. The MCP registry wants releases of
    /// GitHub or GitLab.
    pub(crate) downloads: &'static str,
    /// The npm package that people name.
    pub(crate) npm: &'static str,
    /// The scope of the npm packages that hold programs.
    pub(crate) npm_scope: &'static str,
    /// The package on PyPI.
    pub(crate) pypi: &'static str,
    /// The container image, without tag.
    pub(crate) image: &'static str,
    /// The namespace in the MCP registry.
    pub(crate) registry: &'static str,
    /// Who is responsible for the packages.
    pub(crate) maintainer: &'static str,
}

impl Places {
    /// The name of the program's entry in the MCP registry, which npm, PyPI and images repeat.
    pub(crate) fn entry(&self) -> String {
        format!("{}/linchpin", self.registry)
    }
}

/// The places that every package names.
pub(crate) const PLACES: Places = Places {
    homepage: env!("CARGO_PKG_HOMEPAGE"),
    repository: env!("CARGO_PKG_REPOSITORY"),
    downloads: "https://linchpin.example/releases",
    npm: "linchpin",
    npm_scope: "@linchpin",
    pypi: "linchpin",
    image: "images.linchpin.example/linchpin",
    registry: "example.linchpin",
    maintainer: "The Linchpin developers <packages@linchpin.example>",
};

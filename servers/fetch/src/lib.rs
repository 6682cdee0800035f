//! Web pages for models: an MCP server that cannot be led into private networks.

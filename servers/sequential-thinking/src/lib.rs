//! A place to think in steps as an MCP server.

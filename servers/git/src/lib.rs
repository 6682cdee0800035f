//! Git repositories as an MCP server: hardened against what repositories bring along.

//! Time and time zones as an MCP server.

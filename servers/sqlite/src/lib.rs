//! SQLite databases as an MCP server, with a read-only mode that holds.

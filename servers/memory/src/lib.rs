//! A knowledge graph in one file as an MCP server: nothing acknowledged is ever lost.

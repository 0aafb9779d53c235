"""Real MCP servers behind the same layers, and episodes served to agents over MCP."""

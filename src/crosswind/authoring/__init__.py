"""What outside authors write: plugins, domains in YAML, and starting points for them."""

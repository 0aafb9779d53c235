"""One episode: which stack it meets (recipes, suites), how it is played and judged, what is recorded."""

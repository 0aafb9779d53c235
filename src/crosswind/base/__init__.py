"""What every room may use and what knows nothing of agents: errors, files, the terminal, processes."""

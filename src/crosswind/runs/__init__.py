"""Many episodes: the runner, its store, and baselines played beside a run."""

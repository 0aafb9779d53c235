"""A verdict for CI: demands on a run, decided by paired statistics."""

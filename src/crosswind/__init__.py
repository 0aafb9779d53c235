"""crosswind: does a tool-use agent survive the open world, where does it break, and how to train it not to."""

from crosswind.base.version import __version__

__all__ = ["__version__"]

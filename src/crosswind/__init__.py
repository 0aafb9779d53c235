"""crosswind: does a tool-use agent survive the open world, where does it break, and how to train it not to.

Importing the package loads nothing heavy; `crosswind.cli` is the command line, `crosswind.play` one episode.
"""

__version__ = "0.1.0"

"""What `import crosswind` offers beyond the types of the engine: evaluate an agent, play one episode, read runs.

evaluate.py    an agent over a suite; run.py: the run, its frame, drops, report and gate
episode.py     one episode: draw, certify, play, judge
streams.py     an agent through streams or careers
training.py, plugins.py    demonstrations and training; plug-ins
arguments.py   what is said of an argument that cannot work
"""

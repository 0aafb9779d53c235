"""Many episodes: the runner and its store, scripted baselines, and what stored runs show.

runner.py       play episodes, several at a time, into a store; the one scheduler; timed.py: an agent with a deadline
store.py        the folder of a run; proxy_sessions.py: sessions that a killed proxy left in it
manifest.py     what is run, and whether two runs are the same, as resuming and merging ask
command.py      the command that plays a run again
lines.py, segments.py    lines of episodes read back; sealed parts of a large run
baselines.py    scripted agents over a suite or on the episodes of a run
reading.py      a stored episode beside its gold, and whether its world may be walked again
cluster.py, spread_streams.py, ray_map.py    episodes, streams and other work on a Ray cluster
far_draws.py    what actors of a cluster draw, put in the order of the suite
analysis.py     all that a report needs, worked out once; comparison.py: several runs, paired
ranking.py      many runs of one suite, the best first
rescore.py      judge a stored run again; rewriting.py: other lines in the place of all; merge.py: put shards together
"""

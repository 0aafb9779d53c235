"""Watch what an agent meets in production: read logs, test for changes, name the perturbation behind a change.

`alarms` is what comes out (JSON lines), `observed` the neutral form of an episode, `sources` the readers of log
formats, `channels` the measures of an episode, `sequential` the tests, `naming` the inverse problem: which
perturbation, at what severity, over which tools. Nothing here reads layers, verdicts or world-side calls, because a
production log has none.
"""

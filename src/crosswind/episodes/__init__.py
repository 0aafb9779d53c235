"""One episode: which stack it meets, how it is played and judged, what is recorded.

recipe.py, suite.py, builtin_suites.py    distributions over stacks; which tasks meet which conditions; those we bring
schedule.py    deals tasks to conditions, and draws and certifies each episode when it is asked for
play.py        an agent in a session, and the verdict on what it did
record.py      an episode as a line of JSON
survey.py      whether tasks are fair by themselves, and how often a kind can be drawn fairly
"""

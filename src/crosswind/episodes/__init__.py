"""One episode: which stack it meets, how it is played and judged, what is recorded.

recipe.py, suite.py, builtin_suites.py    distributions over stacks; which tasks meet which conditions; those we bring
schedule.py    deals tasks to conditions, and draws and certifies each episode when it is asked for
play.py        an agent in a session, and the verdict on what it did
stream.py      streams: episodes in an interface that keeps changing
career.py, facts.py, career_laws.py    tasks in one world that persists, what is told early for later, and its laws
record.py, brief.py        an episode as a line of JSON; what figures need of it
ticket.py      what another process needs to play an episode
reasons.py     why no fair draw was found, in words
survey.py      whether tasks are fair by themselves, and how often a kind can be drawn fairly
"""

"""The closed loop from an alarm to a promoted version of an agent.

alarms.py      which alarms of `crosswind watch --json` to act on, and the recipe that reproduces each
registry.py    versions of an agent with their lineage; promotion and rollback
plan.py        what one adaptation is: its options, the suites that reproduce the alarms, what it would cost
learn.py       the interface that an agent knows, out of records of a good time
ways.py        how a candidate is made: notes, wrapper, another adapter, training
loop.py        the stages, each stored, so that a killed loop resumes
"""

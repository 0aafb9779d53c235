"""The engine: worlds, tasks, perturbations, sessions, the oracle, the laws and certified draws.

types.py, flow.py              calls, results, tasks; generators that ask for calls
world.py, domain.py            rows and tools; task families with their solution and their goal
perturbation.py, registry.py   a layer between agent and world; things by name
value_map.py                   a base for layers that only write values otherwise
toolbox.py, session.py, user.py    whatever answers calls, seen through layers, with a scripted user
oracle.py, draw.py             a solution walked through layers; a certified stack of named kinds
certify.py, laws.py, refusal_proofs.py    what makes a stack fair, the step budget, proofs that refusing is right
task_laws.py, secrets.py, footprints.py   laws of tasks, of what layers keep to themselves, of tools
conduct.py, forms.py, legends.py          laws of what layers do, write and say
evidence.py, aggregates.py, promises.py   laws of choices and answers, of counts, of orders and details
audit.py, verdicts.py, blame.py           domains and kinds judged once, and whose code raised
names.py, entity_names.py      made-up names; entities under other names
"""

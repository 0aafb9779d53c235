"""The engine: worlds, tasks, perturbations, sessions, the oracle, the laws and certified draws.

types.py, flow.py              calls, results, tasks; generators that ask for calls
state.py, world.py, domain.py    rows; tools; task families with their solution and their goal
perturbation.py, registry.py   a layer between agent and world; things by name
value_map.py                   a base for layers that only write values otherwise
toolbox.py, session.py, user.py    whatever answers calls, seen through layers, with a scripted user
oracle.py                      a solution walked through layers
finish.py, endings.py          the typed end of an episode, and its judge
draw.py, drawing.py            a certified stack of named kinds; the same without an audit, and how often it is tried
turns.py, memory.py, release.py    requests that turn into others; what was told earlier; versions of an interface
certify.py, laws.py, refusal_proofs.py    what makes a stack fair, the step budget, proofs that refusing is right
task_laws.py, secrets.py, footprints.py   laws of tasks, of what layers keep to themselves, of tools
conduct.py, forms.py, legends.py          laws of what layers do, write and say
evidence.py, aggregates.py, promises.py   laws of choices and answers, of counts, of orders and details
candour.py, claims.py                     what layers say, and what a domain's texts say, checked against the rows
marks.py, leftovers.py                    layouts that give the right row away; what layers keep between episodes
audit.py, verdicts.py, blame.py           domains and kinds judged once, and whose code raised
declarations.py, processes.py             what of them is judged: tools at first sight, other processes
names.py, entity_names.py      made-up names; entities under other names
"""

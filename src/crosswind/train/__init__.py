"""Demonstrations, and models trained on them: SFT, PAFT and GRPO.

config.py                          what a training is, with every default
data.py, rows.py, slips.py, thoughts.py, components.py, formats.py, batches.py    demonstrations, from draws to batches
run.py, sft.py, stages.py, adaptive.py    supervised training: plain, in stages, in adaptive rounds
corrections.py, worlds.py          demonstrations that take up an agent's mistakes; many generated domains as one
rollouts.py, grpo_rows.py, grpo.py        reinforcement: groups and rewards, which of them have a signal, steps
grpo_watch.py, progress.py         signs of a collapse, and harder tasks; how far a training is
sizing.py, processes.py            what the size of a model decides; several processes of one training
model.py, checkpoints.py, transfer.py     models and checkpoints; what one domain does to another
"""

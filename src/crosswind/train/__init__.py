"""Demonstrations, and models trained on them: SFT, PAFT and GRPO.

config.py                          what a training is, with every default
data.py, rows.py, slips.py, thoughts.py, components.py, formats.py, batches.py    demonstrations, from draws to batches
run.py, sft.py, stages.py, adaptive.py    supervised training: plain, in stages, in adaptive rounds
rollouts.py, grpo_rows.py, grpo.py        reinforcement: groups, which of them have a signal, steps
model.py, checkpoints.py, transfer.py     models and checkpoints; what one domain does to another
"""

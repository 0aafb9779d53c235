"""Agents on models, and functions of your own: what a spec such as `openai:MODEL@URL` names.

spec.py, source.py                 from a spec to a source of agents; settings and prices
remote.py, retry.py, redact.py     what providers have in common: requests, waits, secrets
openai_compatible.py, anthropic.py, python_agent.py, toolset.py, hf.py, embedded.py    one kind of agent each
prompts.py, parsing.py             the text protocol: the prompt of a model, and tool calls read back
engine.py, slots.py, cuda_graphs.py, attention.py, kernels.py    batched generation in process
loading.py, weights.py, adapters.py, lora_gguf.py           weights and adapters
probe.py                           what `crosswind doctor` finds out
"""

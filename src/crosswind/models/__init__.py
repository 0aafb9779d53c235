"""Agents on models, and functions of your own: what a spec such as `openai:MODEL@URL` names.

spec.py, source.py                 from a spec to a source of agents; settings and prices
remote.py, retry.py, redact.py     what providers have in common: requests, waits, secrets
openai_compatible.py, anthropic.py, python_agent.py, toolset.py, hf.py, embedded.py    one kind of agent each
prompts.py, parsing.py, native.py  the text protocol, and calls read back; a model's own way of writing tools
constrained.py                     a model that can only call tools as the menu shows them
notes.py                           tools by which an agent keeps notes over a stream
adaptive.py, wrapping.py           the wrapper `adaptive:`; its options
mender.py, repairs.py              what it does with one call; what can be put right without a model
interface.py, shapes.py            the interface that it knows; results of today in the shape of that one
engine.py, slots.py, cuda_graphs.py, attention.py, kernels.py    batched generation in process
loading.py, weights.py, adapters.py, lora_gguf.py           weights and adapters
probe.py                           what `crosswind doctor` finds out
"""

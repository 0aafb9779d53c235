"""Agents that stand on a model: one file per way to reach it. SDKs are imported when an agent is first used."""

"""Agents by a line of text: providers, local models, and functions of your own."""

"""A domain that is declared in a YAML file: tables, tools, rules and families become a `Domain` like any other.

`solve` makes the declared calls and reads their results. What is right (`ends`, `answer`, `hopes`) is found without it,
by following the same declaration over the rows of a state; no tool, session or layer has a part in that. A declaration
that asks for the wrong thing is wrong on both sides, though: no law can see that.
"""

from crosswind.authoring.yaml_domain.build import load

__all__ = ["load"]

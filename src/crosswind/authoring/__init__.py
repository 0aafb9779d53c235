"""What outside authors write: plugins, domains in YAML, and starting points for them.

plugins.py     files and distributions that add domains, perturbations or agents
yaml_domain/   a domain declared in one YAML file
new.py         what `crosswind new` and `crosswind init` write
"""

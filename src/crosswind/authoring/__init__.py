"""What outside authors write: plugins, domains in YAML, and starting points for them.

plugins.py     files and distributions that add domains, perturbations or agents
yaml_domain/   a domain declared in one YAML file
domain_checks.py   what a domain in Python lacks as soon as it is loaded
checkup.py     what `crosswind check` finds out
new.py         what `crosswind new` and `crosswind init` write
"""

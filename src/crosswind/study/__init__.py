"""Experiments: arms, suites and seeds, run and reported as a matrix of results.

A study is a folder such as `studies/fragility`; its own rules and tables are in `findings.py` there.

definition.py      a study as data: arms, suites, and which tables its report has (`report.sections`)
runner.py, job.py  many arms; one arm and seed
outcomes.py, results.py, bundle.py    rows kept for good; figures from them; carrying results elsewhere
report.py, tables.py, plots.py, findings.py    pages, the built-in tables, plots, and the frame for a study's findings
"""

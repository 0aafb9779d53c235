"""What runs say, for people: pages, Markdown and the terminal. Nothing is computed here that is not in `metrics`.

content.py      a report as data: summary, verdict, baselines, chosen episodes
html.py         the same as one page; markdown.py: as Markdown
compare.py      two runs or more, paired
episode.py      one stored episode beside its certified way; show.py: in the terminal
outside.py      what a report may do where worlds lie with somebody's server
markup.py       HTML that is safe by construction; parts.py, charts.py, style.css: what pages are made of
"""

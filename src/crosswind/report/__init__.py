"""What runs say, for people: pages, Markdown and the terminal, from stored records and computed results alone.

Nothing is played or walked here: `runs/analysis.py` and `runs/comparison.py` do that.

content.py      a report as data: summary, verdict, baselines, episodes to open
verdict.py      the sentences that say how a run went, headline first
html.py         the same as one page; markdown.py: as Markdown
front.py        its first screen; advice.py: what to do next; finder.py, finder.js: the list of all episodes
leaderboard.py  many runs in one table that sorts (sorting.js)
compare.py      two runs or more, paired
streams.py, interactions.py    streams and careers; two obstacles at once
episode.py      the steps of an episode beside its certified way; show.py: in the terminal
table.py        the table that `crosswind run` prints
markup.py       HTML that is safe by construction; parts.py, charts.py, style.css: what pages are made of
"""

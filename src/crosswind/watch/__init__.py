"""Watch what an agent meets in production: read logs, test for changes, name the perturbation behind a change.

`alarms` is what comes out (JSON lines), `observed` the neutral form of an episode, `sources` the readers of log
formats, `channels` the measures of an episode, `sequential` the tests, `naming` the inverse problem: which
perturbation, at what severity, over which tools. `watcher` puts them together. `naming` asks `naming_tools`,
`naming_results` and `naming_talk`, which go by `differences` and `lexicon` and give an `explanation`; `losses` says
what a kind costs. Alarms come out as a `page`, in words (`wording`) or as OpenTelemetry `events`. Nothing here reads
layers, verdicts or world-side calls, because a production log has none.
"""

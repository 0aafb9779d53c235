"""The command line: `app` assembles the commands.

A module has the command of its name. report.py also has `compare` and `show`, gate.py has `init` and `export`,
import_log.py has `import`, app.py has `new`. help.py writes what `--help` prints. options.py, progress.py, config.py,
dry_run.py and run_outcome.py are shared parts.
"""

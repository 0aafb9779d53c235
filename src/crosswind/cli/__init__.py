"""The command line: `app` assembles the commands.

A module has the command of its name; import_log.py has `import`. help.py writes what `--help` prints, exits.py has the
exit statuses. options.py, progress.py, config.py, dry_run.py and run_outcome.py are shared parts.
"""

"""`python -m crosswind`: the command line."""

from crosswind.cli.app import main

main()

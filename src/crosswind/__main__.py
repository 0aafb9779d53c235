"""`python -m crosswind`: the command line."""

from crosswind.cli import main

main()

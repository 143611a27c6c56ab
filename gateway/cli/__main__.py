"""`python -m gateway.cli`: the same as `stepdown`."""

from gateway.cli import main

main()

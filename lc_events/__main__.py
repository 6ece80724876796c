"""`python -m lc_events` is `lc-events`."""

from lc_events.cli.main import main

main()

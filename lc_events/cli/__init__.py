"""The command line: one module per family of commands, errors and exit codes in `main`."""

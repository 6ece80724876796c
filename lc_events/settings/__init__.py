"""What a user may set: by flag, environment variable or TOML file, in this order (CONTRACT section 4).

`programs` holds one model per program, `sources` where values come from and how errors are worded, `reading` the store
of commands that only read (without pydantic, for these have to start fast).
"""

"""What is wrong here, and what to do: small checks of settings, disk, store, broker and clock that change nothing."""

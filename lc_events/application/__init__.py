"""The event store: names and bytes on disk, the hash chain, saving and reading; no decision is made here."""

"""The way to a broker: topic grammar, settings, client and the internal broker."""

"""The pure core: what jobs and datasets are, and how they decide. No clock, file, network or random number here."""

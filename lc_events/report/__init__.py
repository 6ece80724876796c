"""A job's history as one page to look at: no network, no script, light and dark, on a desk or a phone."""

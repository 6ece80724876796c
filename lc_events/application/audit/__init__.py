"""The read side: what was, why, what would have been, and the proof. Nothing here writes to a store."""

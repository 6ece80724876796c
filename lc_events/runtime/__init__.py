"""What every long-running program of ours needs: a clock, a locked state folder, secrets kept apart, rates."""

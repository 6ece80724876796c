"""The running local controller: messages and time in, one committer that decides and saves, effects and reports out."""

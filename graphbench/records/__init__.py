"""Records of runs: what was trained, on which data, for how long, and how well it scored."""

"""Models that build a solution step by step and read what they have decided so far."""

"""Algorithmic reasoning: seven graph problems with exact labels (GraphBench paper, section 3.3.3)."""

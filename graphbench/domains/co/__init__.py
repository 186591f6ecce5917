"""Combinatorial optimisation: independent sets, cuts and colourings of random graphs (GraphBench, section 3.3.2)."""

"""Hidden edges are asked for among candidate pairs of nodes."""

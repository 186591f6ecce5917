"""Generation: the answer to a sample is a whole new structure, which the verifier of a domain scores."""

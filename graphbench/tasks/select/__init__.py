"""Selection of algorithms: one of several is chosen for every instance."""

"""Models that generate structures: step by step in an environment of the domain, or token by token."""

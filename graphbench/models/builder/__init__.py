"""Models that generate structures by choices, each of which a domain's builder keeps right."""

"""Toy domain: small random graphs with labels that anyone can check by hand."""

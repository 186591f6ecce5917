"""Models that read a story about people and answer a question on two of them (Sinha et al., 2019)."""

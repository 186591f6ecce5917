"""Encode-process-decode models that follow an algorithm step by step (Velickovic et al., 2022; Ibarz et al., 2022)."""

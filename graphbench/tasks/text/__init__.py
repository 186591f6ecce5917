"""Texts: prompts that are answered by texts."""

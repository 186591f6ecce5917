"""String matching (Cormen et al., chapter 32)."""

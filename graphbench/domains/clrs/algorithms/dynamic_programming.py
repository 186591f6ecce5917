"""Dynamic programming (Cormen et al., chapter 15)."""

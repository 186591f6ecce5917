"""The algorithms, one module for each chapter of Cormen et al.; modules are imported when needed."""

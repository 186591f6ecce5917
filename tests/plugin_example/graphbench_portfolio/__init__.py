"""A plug-in of graphbench: which heuristic finds the smallest vertex cover of a graph?"""

import graphbench
from graphbench_portfolio import choose, nearest, processor  # noqa: F401  (they register what they define)
from graphbench_portfolio.heuristics import GENERATORS

graphbench.register_domain(graphbench.Domain("portfolio", generators=GENERATORS))
graphbench.register_data("graphbench_portfolio")

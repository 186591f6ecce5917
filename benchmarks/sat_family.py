"""A dataset of one held-out family of SAT formulas, for transfer from the other families.

``sat/small`` is trained on six families, and scored on a seventh, colourings of graphs, of which it has no training
split. The script makes a dataset of these formulas (60 % for training, 20 % each for validation and test), so that
``graphbench transfer`` can adapt a model of ``sat/small`` with some of them:

    python -m benchmarks.sat_family
    graphbench transfer --pretrain sat/small:kissat@vg --adapt families/sat_coloring \\
        --model baselines/sat/gin_small.yaml
"""

from __future__ import annotations

import argparse
from pathlib import Path

import graphbench

SOURCE = "sat/small:kissat@vg"
NAME = "families/sat_coloring"
FAMILY = "coloring"


def main() -> None:
    """Make the dataset in the folder of one's own datasets."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--root", type=Path, help="folder that holds all datasets")
    arguments = parser.parse_args()
    splits = graphbench.Loader(SOURCE, root=arguments.root).load([FAMILY])
    card = splits.card
    made = graphbench.from_pyg(
        NAME,
        list(splits[FAMILY]),
        inputs=[f.name for f in card.inputs if f.location != "graph"],
        target=card.outputs[0].name,
        task="graph scalar",
        metric=card.metrics.primary,
        fractions=(0.6, 0.2, 0.2),
        directed=card.directed,
        title="Time of Kissat on colourings of graphs",
        licence=card.licence,
        replace=True,
    )
    print(made)
    for note in made.notes:
        print("-", note)


if __name__ == "__main__":
    main()

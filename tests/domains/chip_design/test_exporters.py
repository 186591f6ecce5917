"""Reference circuits as AIGER files."""

import csv

import numpy as np

import graphbench
from graphbench.data.build.generation import draw_samples
from graphbench.domains.chip_design import Aig, equivalent
from graphbench.domains.chip_design.exporters import EXPORTERS
from graphbench.domains.chip_design.graphs import circuits_of, encoded
from graphbench.domains.chip_design.truth_tables import from_text


def test_files_compute_the_functions_of_their_tables(tmp_path):
    card = graphbench.card("chip_design/aig")
    samples = draw_samples(card.graphs, "test", np.arange(4))
    circuits = list(circuits_of(samples))
    samples.values["reference"] = _Texts([encoded(circuits[0]), "", *map(encoded, circuits[2:])])
    written = EXPORTERS["aiger"].write(card, {"test": samples}, tmp_path)
    assert written == [tmp_path / "test", tmp_path / "test.csv"]
    rows = list(csv.DictReader((tmp_path / "test.csv").open()))
    assert [row["file"] for row in rows] == ["test/0.aig", "", "test/2.aig", "test/3.aig"]
    for row in rows:
        if row["file"]:
            aig = Aig.from_aiger(tmp_path / row["file"])
            assert equivalent(aig, from_text(row["table"])) and aig.num_ands == int(row["ands"])


class _Texts:
    def __init__(self, texts):
        self.texts = texts

    def strings(self):
        return self.texts

"""The schemas of a card: what the files of graphs and of labels hold, and what a user's sample has."""

from __future__ import annotations

import pickle

import graphbench
from graphbench.catalog.features import Stage
from graphbench.catalog.schema import Schema


def names(schema: Schema) -> list[str]:
    return [feature.name for feature in schema.features]


def test_a_card_without_tasks_stores_the_features_of_its_generator() -> None:
    card = graphbench.card("algoreas/mst_easy")
    assert card.graph_schema == card.stored_schema == card.sample_schema
    assert names(card.graph_schema) == [f.name for f in card.features] and card.graph_schema.lists_edges
    assert card.label_schemas == {}


def test_labels_have_schemas_of_their_own_and_no_edges() -> None:
    card = graphbench.card("co/ba_small:mis")
    (labeller,) = card.labellers
    labels = card.label_schemas[labeller]
    assert labels.edges == "none" and not labels.lists_edges and not labels.complete
    assert all(feature.stage is Stage.META for feature in labels.features)
    assert names(card.stored_schema) == [*names(card.graph_schema), *names(labels)]
    stages = {f.name: f.stage for f in card.stored_schema.features}
    assert {f.name for f in card.outputs} <= {name for name, stage in stages.items() if stage is Stage.OUTPUT}


def test_a_representation_changes_the_sample_and_not_the_store() -> None:
    card, representation = graphbench.card("sat/small:kissat"), graphbench.card("sat/small:kissat@vg")
    assert representation.graph_schema == card.graph_schema and representation.stored_schema == card.stored_schema
    assert representation.sample_schema != card.sample_schema and representation.address == "sat/small:kissat@vg"
    assert representation.graphs.graph_features == card.graph_features and representation.graphs.representation is None


def test_changes_of_a_series_are_not_stored() -> None:
    card = graphbench.card("weather/sim_t21")
    assert card.series is not None
    assert set(names(card.sample_schema)) - set(names(card.graph_schema)) == card.series.derived
    assert set(card.graph_schema.packed) <= set(names(card.graph_schema))


def test_complete_graphs_list_no_edges() -> None:
    schema = graphbench.card("clrs/bfs").graph_schema
    assert schema.complete and schema.directed and not schema.lists_edges
    assert {f.name for f in schema.stored_features}.isdisjoint(f.name for f in schema.hints)


def test_other_features_of_a_card_are_those_of_the_generator_but_for_labels() -> None:
    card = graphbench.card("sat/small:kissat")
    changed = card.with_features([f for f in card.features if f.name != card.graph_features[0].name])
    assert changed.graph_features == card.graph_features[1:]


def test_schemas_travel_to_workers() -> None:
    schema = graphbench.card("weather/sim_t21").graph_schema
    assert pickle.loads(pickle.dumps(schema)) == schema

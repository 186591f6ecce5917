"""Links: heuristics equal NetworkX's, scores equal OGB's rule, batches and single graphs agree, models learn them."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
import torch_geometric.transforms as T
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader

import graphbench
from graphbench.catalog.features import Location
from graphbench.catalog.links import PAIRS, QUERIES
from graphbench.core.errors import CardError, ConfigError, EvaluationError, GraphBenchError
from graphbench.data.arrays.link_heuristics import Heuristics
from graphbench.models.build import ModelConfig, build_model, count_parameters
from graphbench.models.tabular.table import table_of
from graphbench.tasks.registry import task_of


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHBENCH_OWN", str(tmp_path / "own"))
    monkeypatch.setenv("GRAPHBENCH_ROOT", str(tmp_path / "root"))
    return tmp_path


def blocks(seed, nodes=40):
    """Return a graph of two groups that nodes know: links are within the groups."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, nodes)
    u, v = np.triu_indices(nodes, 1)
    kept = rng.random(len(u)) < np.where(group[u] == group[v], 0.3, 0.01)
    edges = np.stack([np.r_[u[kept], v[kept]], np.r_[v[kept], u[kept]]])
    return Data(x=torch.tensor(group)[:, None], edge_index=torch.tensor(edges), num_nodes=nodes)


@pytest.fixture
def groups(own):
    made = graphbench.from_pyg(
        "mine/blocks", [blocks(i) for i in range(60)], task="link", negatives={"uniform": 12}, progress=False
    )
    return graphbench.Loader(made.card.id).load()


@pytest.mark.parametrize("directed", [False, True])
def test_heuristics_equal_those_of_networkx(directed):
    rng = np.random.default_rng(5)
    edges = np.unique(rng.integers(0, 50, (160, 2)), axis=0)
    pairs = rng.integers(0, 50, (2, 400))
    pairs = pairs[:, pairs[0] != pairs[1]]
    graph = nx.Graph([(u, v) for u, v in edges.tolist() if u != v])
    graph.add_nodes_from(range(50))
    listed = list(map(tuple, pairs.T.tolist()))
    expected = {
        "common_neighbours": [len(list(nx.common_neighbors(graph, u, v))) for u, v in listed],
        "adamic_adar": [score for _, _, score in nx.adamic_adar_index(graph, listed)],
        "preferential_attachment": [score for _, _, score in nx.preferential_attachment(graph, listed)],
    }
    table = nx.to_numpy_array(graph, nodelist=range(50))
    shares = np.diag(1 / np.sqrt(np.maximum(table.sum(axis=0), 1)))
    walks = table @ shares @ table @ shares @ table
    expected["paths_of_three"] = [walks[u, v] for u, v in listed]
    given = edges if directed else edges[:, ::-1]  # neighbours count in either direction
    computed = Heuristics(given, 50, directed=directed).scores(pairs)
    assert len(computed) == Heuristics.count(directed=directed)
    for name, scores in expected.items():
        np.testing.assert_allclose(computed[name], scores, rtol=1e-12, atol=1e-14)
    arcs = set(map(tuple, given.tolist()))
    assert not directed or computed["reverse_arc"].tolist() == [float((v, u) in arcs) for u, v in listed]


def test_models_read_no_hidden_edge_and_a_batch_is_its_graphs(groups):
    train = groups.train
    stored = train.samples
    first, batch = train[0], next(iter(train.batches(4)))
    hidden = np.asarray(stored.values["link"][: int(stored.num_edges[0])]) == 1
    kept = stored.edges[: len(hidden)][~hidden]
    assert {tuple(e) for e in first.edge_index.T.tolist()} == {
        tuple(e) for u, v in kept.tolist() for e in [(u, v), (v, u)]
    }
    asked = {tuple(sorted(pair)) for pair in first.pair_index[:, first.link == 1].T.tolist()}
    assert asked == {tuple(sorted(edge)) for edge in stored.edges[: len(hidden)][hidden].tolist()}
    for i, graph in enumerate(batch.to_data_list()):
        for name in (PAIRS, QUERIES, "link", "edge_index", "node_features"):
            assert torch.equal(graph[name], train[i][name]), name
    collated = next(iter(DataLoader(train, 4)))
    for name in (PAIRS, QUERIES, "link", "edge_index", "y"):
        assert torch.equal(collated[name], batch[name]), name


def test_scores_are_mean_reciprocal_ranks_of_queries(groups):
    evaluator = graphbench.Evaluator("mine/blocks")
    batch = next(iter(groups.test.batches(6)))
    scores = torch.randn(batch.link.numel(), generator=torch.Generator().manual_seed(0))
    ranks = []
    for query in batch.query_batch.unique():
        here = batch.query_batch == query
        link = scores[here & (batch.link == 1)].item()
        ranks.append(1 + (scores[here] > link).sum().item())
    whole = evaluator.evaluate(batch, scores)
    assert whole["mrr"] == pytest.approx(np.mean(1 / np.array(ranks)))
    assert whole["hits_at_3"] == pytest.approx(np.mean(np.array(ranks) <= 3))
    assert evaluator.evaluate(batch.link, scores, batch.query_batch)["mrr"] == whole["mrr"]
    evaluator.reset()
    taken = 0
    for graph in batch.to_data_list():
        evaluator.update(graph, scores[taken : taken + graph.link.numel()])
        taken += graph.link.numel()
    assert evaluator.compute()["mrr"] == pytest.approx(whole["mrr"], abs=1e-12)


def test_every_step_asks_for_other_links_with_new_negatives(groups):
    task = task_of(groups.card, {"queries": 7})
    first, second = (next(task.batches(groups.train, 4, seed=1, start=start)) for start in (0, 1))
    again = next(task.batches(groups.train, 4, seed=1, start=1))
    assert torch.equal(second.pair_index, again.pair_index) and not torch.equal(first.pair_index, second.pair_index)
    assert int(first.link.sum()) == 4 * 7 and int(first.query_batch.max()) == 27
    joined = set(map(tuple, first.edge_index.T.tolist()))
    assert not joined & set(map(tuple, first.pair_index.T.tolist()))


@pytest.mark.thorough
def test_the_dot_product_learns_groups_that_no_heuristic_sees(groups, own):
    result = graphbench.train(
        "mine/blocks", "gin_small", steps=40, output=own / "run", evaluate=["test"], progress=False
    )
    scores = result.record.scores["test"]
    assert scores["mrr"] > 1.2 * groups.card.floor["test"]["random"]["mrr"]


def test_tables_of_pairs_have_the_heuristics_and_forests_beat_the_best_of_them(own):
    graphs = [blocks(i) for i in range(60)]
    made = graphbench.from_pyg("mine/trees", graphs, task="link", inputs=[], negatives={"uniform": 12}, progress=False)
    split = graphbench.Loader("mine/trees").load().train
    batch = next(iter(split.batches(3)))
    table = table_of(batch, split.card.features, Location.PAIR, 0, split.card.directed)
    scores = Heuristics(batch.edge_index.numpy().T, batch.num_nodes, directed=False).scores(batch[PAIRS].numpy())
    for values in scores.values():
        assert any(np.allclose(values, column, rtol=1e-6) for column in table.T)
    run = graphbench.train("mine/trees", "gradient_boosting", output=own / "run", progress=False)
    floor = max(value["mrr"] for value in made.card.floor["test"].values())
    assert run.scores["test"].primary > floor


def test_one_large_graph_is_prepared_once_and_its_pairs_are_those_of_the_step(own):
    graph = blocks(0, nodes=120)
    made = graphbench.from_pyg("mine/one", [graph], task="link", negatives={"uniform": 10}, progress=False)
    train = graphbench.Loader(made.card.id).load().train
    task = task_of(made.card)
    config = ModelConfig(processor="gin", layers=1, hidden=8, positional={"type": "rwse", "k": 4, "hidden": 8})
    model = build_model(config, made.card.features, directed=False)
    batches = task.batches(train, 1, seed=0)
    prepared = []
    for _ in range(2):
        batch = next(batches)
        ready = model.prepare(batch)
        assert ready.pair_index is batch.pair_index and ready.link is batch.link and ready.y is batch.y
        prepared.append((ready, batch.pair_index.clone()))
    assert not torch.equal(prepared[0][1], prepared[1][1])
    assert prepared[0][0].rwse is prepared[1][0].rwse


@pytest.mark.parametrize("directed", [False, True])
def test_models_that_read_scores_of_pairs_agree_prepared_or_not_and_in_any_batch(own, directed):
    graphs = [blocks(i, nodes=40) for i in range(12)]
    made = graphbench.from_pyg(
        f"mine/read_{int(directed)}", graphs, task="link", directed=directed, negatives={"uniform": 6}, progress=False
    )
    split = graphbench.Loader(made.card.id).load().train
    config = ModelConfig(processor="gin", layers=1, hidden=8, pair_scores=True)
    torch.manual_seed(0)
    model = build_model(config, made.card.features, directed=directed).eval()
    batch = next(iter(split.batches(3)))
    model.fit_normalisation(batch)
    scores = model(batch)["link"]
    torch.testing.assert_close(model(model.prepare(batch))["link"], scores, rtol=0, atol=0)
    alone = torch.cat([model(Batch.from_data_list([split[i]]))["link"] for i in range(3)])
    torch.testing.assert_close(alone, scores, rtol=1e-5, atol=1e-5)
    other = next(iter(split.batches(3)))
    other.pair_index, other.query_batch = other.pair_index.flip(1), other.query_batch.flip(0)
    renewed = model._with_pairs_of(model.prepare(batch), other)
    torch.testing.assert_close(model(renewed)["link"], scores.flip(0))
    plain = config.model_copy(update={"pair_scores": False})
    assert count_parameters(model) > count_parameters(build_model(plain, made.card.features, directed=directed))
    assert "pair_scores" not in plain.model_dump()


@pytest.mark.thorough
def test_scores_of_pairs_help_where_nodes_have_no_features(own):
    made = graphbench.from_pyg(
        "mine/bare", [blocks(i) for i in range(60)], task="link", inputs=[], negatives={"uniform": 12}, progress=False
    )
    changes = {"model.pair_scores": True, "training.steps": 60, "training.lr": 0.01}
    run = graphbench.train("mine/bare", "deepsets", overrides=changes, output=own / "run", progress=False)
    assert run.scores["test"].primary > 0.95 * max(v["mrr"] for v in made.card.floor["test"].values()) > 0.3
    with pytest.raises(ConfigError, match="the task asks for no links"):
        graphbench.train("mst_easy", "gin_small", overrides={"model.pair_scores": True}, output=own / "no", limit=10)


def test_predictions_go_to_a_file_and_back(groups, own):
    task = task_of(groups.card)
    batches = list(groups.test.batches(3))
    scores = [torch.randn(batch.link.numel()) for batch in batches]
    path = task.write_predictions(own / "test", [{"link": part} for part in scores])
    read = [rows["link"] for _, rows in task.read_predictions(path, groups.test)]
    np.testing.assert_array_equal(np.concatenate(read), torch.cat(scores).numpy())
    task.write_predictions(own / "short", [{"link": scores[0]}])
    with pytest.raises(EvaluationError, match="candidate pairs"):
        list(task.read_predictions(own / "short.npz", groups.test))
    score = task.score_file(path, groups.test)["test"]
    whole = task.evaluator().evaluate(list(groups.test), torch.cat(scores))
    assert score.to_dict() == pytest.approx(whole.to_dict())


def test_predictions_become_a_record_with_intervals_over_queries(groups, own):
    evaluator = graphbench.Evaluator("mine/blocks")
    evaluator.draw_replicates()
    for batch in groups.test.batches(2):
        evaluator.update(batch, torch.rand(batch.link.numel()))
    score = evaluator.compute()
    queries = sum(int(batch.link.sum()) for batch in groups.test.batches(2))
    assert (score.graphs, score.items_scored, score.resampled) == (6, queries, queries) and len(score.replicates) > 99
    record = graphbench.RunRecord.from_scores({"test": groups.test}, {"test": score}, model="own_model")
    assert record.graphs_scored["test"] == 6


def test_a_transform_keeps_the_nodes_of_the_pairs(groups):
    groups.train.transform = T.RemoveIsolatedNodes()
    assert next(iter(groups.train.batches(1))).pair_index.max() < 40
    groups.train.transform = lambda data: data.subgraph(torch.arange(20))
    with pytest.raises(GraphBenchError, match="keeps the nodes"):
        next(iter(groups.train.batches(4)))


def test_cards_without_links_and_models_without_pairs_are_refused(groups):
    card = groups.card
    with pytest.raises(CardError, match="needs the section links"):
        task_of(card.model_copy(update={"links": None}))
    with pytest.raises(CardError, match="pairs have masks that are outputs alone"):
        card.with_features(graphbench.catalog.features.parse_features({"a": ["input", "pair", "mask"]}))
    with pytest.raises(ConfigError, match="queries"):
        task_of(card, {"queries": 0})

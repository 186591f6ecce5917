"""The interface of ogb: a script of its users, its own evaluators as a second opinion, the attributes of its class."""

import inspect

import numpy as np
import pytest
import torch

from graphbench.core.errors import ArgumentError, EvaluationError
from graphbench.interop import ogb

SCRIPT = """
import torch
from torch.nn import BCEWithLogitsLoss, L1Loss, Linear
from torch_geometric.loader import DataLoader
from torch_geometric.nn import global_add_pool

from ogb.graphproppred import Evaluator, PygGraphPropPredDataset

dataset = PygGraphPropPredDataset(name=NAME, root=ROOT)
split_idx = dataset.get_idx_split()
evaluator = Evaluator(NAME)
train_loader = DataLoader(dataset[split_idx["train"]], batch_size=8, shuffle=True)
valid_loader = DataLoader(dataset[split_idx["valid"]], batch_size=8, shuffle=False)
model = Linear(dataset.num_edge_features, dataset.num_tasks)
loss_of = BCEWithLogitsLoss() if "classification" in dataset.task_type else L1Loss()


def predict(batch):
    return global_add_pool(model(batch.edge_attr), batch.batch[batch.edge_index[0]], size=batch.num_graphs)


optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for batch in train_loader:
    pred = predict(batch)
    optimizer.zero_grad()
    loss_of(pred.to(torch.float32), batch.y.to(torch.float32)).backward()
    optimizer.step()
y_true, y_pred = [], []
for batch in valid_loader:
    with torch.no_grad():
        y_pred.append(predict(batch).cpu())
    y_true.append(batch.y.view(-1, dataset.num_tasks).cpu())
input_dict = {"y_true": torch.cat(y_true).numpy(), "y_pred": torch.cat(y_pred).numpy()}
result = evaluator.eval(input_dict)[dataset.eval_metric]
"""


def test_a_script_of_ogb_runs_with_one_changed_import(small, monkeypatch):
    script = SCRIPT.replace("from ogb.graphproppred import", "from graphbench.interop.ogb import")
    root = str(small.root)
    small("algoreas/flow_easy")
    monkeypatch.setattr(ogb, "Loader", limited(ogb.Loader))
    names = {"NAME": "algoreas/flow_easy", "ROOT": root}
    torch.manual_seed(0)
    exec(script, names)
    given = names["input_dict"]
    assert names["result"] == pytest.approx(np.abs(given["y_true"] - given["y_pred"]).mean(), rel=1e-6)
    assert given["y_true"].shape == (12, 1)


def limited(loader):
    return lambda *arguments, **options: loader(*arguments, limit=12, workers=1, **options)


def test_all_splits_are_one_dataset(small):
    dataset = ogb.PygGraphPropPredDataset("clutrr/gen_23", root=small.root, limit=12, workers=1)
    splits, index = small("clutrr/gen_23"), dataset.get_idx_split()
    assert list(index)[:3] == ["train", "valid", "test"] and set(index) - {"valid"} == set(splits) - {"val"}
    assert len(dataset) == sum(len(splits[name]) for name in splits)
    assert torch.cat(list(index.values())).tolist() == list(range(len(dataset)))
    for name, numbers in index.items():
        own = splits[{"valid": "val"}.get(name, name)]
        for number, graph in ((0, own[0]), (len(own) - 1, own[len(own) - 1])):
            found = dataset[int(numbers[number])]
            assert torch.equal(found.edge_index, graph.edge_index)
            assert found.y.tolist() == [graph.y.tolist()] and found.y.dtype == torch.long
    assert (dataset.task_type, dataset.num_tasks, dataset.num_classes) == ("multiclass classification", 1, 22)
    assert dataset.eval_metric == "accuracy" and dataset.level == "graph"


def test_attributes_of_other_kinds_of_targets(small):
    both = ogb.PygGraphPropPredDataset("circuits/converters_5", root=small.root, limit=12, workers=1)
    assert (both.task_type, both.num_tasks, both.eval_metric, both.num_classes) == ("regression", 2, "rse", -1)
    assert both[0].y.shape == (1, 2) and both[0].y.dtype == torch.float32
    tree = ogb.Evaluator("mst_easy")
    assert "num_edges" in tree.expected_input_format and "'f1': f1" in tree.expected_output_format
    with pytest.raises(ArgumentError, match=r"co/rb_small:mis \(task solve\)"):
        ogb.Evaluator("co/rb_small:mis")


def test_logits_of_masks_and_several_outputs():
    true = np.array([[1], [0], [1], [0]])
    logits = np.array([[0.3], [-2.0], [-0.1], [0.2]], np.float32)
    score = ogb.Evaluator("mst_easy").eval({"y_true": true, "y_pred": torch.from_numpy(logits)})
    assert next(iter(score)) == "f1" and score["f1"] == 0.5 and score["accuracy"] == 0.5
    true, predicted = np.array([[1.0, 5.0], [3.0, 6.0], [5.0, 4.0]]), np.array([[1.0, 5.5], [4.0, 6.0], [5.0, 4.0]])
    score = ogb.Evaluator("circuits/converters_5").eval({"y_true": true, "y_pred": predicted})
    errors = ((true - predicted) ** 2).sum(0) / ((true - true.mean(0)) ** 2).sum(0)
    assert score["rse"] == pytest.approx(errors.mean())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"y_true": np.ones((3, 1))}, "'y_pred' is missing"),
        ({"y_true": np.ones(3), "y_pred": np.ones(3)}, r"y_true has shape \(3,\)"),
        ({"y_true": [1.0], "y_pred": [1.0]}, "y_true has list"),
        ({"y_true": np.ones((3, 2)), "y_pred": np.ones((3, 2))}, "y_true has 2 columns"),
        ({"y_true": np.ones((3, 1)), "y_pred": np.full((3, 1), np.nan)}, "y_pred holds nan"),
    ],
)
def test_wrong_input_is_refused(given, message):
    with pytest.raises(EvaluationError, match=message):
        ogb.Evaluator("flow_easy").eval(given)


def test_the_interface_is_that_of_the_real_package():
    theirs = pytest.importorskip("ogb.graphproppred", reason="pip install ogb")
    for kind, ours in (
        (theirs.Evaluator, ogb.Evaluator),
        (theirs.PygGraphPropPredDataset, ogb.PygGraphPropPredDataset),
    ):
        inherited = {"raw_file_names", "processed_file_names", "download", "process", "get"}
        public = {name for name in vars(kind) if not name.startswith("_")} - inherited
        assert public and all(hasattr(ours, name) for name in public), public
        for name in ("eval", "get_idx_split"):
            if name in public:
                assert inspect.signature(getattr(ours, name)).parameters.keys() == (
                    inspect.signature(getattr(kind, name)).parameters.keys()
                )
        order = list(inspect.signature(kind).parameters)
        assert [n for n in inspect.signature(ours).parameters if n in order] == [n for n in order if n != "meta_dict"]


def test_the_scores_are_those_of_the_real_package():
    theirs = pytest.importorskip("ogb.graphproppred", reason="pip install ogb")
    rng = np.random.default_rng(0)
    true, predicted = rng.normal(size=(50, 1)), rng.normal(size=(50, 1))
    mine = ogb.Evaluator("sat/small:kissat")
    real = theirs.Evaluator("ogbg-molesol")  # one task, root mean squared error
    given = {"y_true": true, "y_pred": predicted}
    assert (mine.eval_metric, mine.num_tasks) == (real.eval_metric, real.num_tasks) == ("rmse", 1)
    assert mine.eval(given)["rmse"] == pytest.approx(real.eval(given)["rmse"], rel=1e-12)
    classes = {"y_true": rng.integers(0, 22, (80, 1)), "y_pred": rng.integers(0, 22, (80, 1))}
    classes["y_pred"][:40] = classes["y_true"][:40]
    accuracy = theirs.Evaluator("ogbg-ppa").eval(classes)["acc"]
    assert ogb.Evaluator("clutrr/gen_23").eval(classes)["accuracy"] == pytest.approx(accuracy)

"""The data module and the metric inside a real ``Trainer``."""

import numpy as np
import pytest
import torch

import graphbench
from graphbench.core.errors import ArgumentError

lightning = pytest.importorskip("lightning.pytorch", reason="pip install 'graphbench[lightning]'")
pytest.importorskip("torchmetrics", reason="pip install 'graphbench[metrics]'")

from graphbench.interop import DataModule, EvaluatorMetric  # noqa: E402 (needs both)


class EdgeClassifier(lightning.LightningModule):
    """A logistic regression on the weights of edges, which keeps what it has seen."""

    def __init__(self, name):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.metric = EvaluatorMetric(name, scores="logit")
        self.primary = EvaluatorMetric(name, scores="logit", only="primary")
        self.seen, self.true, self.predicted = [], [], []

    def forward(self, batch):
        return self.layer(batch.edge_attr)[:, 0]

    def training_step(self, batch, index):
        self.seen.append((self.current_epoch, batch.weight.clone()))
        loss = torch.nn.functional.binary_cross_entropy_with_logits(self(batch), batch.y.float())
        self.log("loss", loss, batch_size=batch.num_graphs)
        return loss

    def validation_step(self, batch, index, dataloader_idx=0):
        logits = self(batch)
        self.metric.update(batch, logits)
        self.primary.update(batch, logits)
        self.log("f1", self.primary, batch_size=batch.num_graphs)
        self.true.append(batch.y.numpy())
        self.predicted.append(logits.detach().numpy() >= 0)

    test_step = validation_step

    def on_validation_epoch_end(self):
        self.log_dict({f"val_{name}": value for name, value in self.metric.compute().items()})
        self.metric.reset()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.1)


def trainer(tmp_path, **options):
    return lightning.Trainer(
        accelerator="cpu", devices=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, default_root_dir=tmp_path, num_sanity_val_steps=0, **options,
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore")
def test_a_trainer_fits_and_scores(small, tmp_path):
    from sklearn.metrics import f1_score

    splits = small("algoreas/mst_easy")
    model, data = EdgeClassifier("mst_easy"), DataModule(splits, batch_size=16, seed=3)
    fitted = trainer(tmp_path, max_epochs=2)
    fitted.fit(model, datamodule=data)
    assert fitted.global_step == 4  # 40 graphs, the last 8 left out, twice
    first, second = (torch.cat([w for epoch, w in model.seen if epoch == e]) for e in (0, 1))
    expected = [
        torch.cat([b.weight for b in splits.train.batches(16, True, 3, epoch=e, drop_last=True)]) for e in (0, 1)
    ]
    assert torch.equal(first, expected[0]) and torch.equal(second, expected[1])
    half = len(model.true) // 2
    truth, predicted = (np.concatenate(values[half:]) for values in (model.true, model.predicted))
    assert fitted.callback_metrics["val_f1"] == pytest.approx(f1_score(truth, predicted))
    assert fitted.callback_metrics["f1"] == pytest.approx(f1_score(truth, predicted))


@pytest.mark.filterwarnings("ignore")
def test_a_name_is_enough_and_several_splits_are_tested(small, tmp_path):
    small("algoreas/mst_easy")
    data = DataModule("mst_easy", 16, test=("test", "n192"), root=small.root, limit=4, workers=1)
    model = EdgeClassifier("mst_easy")
    fitted = trainer(tmp_path, max_steps=2, max_epochs=9)
    fitted.fit(model, datamodule=data)
    assert fitted.global_step == 2
    found = fitted.test(model, datamodule=data, verbose=False)
    assert len(found) == 2 and len(data.test_dataloader()) == 2
    assert len(data.splits.ood["n192"]) == 4
    single = DataModule("mst_easy", 3, eval_batch_size=2, root=small.root, limit=4)
    assert (len(single.train_dataloader()), len(single.val_dataloader()), len(single.test_dataloader())) == (1, 2, 2)


def test_processes_share_the_graphs_of_every_batch(small):
    splits, shares = small("algoreas/mst_easy"), []
    for rank in (0, 1):
        data = DataModule(splits, batch_size=4)
        data.trainer = type("Trainer", (), {"global_rank": rank, "world_size": 2, "current_epoch": 5})()
        shares.append(list(data.train_dataloader()))
    assert len(shares[0]) == len(shares[1]) == 5 and {batch.num_graphs for batch in shares[0] + shares[1]} == {4}
    together = sorted(w for share in shares for batch in share for w in batch.weight.tolist())
    assert together == sorted(splits.train.weight.tolist())


def test_wrong_arguments_are_refused(small):
    with pytest.raises(ArgumentError, match="batch_size"):
        DataModule(small("algoreas/mst_easy"), 0)
    with pytest.raises(ArgumentError, match="limit belong to Loader"):
        DataModule(small("algoreas/mst_easy"), limit=3)
    assert graphbench.card("mst_easy").id == "algoreas/mst_easy"

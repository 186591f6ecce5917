"""Models with the weights of dm-clrs 2.0.3: the same raw outputs, hints, predictions, losses and gradients.

``golden/reference.safetensors.gz`` holds, for each case ``algorithm-processor-hint_repred_mode``, random weights under
this package's names, a batch of three samples of length 5, and what dm-clrs computes from them in float32:
``raw_output``, ``raw_hint`` (steps, samples, ...), ``predicted`` (after its postprocessing, permutations as pointers),
``loss`` (without Gumbel noise) and, in some cases, ``gradient`` of the loss. The hidden width is 4, with 2 heads and 4
triplet features.
"""

import gzip
from pathlib import Path

import pytest
import torch
from safetensors.torch import load

from graphbench import card
from graphbench.catalog.features import Kind, Stage
from graphbench.data.batches.trajectory_batch import TrajectoryBatch
from graphbench.models.base import TaskFeatures
from graphbench.models.trajectory.config import TrajectoryModelConfig
from graphbench.models.trajectory.model import TrajectoryModel

GOLDEN = load(gzip.decompress((Path(__file__).parent / "golden" / "reference.safetensors.gz").read_bytes()))
CASES = sorted({key.split("/")[0] for key in GOLDEN})


def part(case, name):
    prefix = f"{case}/{name}/"
    return {key.removeprefix(prefix): value for key, value in GOLDEN.items() if key.startswith(prefix)}


def batch_of(case):
    inputs, lengths = part(case, "input"), GOLDEN[f"{case}/lengths"].long()
    return TrajectoryBatch(inputs, part(case, "hint"), part(case, "output"), lengths, inputs["pos"].shape[1])


def model_of(case):
    algorithm, processor, mode = case.split("-")
    config = TrajectoryModelConfig(processor=processor, hidden=4, heads=2, nb_triplet_features=4, hint_repred_mode=mode)
    features = tuple(f for f in card(f"clrs/{algorithm}").features if f.stage is not Stage.META)
    model = TrajectoryModel(config, {"a": TaskFeatures(features)})
    model.load_state_dict(part(case, "weight"))
    return model.eval()


def test_there_is_a_case_for_every_processor_of_the_reference():
    processors = {case.split("-")[1] for case in CASES}
    assert processors == {"deepsets", "gat", "gatv2", "mpnn", "gmpnn", "pgn", "triplet_mpnn", "triplet_gmpnn"}


def moved_by_rounding(case, found):
    """Return feature -> the largest change of its raw values when every weight changes by a rounding error.

    Both sides compute in float32, and in which order sums are taken depends on the processor.
    """
    moved, generator = {}, torch.Generator().manual_seed(0)
    for _ in range(8):
        model = model_of(case)
        with torch.no_grad():
            for weights in model.parameters():
                weights.mul_(
                    1 + torch.finfo(weights.dtype).eps * (2 * torch.rand(weights.shape, generator=generator) - 1)
                )
            other = model(batch_of(case), "a")
        for name, values in [*found.outputs.items(), *found.hints.items()]:
            change = ({**other.outputs, **other.hints}[name] - values).abs()
            change = change[change.isfinite()]
            moved[name] = max(moved.get(name, 0.0), float(change.max()) if len(change) else 0.0)
    assert max(moved.values()) < 1e-3
    return moved


@pytest.mark.parametrize("case", CASES)
@pytest.mark.thorough
def test_raw_values_are_the_reference_s(case):
    batch, model = batch_of(case), model_of(case)
    with torch.no_grad():
        found = model(batch, "a")
    rounding = moved_by_rounding(case, found)
    outputs, hints = part(case, "raw_output"), part(case, "raw_hint")
    assert set(found.outputs) == set(outputs) and set(found.hints) == set(hints)
    for name, expected in outputs.items():
        torch.testing.assert_close(found.outputs[name], expected, rtol=1e-4, atol=1e-4 + 4 * rounding[name])
    for name, expected in hints.items():
        running = batch.lengths > torch.arange(len(expected)).unsqueeze(1) + 1
        torch.testing.assert_close(
            found.hints[name][running], expected[running], rtol=1e-4, atol=1e-4 + 4 * rounding[name]
        )


@pytest.mark.parametrize("case", CASES)
def test_predictions_are_the_reference_s(case):
    batch, model = batch_of(case), model_of(case)
    with torch.no_grad():
        found = model.predict(batch, "a")
    for feature in card(f"clrs/{case.split('-')[0]}").outputs:
        value, expected = found[feature.name], GOLDEN[f"{case}/predicted/{feature.name}"]
        value = (value > 0.5) if feature.kind is Kind.MASK else value
        assert torch.equal(value.long(), expected.long())


@pytest.mark.parametrize("case", CASES)
def test_losses_are_the_reference_s(case):
    with torch.no_grad():
        found = model_of(case).loss(batch_of(case), "a")
    torch.testing.assert_close(found, GOLDEN[f"{case}/loss"].squeeze(), rtol=1e-4, atol=0)


@pytest.mark.parametrize("case", [case for case in CASES if part(case, "gradient")])
def test_gradients_are_the_reference_s(case):
    model = model_of(case).train()
    model.loss(batch_of(case), "a").backward()
    expected = part(case, "gradient")
    assert set(expected) == {name for name, _ in model.named_parameters()}
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[name], rtol=1e-3, atol=1e-4)

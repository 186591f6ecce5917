"""Train the text baseline: a small transformer on prompts and references, from scratch."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from torch import Tensor, nn

from graphbench.data.store import write_json
from graphbench.domains.clrs_text import Prompt
from graphbench.errors import CheckpointError, ConfigError
from graphbench.models.language import PAD, TextModel, TextModelConfig, encode
from graphbench.progress import Progress, progress_bar
from graphbench.training.checkpoint import (
    load_model,
    load_tensors,
    require_fingerprint,
    restore_training,
    save_tensors,
    training_tensors,
)
from graphbench.training.config import TrainingConfig
from graphbench.training.distributed import choose_device
from graphbench.training.evaluate import autocast
from graphbench.training.failures import not_finite
from graphbench.training.interrupts import StopRequest, deferred_signals
from graphbench.training.loop import chosen_precision, make_optimizer
from graphbench.training.schedule import Schedule, learning_rate_factor

logger = logging.getLogger(__name__)

CONFIG = "config.json"
CHECKPOINT = "checkpoint.safetensors"
_WINDOW = 64  # batches among which texts are sorted by length
_NOT_SCORED = -100
_LOSSES_PER_RUN = 200


class TextTrainingConfig(BaseModel):
    """How a text baseline is trained.

    Attributes:
        steps: Budget in optimizer updates.
        batch_size: Prompts per update.
        lr: Peak learning rate of AdamW.
        weight_decay: Decoupled weight decay; applies to tensors of two or more dimensions only.
        warmup: Updates of linear warm-up.
        schedule: Shape of the learning rate after the warm-up: cosine, linear (both to 0) or constant.
        gradient_clip: Largest allowed norm of the whole gradient; None for no clipping.
        precision: ``fp32``, ``bf16`` (autocast), or ``auto``: bf16 on CUDA devices that support it, else fp32.
        seed: Seed of weights, data order, positions and dropout.
        checkpoint_every: Updates between two checkpoints.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    steps: int = Field(10_000, gt=0)
    batch_size: int = Field(32, gt=0)
    lr: float = Field(1e-3, gt=0)
    weight_decay: float = Field(0.1, ge=0)
    warmup: int = Field(200, ge=0)
    schedule: Schedule = "cosine"
    gradient_clip: float | None = Field(1.0, gt=0)
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    seed: int = Field(0, ge=0, lt=2**32)
    checkpoint_every: int = Field(1000, gt=0)

    @model_validator(mode="after")
    def _check(self) -> TextTrainingConfig:
        if self.warmup >= self.steps:
            raise ValueError(f"warmup {self.warmup} leaves nothing of {self.steps} steps; lower it")
        return self


@dataclass(frozen=True)
class TextRunResult:
    """What a finished run returns.

    Attributes:
        model: The model, in evaluation mode.
        losses: Points (step, mean loss since the point before), in nats per character of the references.
        path: The run's folder.
    """

    model: TextModel
    losses: list[tuple[int, float]]
    path: Path


@dataclass(frozen=True)
class Corpus:
    """Prompts with their references, as tokens.

    Attributes:
        tokens: uint8 [characters]: all texts, one after the other.
        ptr: int64 [S + 1]: text i is ``tokens[ptr[i]:ptr[i + 1]]``.
        prompts: int64 [S]: length of each text's prompt.
    """

    tokens: NDArray[np.uint8]
    ptr: NDArray[np.int64]
    prompts: NDArray[np.int64]

    @classmethod
    def of(cls, prompts: Iterable[Prompt], context: int) -> Corpus:
        """Return the corpus of all prompts that fit into a context with their references.

        Raises:
            ConfigError: If none fits.
        """
        texts, lengths, left_out = [], [], 0
        for prompt in prompts:
            if len(prompt.prompt) + len(prompt.reference) > context:
                left_out += 1
                continue
            texts.append(encode(prompt.prompt + prompt.reference))
            lengths.append(len(prompt.prompt))
        if not texts:
            raise ConfigError(f"no prompt of {left_out} fits into context={context}; raise it or use smaller sizes")
        if left_out:
            logger.warning(
                "%d of %d prompts are longer than context=%d and left out", left_out, left_out + len(texts), context
            )
        ptr = np.array([0, *accumulate(map(len, texts))])
        return cls(np.concatenate(texts), ptr, np.array(lengths))

    def batches(self, size: int, seed: int, epoch: int) -> list[NDArray[np.int64]]:
        """Return the batches of one epoch, which are a function of (seed, epoch): texts of similar length together."""
        random = np.random.default_rng([seed, epoch])
        order, lengths = random.permutation(len(self.prompts)), np.diff(self.ptr)
        windows = [order[start : start + _WINDOW * size] for start in range(0, len(order), _WINDOW * size)]
        by_length = np.concatenate([window[np.argsort(lengths[window], kind="stable")] for window in windows])
        batches = [by_length[start : start + size] for start in range(0, len(by_length), size)]
        return [batches[i] for i in random.permutation(len(batches))]

    def batch(self, chosen: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Return tokens and targets int64 [B, T]: each token's next one, or -100 where it is not of a reference."""
        starts, lengths = self.ptr[chosen], self.ptr[chosen + 1] - self.ptr[chosen]
        places = np.arange(lengths.max())
        inside = places < lengths[:, None]
        tokens = np.full(inside.shape, PAD, np.int64)
        tokens[inside] = self.tokens[(starts[:, None] + places)[inside]]
        scored = inside & (places >= self.prompts[chosen, None])
        targets = np.where(scored, tokens, _NOT_SCORED)
        return torch.from_numpy(tokens[:, :-1]), torch.from_numpy(targets[:, 1:])

    @property
    def content_hash(self) -> str:
        """Hash of all texts."""
        digest = hashlib.sha256()
        for array in (self.tokens, self.ptr, self.prompts):
            digest.update(array.tobytes())
        return digest.hexdigest()[:16]


def train_text_baseline(
    prompts: Iterable[Prompt],
    output: str | Path,
    model: TextModelConfig | None = None,
    training: TextTrainingConfig | None = None,
    *,
    device: str = "auto",
    resume: bool = True,
    progress: bool | None = None,
) -> TextRunResult:
    """Train a small transformer to continue prompts with their references.

    The loss is the cross-entropy of the references' characters alone. On a CPU a run that was interrupted and started
    again ends with the same bits as one that was not. The output folder holds ``config.json`` and
    ``checkpoint.safetensors``.

    Args:
        prompts: What to learn, e.g. ``paper_prompts("train", ["minimum"])``. All that fit the context are held in
            memory, one byte per character.
        output: Folder of the run.
        model: The architecture; the default one if None.
        training: How to train; the default way if None.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:<number>``.
        resume: Continue from the folder's checkpoint; False starts anew and overwrites it.
        progress: Show a progress bar; None shows it in a terminal.

    Raises:
        ConfigError: If no prompt fits into the context, or there is no such device.
        UnreadableText: If a prompt has a character that is no token.
        CheckpointError: If the folder's checkpoint is damaged or belongs to another run.
        TrainingError: If the loss is no longer finite.
        KeyboardInterrupt: On Ctrl-C, after a checkpoint was written.
    """
    architecture, settings = model or TextModelConfig(), training or TextTrainingConfig()
    target, corpus = choose_device(device), Corpus.of(prompts, architecture.context)
    folder = Path(output)
    with torch.random.fork_rng([target.index or 0] if target.type == "cuda" else []):
        torch.manual_seed(settings.seed)
        run = _Run(TextModel(architecture).to(target), corpus, settings, folder)
        if resume:
            run.resume()
        write_json(folder / CONFIG, {"model": architecture.model_dump(), "training": settings.model_dump()})
        with progress_bar(settings.steps, "text baseline", "step", progress) as bar, deferred_signals() as stop:
            run.train(bar, stop)
    return TextRunResult(run.model.eval(), run.losses, folder)


def load_text_baseline(folder: str | Path, device: str = "auto") -> TextModel:
    """Return the model of a run's folder, in evaluation mode.

    Raises:
        CheckpointError: If the folder has no run, or a damaged one.
    """
    path = Path(folder) / CONFIG
    try:
        config = TextModelConfig.model_validate(json.loads(path.read_text(encoding="utf-8"))["model"])
    except FileNotFoundError:
        raise CheckpointError(f"{path.parent} is no run folder: it has no {CONFIG}; train the model first") from None
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise CheckpointError(f"{path} is damaged ({error}); train the model anew") from error
    model = TextModel(config)
    load_model(model, load_tensors(path.parent / CHECKPOINT)[0])
    return model.to(choose_device(device)).eval()


class _Run:
    """One run in memory."""

    def __init__(self, model: TextModel, corpus: Corpus, settings: TextTrainingConfig, folder: Path) -> None:
        self.model, self.corpus, self.settings, self.folder = model, corpus, settings, folder
        self.device = model.embedding.weight.device
        self.precision = chosen_precision(settings.precision, self.device)
        common = TrainingConfig(lr=settings.lr, weight_decay=settings.weight_decay)
        self.optimizer = make_optimizer(model, common)
        self.step = self.saved_step = 0
        self.losses: list[tuple[int, float]] = []
        self._pending: list[Tensor] = []

    @property
    def fingerprint(self) -> str:
        """What a checkpoint must share with this run."""
        training = self.settings.model_dump(mode="json", exclude={"checkpoint_every"})
        content = {"model": self.model.config.model_dump(), "training": training, "data": self.corpus.content_hash}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    def resume(self) -> None:
        """Continue from the folder's checkpoint if there is one."""
        path = self.folder / CHECKPOINT
        if not path.is_file():
            return
        tensors, facts = load_tensors(path)
        require_fingerprint(facts, self.fingerprint, path)
        restore_training(self.model, self.optimizer, tensors)
        self.step = self.saved_step = int(facts["step"])
        self.losses = [(int(step), float(loss)) for step, loss in facts["losses"]]
        self._pending = [torch.tensor(loss) for loss in facts["pending"]]

    def train(self, bar: Progress, stop: StopRequest) -> None:
        """Train until the budget is spent or a stop is requested."""
        settings = self.settings
        bar.update(self.step)
        batches = self._batches()
        self.model.train()
        while self.step < settings.steps:
            self._pending.append(self._update(*next(batches)))
            self.step += 1
            bar.update(1)
            last = self.step == settings.steps
            if last or self.step % max(1, settings.steps // _LOSSES_PER_RUN) == 0:
                self._log(bar)
            if last or stop.received or self.step % settings.checkpoint_every == 0:
                self._save()
            if stop.received:
                stop.end()

    def _batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the batches from the current step on, for ever."""
        settings = self.settings
        per_epoch = -(-len(self.corpus.prompts) // settings.batch_size)
        epoch, start = divmod(self.step, per_epoch)
        while True:
            for chosen in self.corpus.batches(settings.batch_size, settings.seed, epoch)[start:]:
                yield self.corpus.batch(chosen)
            epoch, start = epoch + 1, 0

    def _update(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """Do one optimizer update and return the loss."""
        settings, step = self.settings, self.step
        factor = learning_rate_factor(step, settings.steps, settings.warmup, settings.schedule)
        for group in self.optimizer.param_groups:
            group["lr"] = settings.lr * factor
        seed = int(np.random.SeedSequence([settings.seed, step]).generate_state(1, np.uint64)[0])
        torch.manual_seed(seed)  # of dropout and positions, so that a resumed run draws the same
        positions = self.model.training_positions(*tokens.shape).to(self.device)
        with autocast(self.device, self.precision):
            logits = self.model(tokens.to(self.device), positions)
        loss = F.cross_entropy(
            logits.float().flatten(0, 1), targets.to(self.device).flatten(), ignore_index=_NOT_SCORED
        )
        loss.backward()  # type: ignore[no-untyped-call]
        if settings.gradient_clip is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), settings.gradient_clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def _log(self, bar: Progress) -> None:
        loss = float(torch.stack([part.to("cpu") for part in self._pending]).mean())
        self._require_finite(loss)
        self.losses.append((self.step, loss))
        self._pending = []
        bar.update(0, loss=loss)

    def _save(self) -> None:
        pending = [float(loss) for loss in self._pending]
        self._require_finite(sum(pending))
        facts: dict[str, Any] = {"step": self.step, "losses": self.losses, "pending": pending}
        tensors = training_tensors(self.model, self.optimizer)
        save_tensors(self.folder / CHECKPOINT, tensors, {"fingerprint": self.fingerprint, **facts})
        self.saved_step = self.step

    def _require_finite(self, loss: float) -> None:
        if not np.isfinite(loss):
            raise not_finite("training loss", loss, self.step, self.saved_step or None)

"""Causal language models of ``transformers`` as completers: batched, greedy, on any device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from graphbench.core.errors import EvaluationError, MissingDependency
from graphbench.data.arrays.answers import STOP

_STOP_TOKENS = 8  # tokens at the end of an answer in which the stop text is looked for after each step


class CausalModel:
    """A causal language model and its tokenizer.

    Args:
        model: A ``transformers`` model with ``generate``.
        tokenizer: The tokenizer of the model.
        name: Model and settings in words, for the file of answers; None for the model's name or path.
        stop: Text at which an answer ends; None lets the model end where it wants.
    """

    def __init__(self, model: Any, tokenizer: Any, name: str | None = None, stop: str | None = STOP) -> None:
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.name = name if name is not None else str(model.config.name_or_path or type(model).__name__)
        self.stop = stop
        self._pad = next(id_ for id_ in (tokenizer.pad_token_id, tokenizer.eos_token_id, 0) if id_ is not None)

    @classmethod
    def from_pretrained(
        cls, name: str, device: str | torch.device = "cpu", stop: str | None = STOP, **options: Any
    ) -> CausalModel:
        """Load a model by its name on the Hugging Face Hub, or from a folder.

        Args:
            name: Name or folder.
            device: Device that computes.
            stop: Text at which an answer ends.
            **options: Arguments of ``transformers``, e.g. ``dtype="bfloat16"`` or ``revision="main"``.

        Raises:
            MissingDependency: If ``transformers`` is not installed.
            EvaluationError: If there is no such model.
        """
        library = _transformers()
        try:
            model = library.AutoModelForCausalLM.from_pretrained(name, **options)
            tokenizer = library.AutoTokenizer.from_pretrained(name, revision=options.get("revision", "main"))
        except (OSError, ValueError) as error:
            raise EvaluationError(f"cannot load the model {name!r}: {error}") from error
        return cls(model.to(device), tokenizer, name, stop)

    @property
    def context(self) -> int | None:
        """Maximal number of tokens of the model's context; None if its configuration does not state one."""
        config = self.model.config
        length = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
        return int(length) if length else None

    def __call__(self, texts: Sequence[str], characters: int) -> list[str]:
        """Return the model's continuation of each text.

        Args:
            texts: The prompts.
            characters: Longest output worth waiting for; a token is at least one character.

        Raises:
            MissingDependency: If ``transformers`` is not installed.
            EvaluationError: If a text does not fit into the model's context.
        """
        library = _transformers()
        ids, mask = self._tokens(texts)
        room = characters if self.context is None else min(characters, self.context - ids.shape[1])
        if room <= 0:
            raise EvaluationError(
                f"a text has {ids.shape[1]} tokens and the context of {self.name} has {self.context}; "
                "leave out the larger sizes or use fewer examples"
            )
        settings = library.GenerationConfig(
            do_sample=False, num_beams=1, max_new_tokens=room, pad_token_id=self._pad, eos_token_id=self._ends()
        )
        criteria = library.StoppingCriteriaList([self._stopping(ids.shape[1], self.stop)] if self.stop else [])
        with torch.inference_mode():
            tokens = self.model.generate(
                input_ids=ids, attention_mask=mask, generation_config=settings, stopping_criteria=criteria
            )
        outputs = self._text(tokens[:, ids.shape[1] :])
        return [output.split(self.stop)[0] if self.stop else output for output in outputs]

    def _tokens(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Return token ids and mask, padded on the left: all texts end at the last column."""
        rows = self.tokenizer(list(texts))["input_ids"]
        longest = max(len(row) for row in rows)
        ids = torch.tensor([[self._pad] * (longest - len(row)) + row for row in rows])
        mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
        return ids.to(self.model.device), mask.to(self.model.device)

    def _ends(self) -> Any:
        end_token = getattr(self.model.generation_config, "eos_token_id", None)
        return end_token if end_token is not None else self.tokenizer.eos_token_id

    def _text(self, ids: Tensor) -> list[str]:
        decoded: list[str] = self.tokenizer.batch_decode(
            ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return decoded

    def _stopping(self, start: int, stop: str) -> Any:
        """Return a function that tells, after every step, which rows have written the stop text."""
        done: Tensor | None = None

        def ended(ids: Tensor, scores: Any, **_: Any) -> Tensor:
            nonlocal done
            tails = self._text(ids[:, max(start, ids.shape[1] - _STOP_TOKENS) :])
            now = torch.tensor([stop in tail for tail in tails], device=ids.device)
            done = now if done is None else done | now
            return done

        return ended


def _transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise MissingDependency(
            "language models need transformers; install it with: pip install 'graphbench[text]'"
        ) from error
    return transformers

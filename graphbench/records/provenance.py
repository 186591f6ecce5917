"""Where a recorded score is from: stated by a record, computed again here, or of weights that met a sealed draw.

A sealed draw is a draw of a dataset that nobody could know when the weights were fixed: its number follows from a
commitment to the weights, the configuration and the code, and from a text that was public only afterwards.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from graphbench.core.validation import StrictModel

Provenance = Literal["stated", "recomputed", "verified"]

PROVENANCES: dict[Provenance, str] = {
    "stated": "the score stands in a record, and nobody has computed it again",
    "recomputed": "the score was computed again here, from predictions, stored weights or a new training",
    "verified": "the weights were sealed, and then scored on a draw of the data that nobody could know before",
}
"""The sources of scores, the weakest first, each in a sentence."""

Source = Literal["predictions", "weights"]
"""What a score was computed from, by those who checked it."""

_DRAWS = 2**31 - 1

Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


def draw_of(commitment: str, beacon: str) -> int:
    """Return the number of the sealed draw: at least 1, and no other draw for another commitment or beacon.

    Args:
        commitment: The commitment to an entry, 64 hex digits.
        beacon: A public text that did not exist when the commitment was published.
    """
    digest = hashlib.sha256(f"graphbench sealed draw 1\n{commitment}\n{beacon}".encode()).digest()
    return 1 + int.from_bytes(digest[:8], "big") % _DRAWS


class EarlierSeal(StrictModel):
    """A sealed draw that an earlier entry of the same model, dataset and seed was scored on.

    Attributes:
        commitment: The commitment to the earlier entry.
        beacon: The public text.
        score: The primary metric on its sealed draw.
    """

    commitment: Hash
    beacon: str
    score: float


class Verification(StrictModel):
    """The score of sealed weights on a sealed draw.

    Attributes:
        commitment: The commitment to the entry, from its ``seal.json``.
        beacon: The public text that decided the draw together with the commitment.
        sealed_at: When the entry was sealed, as its author states (UTC).
        verified_at: When the weights were scored on the sealed draw (UTC).
        split: The split that was drawn again.
        graphs: Number of graphs that were scored.
        metric: The primary metric.
        score: Its value on the sealed draw.
        low: Lower end of its 95 % interval over the samples; None where the metric has no replicates.
        high: Upper end.
        data_hash: Content hash of the sealed draw.
        runs: ``package``: a model of this package, rebuilt from its weights; ``code``: the author's code.
        scrambled: Of the author's code, the value after the numbers of every tensor were shuffled; None if the code
            accepts no shuffled weights, and for models of the package.
        algorithm: Whether the weights of the author's code make no difference to its score, so that the entry is an
            algorithm and no trained model.
        earlier: Sealed draws of earlier entries under the same name, the oldest first.
        hardware: The machine that scored.
        graphbench_version: Version of the package.
    """

    commitment: Hash
    beacon: Annotated[str, Field(min_length=1, max_length=500)]
    sealed_at: datetime
    verified_at: datetime
    split: str
    graphs: int = Field(ge=1)
    metric: str
    score: float
    low: float | None = None
    high: float | None = None
    data_hash: str
    runs: Literal["package", "code"]
    scrambled: float | None = None
    algorithm: bool = False
    earlier: tuple[EarlierSeal, ...] = ()
    hardware: dict[str, str | int | float | None]
    graphbench_version: str

    @property
    def data_seed(self) -> int:
        """Number of the sealed draw."""
        return draw_of(self.commitment, self.beacon)

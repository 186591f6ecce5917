import gzip
import json
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[1] / "clrs" / "golden" / "text.jsonl.gz"


@pytest.fixture(scope="session")
def golden_lines():
    """Algorithm -> the reference's prompts, references and inputs."""
    found = {}
    with gzip.open(GOLDEN, "rt") as file:
        for text in file:
            line = json.loads(text)
            found.setdefault(line["algorithm"], []).append(line)
    return found

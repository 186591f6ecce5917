"""Checks of datasets: regenerate samples, and compare bytes, labels and statistics with the expected ones."""

from graphbench.verification.measuring import update_measured
from graphbench.verification.verify import Verification, check_card, verify

__all__ = ["Verification", "check_card", "update_measured", "verify"]

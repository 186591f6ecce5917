"""Checks of datasets: rebuild a sample, compare bytes, labels and statistics with what is expected."""

from graphbench.verification.verify import Verification, check_card, update_measured, verify

__all__ = ["Verification", "check_card", "update_measured", "verify"]

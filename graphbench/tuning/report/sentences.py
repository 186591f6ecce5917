"""Sentences on the result of a tuning run, for its pages, the command line and the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphbench.core.words import counted, duration
from graphbench.reports.tables import hardware_text, signed
from graphbench.training.fidelity import STEPS, Fidelity, recorded_fidelity
from graphbench.tuning.budgets import budgets_of
from graphbench.tuning.history import DEFAULT_ID, History
from graphbench.tuning.report.expected import below_floor_text, expected_of
from graphbench.tuning.report.importance import TRUSTED_R2, Importance
from graphbench.tuning.trial import Trial


def warnings_of(history: History) -> list[str]:
    """Return the warnings on the result: a largest budget not reached, a score no better than a trivial baseline."""
    warnings = (unreached_text(history.result), below_floor_text(history, expected_of(history)))
    return [warning for warning in warnings if warning]


def title_of(identity: Mapping[str, Any]) -> str:
    """Return the title of a run: the tuned model and its dataset, or the training method, in one line."""
    if identity.get("dataset") and identity.get("model"):
        return f"Tuning {identity['model']} on {identity['dataset']}"
    return f"Tuning {identity.get('training_method', '')}".strip()


def unreached_text(result: Mapping[str, Any]) -> str:
    """Return a warning if no successful trial reached the largest budget; else an empty text."""
    budgets = result.get("largest_budget") or {}
    if not 0 < budgets.get("reached", 0) < budgets.get("budget", 0):
        return ""
    largest = recorded_fidelity(result["what"]).text(budgets["budget"])
    return (
        f"largest budget reached: {budgets['reached']:,} of {largest}, after "
        f"{counted(len(result['trials']), 'trial')}; about {counted(budgets['trials_needed'], 'trial')} are needed"
    )


def search_text(identity: Mapping[str, Any]) -> str:
    """Return the search and its budgets in words."""
    names = {"smac": "SMAC with Hyperband", "hyperband": "Hyperband", "random": "random search"}
    method = str(identity.get("method", ""))
    text = names.get(method, method or "search")
    budgets = budgets_of(identity)
    if method == "random" or len(budgets) == 1:
        return f"{text}, {recorded_fidelity(identity).text(budgets[-1])} each"
    return f"{text}, budgets {budgets[0]:,} to {budgets[-1]:,}, eta {identity.get('eta')}"


def summary(history: History) -> list[str]:
    """Return the result and how it was obtained, in sentences."""
    identity, result, best = history.identity, history.result, history.incumbent
    if best is None:
        headline = f"No trial succeeded in {counted(len(history.trials), 'trial')}."
    else:
        score = history.measure.text(best.measured)
        at = history.fidelity.full_text(best.budget)
        headline = f"Best configuration: {score} at {at} (trial {best.number})."
    seconds: Mapping[str, Any] = result.get("seconds") or {}
    steps = sum(trial.steps for trial in history.trials)
    failed = f", {len(history.failures)} failed" if history.failures else ""
    wall = f" in {duration(seconds['wall'])}" if "wall" in seconds else ""
    done = f"{counted(len(history.trials), 'trial')}{failed}, {history.fidelity.full_text(steps)}{wall}"
    sentences = [
        headline,
        *(f"Warning: {warning}." for warning in warnings_of(history)),
        f"Found by {search_text(identity)}, seed {identity.get('seed')}: {done}.",
    ]
    if isinstance(result.get("hardware"), dict):
        sentences.append(f"Hardware: {hardware_text(result['hardware'])}.")
    if identity.get("data"):
        sentences.append(f"Data: {identity['dataset']}, {identity['data']}.")
    return sentences


def comparison_text(history: History, best: Trial) -> str:
    """Return a comparison of the incumbent with the default configuration, at the largest budget that both have."""
    incumbent_costs = {trial.budget: trial.measured for trial in history.successes if trial.config_id == best.config_id}
    incumbent_costs[best.budget] = best.measured
    default_costs = {trial.budget: trial.measured for trial in history.default_trials}
    shared = [budget for budget in default_costs if budget in incumbent_costs]
    lost = history.default_failures
    failed = (
        f"The default configuration failed at {history.fidelity.text(lost[-1].budget)}: {lost[-1].reason}"
        if lost
        else ""
    )
    if not shared:
        return failed or "The default configuration was not measured at a budget of the incumbent."
    budget, measure = max(shared), history.measure
    difference = signed(measure.score(incumbent_costs[budget]) - measure.score(default_costs[budget]))
    default_score = measure.text(default_costs[budget], named=False)
    scores = f"{measure.text(incumbent_costs[budget])}, the default {default_score} ({difference})"
    if default_costs[budget] == incumbent_costs[budget] and best.config_id == DEFAULT_ID:
        at = history.fidelity.text(best.budget)
        return f"The default configuration is the incumbent: {measure.text(best.measured)} at {at}."
    if budget == best.budget:
        return f"At {history.fidelity.text(budget)} the incumbent reaches {scores}."
    reached = (
        f"At {history.fidelity.text(best.budget)} the incumbent reaches {measure.text(best.measured, named=False)}."
    )
    if lost and lost[-1].budget > budget:
        return f"{failed.rstrip('.')}. At {history.fidelity.text(budget)} the incumbent had reached {scores}. {reached}"
    return (
        f"The default configuration was stopped at {history.fidelity.text(budget)}; there the incumbent had reached "
        f"{scores}. {reached}"
    )


def saved_text(history: History) -> str:
    """Return how many steps were saved by continuing promoted configurations from their checkpoints."""
    steps: Mapping[str, Any] = history.result.get("steps") or {}
    done, alone = steps.get("done"), steps.get("without_continuing")
    if not done or not alone or alone <= done:
        return ""
    return (
        f"Configurations that were promoted continued from their checkpoints: {history.fidelity.full_text(done)} "
        f"instead of {alone:,}, {1 - done / alone:.0%} saved."
    )


def importance_notes(importance: Importance, fidelity: Fidelity = STEPS) -> list[str]:
    """Return remarks on the importance of the hyperparameters, or why it was not computed."""
    if importance.refusal:
        return [f"Not computed: {importance.refusal}."]
    fitted_to = (
        f"{counted(importance.trials, 'successful trial')} of {counted(importance.configurations, 'configuration')}"
    )
    quality = "undefined" if importance.r2 is None else f"{importance.r2:.2f}"
    notes = [
        "Shares of the variance of the cost over the whole space at the largest budget (Sobol indices), as predicted "
        f"by a random forest that is fitted to {fitted_to}; {importance.at_budget} of the trials are at "
        f"{fidelity.text(importance.budget)}. Alone: explained by the parameter itself. With all "
        "interactions: the share that remains unexplained if the parameter is unknown.",
        f"Cross-validated R2 of the forest: {quality} (on configurations it was not fitted to, against the mean cost "
        "of their budget). Failed trials are left out.",
    ]
    if importance.r2 is None:
        notes.append("R2 is undefined, as costs of one budget do not differ: the order may mean nothing.")
    elif not importance.trusted:
        notes.append(f"R2 is below {TRUSTED_R2}: the forest explains too little for the order to mean much.")
    if importance.capped:
        notes.append(f"{counted(importance.capped, 'outlier')} (Tukey's outer fence) counted as the fence.")
    return notes

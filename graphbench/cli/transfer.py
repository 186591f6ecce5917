"""The command ``transfer``: pretrain on some datasets, and adapt to others with few samples."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphbench.cli.options import Device, Json, Root, SamplesLimit, ValLimit, overrides_of
from graphbench.cli.output import echo
from graphbench.core.errors import ConfigError

if TYPE_CHECKING:
    from graphbench.training.transfer import Adapted, TransferPlan


def transfer(
    pretrain: Annotated[
        list[str],
        typer.Option(help="Datasets of the pretraining (ids, aliases, groups, globs), with commas between them."),
    ],
    adapt: Annotated[
        list[str], typer.Option(help="Datasets to adapt to, with commas between them; none is in its own pretraining.")
    ],
    model: Annotated[str, typer.Option(help="Name of a configuration in baselines/, or a YAML file.")],
    adapt_model: Annotated[
        str | None,
        typer.Option(
            help="Configuration of the adaptation, whose processor must have the same settings.", show_default="--model"
        ),
    ] = None,
    shots: Annotated[
        str, typer.Option(metavar="N,N,...", help="Labelled samples; 0 scores the pretrained model as it is.")
    ] = "0,10,100,1000",
    seed: Annotated[list[int] | None, typer.Option(help="Seed; may be repeated.", show_default="0, 1 and 2")] = None,
    pretrain_steps: Annotated[
        int | None, typer.Option(min=1, help="Optimizer steps of the pretraining.", show_default="the configuration's")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Optimizer steps of an adaptation.", show_default="the configuration's")
    ] = None,
    freeze: Annotated[
        list[str] | None,
        typer.Option(help="Kind of parts that are not adapted, such as `processor`; may be repeated."),
    ] = None,
    limit: SamplesLimit = None,
    val_limit: ValLimit = None,
    eval_limit: Annotated[
        int | None, typer.Option(min=1, help="Score at most N samples of each split.", show_default="all")
    ] = None,
    evaluate: Annotated[
        str, typer.Option(help="Splits to score; the table and the curves are of the first one.")
    ] = "test",
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Override a key of both configurations; may be repeated.")
    ] = None,
    adapt_set: Annotated[
        list[str] | None, typer.Option("--adapt-set", help="Override a key of the adaptation; may be repeated.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the runs and results.")] = Path("transfer"),
    device: Device = "auto",
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Pretrain a model on some datasets, adapt it to others with few samples, and train from scratch beside it.

    For every dataset, number of samples and seed, two models with one configuration are trained on the same samples
    for the same steps: from the pretrained weights, and from scratch. The folder gets `transfer.json`, `transfer.md`
    and `transfer.svg`. The same command goes on after an interruption.

    Example: `graphbench transfer --pretrain 'algoreas/*_easy' --adapt mst_easy,bridges_easy --model gin_small`
    """
    from graphbench.core.validation import validated
    from graphbench.training.transfer import TransferPlan

    given: dict[str, Any] = {
        "pretrain": _names(pretrain),
        "adapt": _names(adapt),
        "model": model,
        "adapt_model": adapt_model,
        "shots": _numbers(shots),
        "seeds": tuple(seed or (0, 1, 2)),
        "pretrain_steps": pretrain_steps,
        "steps": steps,
        "freeze": tuple(freeze or ()),
        "limit": limit,
        "val_limit": val_limit,
        "eval_limit": eval_limit,
        "evaluate": tuple(evaluate.split(",")),
        "set": overrides_of(set_ or ()),
        "adapt_set": overrides_of(adapt_set or ()),
    }
    plan = validated(TransferPlan, given, ConfigError, "the transfer")
    _run(plan, output, root, device, as_json)


def _names(words: list[str]) -> tuple[str, ...]:
    """Return names that were given in several options, or in one with commas between them."""
    return tuple(name for word in words for name in word.split(","))


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(word) for word in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no list of numbers such as 0,10,100", param_hint="--shots") from None


def _results_of(plan: TransferPlan, identity: Mapping[str, str], path: Path) -> list[Adapted]:
    """Return the results that a file has of a plan; others are refused, because they would be lost or mixed.

    Args:
        plan: The plan.
        identity: What its results depend on now.
        path: The file.

    Raises:
        ConfigError: If they are of another plan, of other data or of other configurations, or damaged.
    """
    from graphbench.training.transfer import read_results

    if not path.is_file():
        return []
    there = read_results(path)
    if there.plan != json.loads(plan.model_dump_json()):
        raise ConfigError(f"{path} has the results of another plan; choose another folder with --output")
    changed = next((name for name, digest in identity.items() if there.identity.get(name) != digest), None)
    if changed is not None:
        raise ConfigError(
            f"{path} has results of other data or another configuration ({changed}); choose another folder with "
            "--output"
        )
    return list(there.results)


def _run(plan: TransferPlan, output: Path, root: Path | None, device: str, as_json: bool) -> None:
    from graphbench._version import __version__
    from graphbench.cli.printing import print_json, print_line
    from graphbench.core.files import write_json, write_text
    from graphbench.records.machine import hardware
    from graphbench.reports.plots import inline_svg
    from graphbench.reports.transfer import transfer_figure, transfer_table
    from graphbench.training.transfer import identity_of, run_transfer, targets_of

    targets = targets_of(plan)
    identity = identity_of(plan)
    done = _results_of(plan, identity, output / "transfer.json")
    runs = len(targets) * len(plan.seeds) * sum(1 if shots == 0 else 2 for shots in plan.shots)
    split = plan.evaluate[0]
    results = []
    facts: dict[str, Any] = {"plan": plan.model_dump(), "graphbench_version": __version__, "machine": hardware()}
    facts["identity"] = identity
    for one in run_transfer(plan, output, root, device, done, progress=None):
        results.append(one)
        kept = [other for other in done if other not in results]  # an interruption must not lose them
        facts["results"] = [result.to_dict() for result in (*results, *kept)]
        write_json(output / "transfer.json", facts, sort_keys=False)
        if not as_json:
            score = f"{one.scores[split]:.4g}" if split in one.scores else one.note or f"no score on {split}"
            words = f"{one.dataset}, n = {one.shots:,}, seed {one.seed}, {one.start}: {score}"
            print_line(f"{len(results)} of {runs}: {words}")
    table = transfer_table(results, split)
    title = f"Score on {split} over the number of labelled samples"
    write_text(output / "transfer.md", f"# {title}\n\n{plan.words()}\n\n{table}")
    write_text(output / "transfer.svg", inline_svg(transfer_figure(results, split), title))
    if as_json:
        print_json([result.to_dict() for result in results])
        return
    echo(f"\n{table}")
    print_line(f"results, table and curves: {output}", "dim")

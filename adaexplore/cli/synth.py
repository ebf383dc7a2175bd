"""``adaexplore synth``: make a set of problems, or check one with a judge."""

import argparse
import json
import logging
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tqdm.contrib.logging import logging_redirect_tqdm

from adaexplore.cli.options import add_config, add_short, configuration
from adaexplore.cli.output import progress, show
from adaexplore.cli.stopping import stop_on_signals
from adaexplore.core.errors import UsageError
from adaexplore.core.files.atomic import cannot_write, write_json
from adaexplore.judge_client.access import open_judge
from adaexplore.report.text import count_of
from adaexplore.run.build import open_model_within_budget
from adaexplore.settings.config import RunConfig
from adaexplore.settings.paths import locate
from synthesis.catalogue import Catalogue, read_catalogue
from synthesis.checking import check_set
from synthesis.journal import FOLDER
from synthesis.prompts import Sizes, Style, seed_problems
from synthesis.synthesiser import Order, Synthesiser

SEEDS = Path("datasets/KernelBench_syn/seeds")

logger = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    add_short(parser, "model", "offline")
    parser.add_argument("--count", type=_positive, default=200, help="number of problems in the finished set")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder of the set")
    parser.add_argument(
        "--style",
        action="append",
        choices=[style.value for style in Style],
        help="make only problems of this style (repeatable)",
    )
    parser.add_argument(
        "--elements",
        type=_positive,
        nargs=2,
        default=(2**15, 2**18),
        metavar=("LOW", "HIGH"),
        help="range of elements of the first input (default: 32768 262144)",
    )
    parser.add_argument(
        "--seeds",
        type=Path,
        default=SEEDS,
        metavar="DIR",
        help=f"problems shown as examples (default: {SEEDS})",
    )
    parser.add_argument("--catalogue", type=Path, help="catalogue of operators (default: the bundled one)")
    parser.add_argument("--check", type=Path, metavar="DIR", help="check this set; make nothing")
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="with --check: write the report to this file"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Make or check a set and print a summary; fail if problems are missing or unusable."""
    config = configuration(args, args.config)
    catalogue = read_catalogue(args.catalogue)
    if args.check is not None:
        return _check(args, config, catalogue)
    if args.out is None:
        raise UsageError("synth needs --out DIR, such as --out datasets/KernelBench_syn/my_set")
    return _make(args, config, catalogue)


def _make(args: argparse.Namespace, config: RunConfig, catalogue: Catalogue) -> int:
    low, high = sorted(args.elements)
    order = Order(
        count=args.count,
        styles=tuple(map(Style, args.style or Style)),
        sizes=Sizes(low, high),
        dtype=config.dtype_str,
        seed=config.seed,
        workers=config.num_processes,
    )
    if config.server_type == "replay":
        raise UsageError("synth cannot use replay; it reuses the replies in the folder of the set by itself")
    seeds = seed_problems(locate(args.seeds))
    with stop_on_signals("finished problems") as stop, open_judge(config, _log(args.out), stop) as access:
        model = open_model_within_budget(config, stop)
        synthesiser = Synthesiser(args.out, catalogue, seeds, model, access.first)
        before = synthesiser.account(order.count).written
        with (
            logging_redirect_tqdm(),
            progress(order.count, "problem", min(before, order.count)) as bar,
        ):
            account = synthesiser.fill(order, stop, lambda done: bar.update(done - bar.n))
    if args.json:
        print(json.dumps(asdict(account)))  # noqa: T201
    else:
        lines = [f"{account.written} of {account.asked} problems in {args.out}"]
        lines += [f"operators: {account.operators}"]
        lines += [f"rejected, {reason}: {times}" for reason, times in account.rejected.items()]
        show("\n".join(lines))
    return 0 if account.written >= account.asked else 1


def _check(args: argparse.Namespace, config: RunConfig, catalogue: Catalogue) -> int:
    with (
        stop_on_signals("nothing") as stop,
        open_judge(config, stop=stop) as access,
        progress(None, "problem") as names,
    ):
        report = check_set(
            args.check,
            catalogue,
            access.first,
            dtype=config.dtype_str,
            workers=config.num_processes,
            progress=lambda _: names.update(),
        )
        identity = access.identity
    facts: dict[str, Any] = {
        "set": str(args.check),
        "device": identity.device,
        "hardware": identity.hardware,
        "versions": identity.versions,
        "dtype": config.dtype_str,
        "distinct_operators": len(report.operators),
        **asdict(report),
    }
    if args.report is not None:
        write_json(args.report, facts)
    if args.json:
        print(json.dumps(facts))  # noqa: T201
    else:
        lines = [
            f"{report.valid} of {count_of(report.tasks, 'problem')} are usable on {identity.hardware}; "
            f"{count_of(len(report.operators), 'operator')}, {count_of(len(report.duplicates), 'duplicate')}"
        ]
        show("\n".join([*lines, *(f"{name}: {reason}" for name, reason in report.invalid.items())]))
    return 0 if report.valid == report.tasks and not report.duplicates else 1


def _log(folder: Path) -> Path:
    path = folder / FOLDER / "judge.log"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(path, error, "choose another --out") from error
    return path


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1, got {text}")
    return number

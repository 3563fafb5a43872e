"""``attnscope checkpoints DIR``: a trajectory from saved weights."""

from __future__ import annotations

import importlib
import json
import os
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attnscope.cli.arguments import Parser, add_quiet
from attnscope.cli.where import add_device
from attnscope.errors import AttnscopeError, nearest

SAYS = "a trajectory from saved weights: attnscope checkpoints DIR --out RUN"
PLACES = (
    "folder of checkpoints: checkpoint-500/model.safetensors or 500.safetensors; or a repository "
    "in the local cache of Hugging Face, as ORG/NAME or its folder models--ORG--NAME, whose "
    "revisions are steps"
)


def arguments(parser: Parser, words: list[str]) -> None:
    """Add the flags."""
    parser.description = f"{SAYS}. Every checkpoint is a reading."
    parser.epilog = "A model in training is watched from Python: attnscope.watch(model, ...)."
    parser.add_argument("checkpoints", metavar="DIR", help=PLACES)
    parser.add_argument("--out", required=True, metavar="RUN", help="folder for the trajectory")
    parser.add_argument(
        "--model",
        metavar="MODULE:FUNCTION",
        help="what builds the model; its own config.json unless given",
    )
    parser.add_argument(
        "--record", nargs="+", metavar="NAME", help="readings; all that the model has unless given"
    )
    parser.add_argument(
        "--probe",
        metavar="FILE",
        help="the batch that every checkpoint is shown: safetensors or JSON, by argument name",
    )
    parser.add_argument(
        "--attention",
        nargs="+",
        metavar="PATH",
        help="modules that compute attention, if the model has its own",
    )
    parser.add_argument("--no-report", action="store_true", help="write no report")
    add_device(parser)
    add_quiet(parser)


def once_watch(words: list[str]) -> list[str]:
    """Return the words of this command for those of ``attnscope watch``, as it was once called.

    Raises:
        AttnscopeError: no checkpoints are named: a model in training is watched from Python.
    """
    flags = [place for place, word in enumerate(words) if word.split("=")[0] == "--checkpoints"]
    if not flags and not {"-h", "--help"} & set(words):
        raise AttnscopeError(
            "a model is watched from Python, in the script that trains it: with "
            "attnscope.watch(model, 'runs/mine', probe=batch) as scope, and scope.step(loss) after "
            "every step. Weights that are saved already are read by `attnscope checkpoints DIR "
            "--out RUN`."
        )
    print("attnscope: watch --checkpoints DIR is now called checkpoints DIR", file=sys.stderr)
    fresh = list(words)
    for place in flags:
        fresh[place] = fresh[place].partition("=")[2]
    return [word for word in fresh if word]


def call(options: Namespace) -> int:
    """Read checkpoints, and say where the trajectory and its report lie."""
    from attnscope.cli.terminal import say, status
    from attnscope.watching.checkpoints import from_checkpoints

    given: dict[str, Any] = {}
    if options.probe is not None:
        given["probe"] = read_probe(Path(options.probe))
    if options.attention is not None:
        given["attention"] = options.attention
    with status("reading checkpoints", quiet=options.quiet) as update:
        path = from_checkpoints(
            options.checkpoints,
            options.out,
            options.record,
            build=None if options.model is None else function_at(options.model),
            progress=lambda done, total: update(f"{done} of {total} checkpoints are read"),
            device=options.device,
            **given,
        )
    where = f"run: {path}"
    if not options.no_report:
        from attnscope.results import write_report
        from attnscope.trajectory import open_run

        with status("drawing the report", quiet=options.quiet):
            where = f"report: {write_report(open_run(path))}"
    say(where)
    return 0


def function_at(text: str) -> Callable[[], Any]:
    """Import ``module:function``; modules of the current folder are found first.

    Raises:
        AttnscopeError: it is not written so, or there is no such module or function.
    """
    name, colon, function = text.partition(":")
    if not (name and colon and function):
        raise AttnscopeError(
            f"--model {text}: expected module:function, such as mymodel:build for build() in "
            "mymodel.py."
        )
    sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        raise AttnscopeError(
            f"--model {text}: '{name}' cannot be imported ({error}): expected a module that is "
            "installed or lies in the current folder."
        ) from error
    finally:
        sys.path.remove(os.getcwd())
    found = getattr(module, function, None)
    if not callable(found):
        names = [each for each, value in vars(module).items() if callable(value)]
        raise AttnscopeError(
            f"--model {text}: '{name}' has no function '{function}'.{nearest(function, names)} "
            "Expected one without arguments that returns the model."
        )
    called: Callable[[], Any] = found
    return called


def read_probe(path: Path) -> Any:
    """Read a probe batch: tensors by the names of arguments, or one list of lists as the first.

    Raises:
        AttnscopeError: it is neither.
    """
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        content = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(content, dict):
            return {name: torch.tensor(value) for name, value in content.items()}
        return torch.tensor(content)
    except FileNotFoundError:
        raise AttnscopeError(f"--probe {path}: there is no such file.") from None
    except (SafetensorError, OSError, ValueError, TypeError, RuntimeError, OverflowError) as error:
        raise AttnscopeError(
            f"--probe {path}: it cannot be read ({error}): expected safetensors, or JSON such as "
            '{"input_ids": [[1, 2, 3], [4, 5, 6]]}.'
        ) from error

"""``attnscope topics CORPUS``: the topics of a corpus, their words and how they hang together."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from attnscope.cli.arguments import Parser, add_limits, apply_limits
from attnscope.limits import STREAMED_BYTES, STREAMED_ROWS

if TYPE_CHECKING:
    from attnscope.topics.lda import Progress
    from attnscope.topics.model import TopicModel


def parser(description: str) -> Parser:
    """Return what reads the words after ``attnscope topics``."""
    from attnscope.topics.corpus import KINDS

    made = Parser(
        prog="attnscope topics",
        description=f"{description}. Online LDA over a corpus that is read as a stream.",
    )
    made.add_argument(
        "corpus",
        metavar="CORPUS",
        help="a folder of text files, a file with one document a line, a WikiText file or zip, a "
        "Wikipedia XML dump; packed by gzip, bzip2 or xz, or not",
    )
    made.add_argument("--topics", type=int, default=100, help="how many (default: 100)")
    made.add_argument("--passes", type=int, default=6, help="over all documents (default: 6)")
    made.add_argument(
        "--vocabulary", type=int, default=100_000, help="words at most (default: 100000)"
    )
    made.add_argument("--seed", type=int, default=0, help="what the fit starts from (default: 0)")
    made.add_argument(
        "--kind",
        choices=KINDS,
        help="how to read the corpus; told by its first bytes unless given",
    )
    made.add_argument("--out", metavar="FILE", help="keep the topics, as safetensors")
    add_limits(made, STREAMED_ROWS, STREAMED_BYTES)
    return made


def topics(words: list[str], description: str) -> int:
    """Fit topics, print their top words, coherence and the time it took, and keep them."""
    options = parser(description).parse_args(words)
    apply_limits(options, STREAMED_ROWS, STREAMED_BYTES)

    from attnscope.topics.lda import fit_topics

    start, used = time.perf_counter(), time.process_time()
    with _progress() as progress:
        model = fit_topics(
            options.corpus,
            options.topics,
            options.passes,
            options.vocabulary,
            seed=options.seed,
            kind=options.kind,
            progress=progress,
        )
    _print(model)
    print(
        f"{time.perf_counter() - start:.1f} s, {time.process_time() - used:.1f} s of them on a "
        "processor"
    )
    if options.out is not None:
        print(f"topics: {model.save(options.out)}")
    return 0


def _print(model: TopicModel) -> None:
    rows = sorted(zip(model.coherence, range(len(model.coherence)), model.top(), strict=True))
    print("topic   NPMI  top words")
    for value, number, top in reversed(rows):
        print(f"{number:5}  {value:+.3f}  {' '.join(top)}")
    tops = {word for _, _, top in rows for word in top}
    print(
        f"{model.settings['documents']:,} documents, {model.settings['words']:,} words of a "
        f"vocabulary of {len(model.words):,}; coherence (NPMI of the top ten, window 10): mean "
        f"{model.coherence.mean():+.3f}; {len(tops)} different top words"
    )


@contextmanager
def _progress() -> Iterator[Progress]:
    """Show how far the work is: for people, not for files."""
    from rich.console import Console

    console = Console(stderr=True)
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    with console.status("reading") as status:

        def tell(what: str, done: int, total: int) -> None:
            of = f" of {total:,}" if total else ""
            status.update(f"{what}: {done:,}{of} documents")

        yield tell

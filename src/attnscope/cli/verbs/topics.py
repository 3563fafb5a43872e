"""``attnscope topics CORPUS``: the topics of a corpus, their words and how they hang together."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from attnscope.cli.arguments import (
    Parser,
    add_choice,
    add_limits,
    add_quiet,
    apply_limits,
    whole,
)
from attnscope.cli.terminal import status
from attnscope.limits import STREAMED_BYTES, STREAMED_ROWS

if TYPE_CHECKING:
    from attnscope.topics.lda import Progress
    from attnscope.topics.model import TopicModel

SAYS = "the topics of a corpus: attnscope topics wikitext-2-v1.zip --out FILE"


def arguments(parser: Parser, words: list[str]) -> None:
    """Add the flags."""
    from attnscope.topics.corpus import KINDS

    parser.description = f"{SAYS}. Online LDA over a corpus that is read as a stream."
    parser.add_argument(
        "corpus",
        metavar="CORPUS",
        help="a folder of text files, a file with one document a line, a WikiText file or zip, a "
        "Wikipedia XML dump; packed by gzip, bzip2 or xz, or not",
    )
    parser.add_argument("--topics", type=whole, default=100, help="how many (default: 100)")
    parser.add_argument("--passes", type=whole, default=6, help="over all documents (default: 6)")
    parser.add_argument(
        "--vocabulary", type=whole, default=100_000, help="words at most (default: 100000)"
    )
    parser.add_argument("--seed", type=whole, default=0, help="of the fit's start (default: 0)")
    add_choice(
        parser,
        "--kind",
        KINDS,
        help="how to read the corpus; told by its first bytes unless given",
    )
    parser.add_argument("--out", metavar="FILE", help="keep the topics, as safetensors")
    add_limits(parser, STREAMED_ROWS, STREAMED_BYTES)
    add_quiet(parser)


def call(options: Namespace) -> int:
    """Fit topics, print their top words, coherence and the time it took, and keep them."""
    apply_limits(options, STREAMED_ROWS, STREAMED_BYTES)

    from attnscope.topics.lda import fit_topics

    start, used = time.perf_counter(), time.process_time()
    with _progress(options.quiet) as progress:
        model = fit_topics(
            options.corpus,
            options.topics,
            options.passes,
            options.vocabulary,
            seed=options.seed,
            kind=options.kind,
            progress=progress,
        )
    if not options.quiet:
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
def _progress(quiet: bool) -> Iterator[Progress]:
    """Show how far the work is: for people, not for files."""
    with status("reading", quiet=quiet) as update:

        def tell(what: str, done: int, total: int) -> None:
            of = f" of {total:,}" if total else ""
            update(f"{what}: {done:,}{of} documents")

        yield tell

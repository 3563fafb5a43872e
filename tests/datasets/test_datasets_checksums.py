"""Which downloads are known by a checksum; a new one without it must be entered here on purpose."""

from __future__ import annotations

import re

from attnscope.datasets.catalogue import CATALOGUE

WITHOUT = {
    "amazon/unprocessed.tar.gz",
    "news_commentary/news-commentary-v14.en-nl.tsv",
    "wikitext2/wikitext-2-v1.zip",
}
"""No checksum is published; docs/data.md says so. It is noted at the first download."""


def test_downloads_have_a_checksum() -> None:
    fetched = [file for dataset in CATALOGUE.values() for file in dataset.files if file.url]
    assert {file.path for file in fetched if file.sha256 is None} == WITHOUT
    for file in fetched:
        assert file.sha256 is None or re.fullmatch(r"[0-9a-f]{64}", file.sha256)

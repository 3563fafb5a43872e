"""The other data sets: parallel text, documents, and what is generated."""

from __future__ import annotations

from attnscope.datasets.record import DataFile, DataSet

_MULTI30K = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/"


def _multi30k(name: str, split: str, rows: int, **files: tuple[int, str]) -> tuple[DataFile, ...]:
    """Return a file for each language, by its size and SHA-256 after unpacking."""
    return tuple(
        DataFile(
            f"multi30k/raw/{name}.{language}",
            split,
            f"{_MULTI30K}{name}.{language}.gz",
            rows,
            size,
            sha256,
            language,
        )
        for language, (size, sha256) in files.items()
    )


def _iwslt14(name: str, split: str, rows: int, *alternatives: str) -> tuple[DataFile, ...]:
    return tuple(
        DataFile(
            f"iwslt14_de_en/{name}.{language}",
            split,
            rows=rows,
            language=language,
            alternatives=tuple(f"iwslt14_de_en/{other}.{language}" for other in alternatives),
        )
        for language in ("de", "en")
    )


MULTI30K = DataSet(
    key="multi30k",
    title="Multi30k",
    kind="parallel",
    classes=(),
    published="https://github.com/multi30k/dataset",
    licence="non-commercial research and education (the terms of Flickr30K)",
    citation="Elliott et al. (2016), Multi30K: Multilingual English-German Image Descriptions",
    files=(
        *_multi30k(
            "train",
            "train",
            29000,
            de=(2110398, "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72"),
            en=(1801238, "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6"),
        ),
        *_multi30k(
            "val",
            "dev",
            1014,
            de=(75981, "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660"),
            en=(63297, "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227"),
        ),
        *_multi30k(
            "test_2016_flickr",
            "test",
            1000,
            de=(70649, "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16"),
            en=(62076, "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182"),
        ),
    ),
    note="German and English. The test set is test_2016_flickr.",
)

IWSLT14 = DataSet(
    key="iwslt14",
    title="IWSLT'14 De-En",
    kind="parallel",
    classes=(),
    published="https://wit3.fbk.eu",
    licence="CC BY-NC-ND (TED talks)",
    citation="Cettolo et al. (2014), Report on the 11th IWSLT Evaluation Campaign",
    files=(
        *_iwslt14("train", "train", 160239, "train_first4600.bpe10k"),
        *_iwslt14("valid", "dev", 7283),
        *_iwslt14("test", "test", 6750),
    ),
    note=(
        "Not fetched automatically: the counts are those of the usual preparation, "
        "prepare-iwslt14.sh of fairseq, which fetches the talks, tokenises and lower-cases them "
        "and splits them. Put its train, valid and test files (.de and .en) into the folder "
        'iwslt14_de_en. Marks of byte-pair encoding ("@@ ") are undone.'
    ),
)

NEWS_COMMENTARY = DataSet(
    key="news_commentary",
    title="News Commentary",
    kind="parallel",
    classes=(),
    published="https://data.statmt.org/news-commentary/",
    licence="not verified, see the page",
    citation="Barrault et al. (2019), Findings of the 2019 Conference on Machine Translation",
    files=(
        DataFile(
            "news_commentary/news-commentary-v14.en-nl.tsv",
            "train",
            "https://data.statmt.org/news-commentary/v14/training/news-commentary-v14.en-nl.tsv.gz",
            language="en-nl",
        ),
    ),
    note=(
        "Version 14, English and Dutch, published without splits. The folder v14/training there "
        "has the other pairs, such as en-pt and it-pt, in the same form."
    ),
)

WIKITEXT2 = DataSet(
    key="wikitext2",
    title="WikiText-2",
    kind="documents",
    classes=(),
    published="https://blog.einstein.ai/the-wikitext-long-term-dependency-language-modeling-dataset/",
    licence="CC BY-SA (Wikipedia)",
    citation="Merity et al. (2017), Pointer Sentinel Mixture Models, ICLR",
    files=(
        DataFile(
            "wikitext2/wikitext-2-v1.zip",
            "",
            "https://wikitext.smerity.com/wikitext-2-v1.zip",
            split_rows=(("train", None), ("dev", None), ("test", None)),
        ),
    ),
    note=(
        "The publisher's own download no longer answers; the file is fetched from the site of the "
        "first author. The version of the licence could not be verified: read it there. The paper "
        "counts 600, 60 and 60 articles; how many documents are read depends on where headings "
        "are seen, so no count is expected."
    ),
)

PATHFINDER = DataSet(
    key="pathfinder",
    title="Pathfinder",
    kind="generated",
    classes=("apart", "connected"),
    published="https://github.com/drewlinsley/pathfinder",
    licence="MIT (the generator)",
    citation=(
        "Linsley et al. (2018), Learning Long-Range Spatial Dependencies with Horizontal Gated "
        "Recurrent Units, NeurIPS; Tay et al. (2021), Long Range Arena, ICLR"
    ),
    files=(),
    note=(
        "Its images are drawn by attnscope.tasks.pathfinder, not downloaded: there is nothing to "
        "fetch. `attnscope data pathfinder --sheet FILE.png` draws samples."
    ),
)

OTHERS = (MULTI30K, IWSLT14, NEWS_COMMENTARY, WIKITEXT2, PATHFINDER)

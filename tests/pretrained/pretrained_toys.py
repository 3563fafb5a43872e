"""Small models with known topics in their weights, and documents about these topics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

TOPICS = (
    ("ship", "fleet", "navy", "cruiser", "harbor", "sailor"),
    ("planet", "orbit", "comet", "galaxy", "telescope", "moon"),
    ("guitar", "album", "singer", "melody", "drummer", "chorus"),
    ("tree", "forest", "leaf", "branch", "root", "flower"),
)
FILLERS = ("the", "of", "and", "in", "was")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WIDTH = 32


def tokenizer() -> PreTrainedTokenizerFast:
    """Every word is one piece, but cruiser is two."""
    pieces = [word for topic in TOPICS for word in topic if word != "cruiser"]
    names = [*SPECIAL, *FILLERS, *pieces, "cruis", "##er", ".", ","]
    vocabulary = {name: number for number, name in enumerate(names)}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    given: dict[str, Any] = {f"{name[1:-1].lower()}_token": name for name in SPECIAL}
    return PreTrainedTokenizerFast(tokenizer_object=made, **given)


def config() -> BertConfig:
    """Two layers of two heads."""
    return BertConfig(
        vocab_size=len(tokenizer()),
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=64,
    )


def planted(strength: float = 4.0, seed: int = 0) -> BertModel:
    """Make a model in whose first layer words of one topic attend to each other."""
    torch.manual_seed(seed)
    model = BertModel(config(), add_pooling_layer=False).eval()
    pieces = tokenizer().get_vocab()
    with torch.no_grad():
        table = model.embeddings.word_embeddings.weight
        for number, topic in enumerate(TOPICS):
            for word in topic:
                table[pieces.get(word, pieces["cruis"]), number] += 0.3
        attention = model.encoder.layer[0].attention.self
        for part in (attention.query, attention.key):
            part.weight.copy_(torch.eye(WIDTH) * strength**0.5)
    return model


def save(folder: Path, model: Any | None = None) -> Path:
    """Write a model and its tokenizer."""
    (model or planted()).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


def documents(count: int = 60, words: int = 40, seed: int = 0) -> list[str]:
    """Every document is about two topics, with fillers in between."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        about = random.choice(len(TOPICS), 2, replace=False)
        text = []
        for _ in range(words):
            topic = TOPICS[random.choice(about)]
            text.append(str(random.choice(topic)))
            text.append(str(random.choice(FILLERS)))
        found.append(" ".join(text) + " .")
    return found

"""Train a small masked language model on real text and keep checkpoints on the way.

    python examples/train_small_lm.py wikitext-2-v1.zip small-lm
    attnscope run li2023.pretrained --model small-lm --corpus wikitext-2-v1.zip

Two layers of four heads, width 128, 8,000 pieces of words: about 1.5 million weights. 3,000 steps
take ten minutes of one core (0.18 s a step). Checkpoints are safetensors, in folders that the study
reads as one run. The corpus is anything that `attnscope topics` reads.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

from attnscope.pretrained.pieces import readable
from attnscope.topics import stream

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
LENGTH, BATCH = 128, 16
MASKED, KEPT, RANDOM = 0.15, 0.1, 0.1
"""Share of the positions to predict; of those, share left as they are and share made random."""


def train_tokenizer(corpus: str, pieces: int) -> PreTrainedTokenizerFast:
    """Learn pieces of words from a corpus, as BERT's are."""
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=pieces, special_tokens=list(SPECIAL), show_progress=False
    )
    made.train_from_iterator((readable(text, "[UNK]") for text in stream(corpus)), trainer)
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[(name, made.token_to_id(name)) for name in ("[CLS]", "[SEP]")],
    )
    names = {f"{name[1:-1].lower()}_token": name for name in SPECIAL}
    return PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=512, **names)


def windows(corpus: str, tokenizer: PreTrainedTokenizerFast) -> Tensor:
    """Return the corpus in windows of LENGTH pieces, each between [CLS] and [SEP]."""
    begin, end = tokenizer.cls_token_id, tokenizer.sep_token_id
    rows = []
    for text in stream(corpus):
        ids = tokenizer(readable(text, "[UNK]"), add_special_tokens=False)["input_ids"]
        starts = range(0, len(ids) - LENGTH + 3, LENGTH - 2)
        rows += [[begin, *ids[start : start + LENGTH - 2], end] for start in starts]
    return torch.tensor(rows)


def mask(ids: Tensor, tokenizer: PreTrainedTokenizerFast, draws: torch.Generator) -> Tensor:
    """Hide some positions in place; return which are to be predicted."""
    chosen = torch.rand(ids.shape, generator=draws) < MASKED
    chosen &= (ids >= len(SPECIAL)) | (ids == tokenizer.unk_token_id)
    fate = torch.rand(ids.shape, generator=draws)
    other = torch.randint(len(SPECIAL), len(tokenizer), ids.shape, generator=draws)
    ids[chosen & (fate > KEPT + RANDOM)] = tokenizer.mask_token_id
    swapped = chosen & (fate <= RANDOM)
    ids[swapped] = other[swapped]
    return chosen


def main() -> None:
    """Train, and say every hundred steps how it goes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus")
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--pieces", type=int, default=8000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(given.seed)
    draws = torch.Generator().manual_seed(given.seed)
    tokenizer = train_tokenizer(given.corpus, given.pieces)
    tokenizer.save_pretrained(given.out)
    rows = windows(given.corpus, tokenizer)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=512,
        max_position_embeddings=256,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model = BertForMaskedLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    warm = min(100, given.steps)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min((step + 1) / warm, (given.steps - step) / max(1, given.steps - warm)),
    )
    keep = {0, given.steps, *(n for n in (25, 50, 100, 200, 400, 700, 1000, 1500, 2000, 2500))}
    mean, begun = 0.0, time.process_time()
    for step in range(given.steps + 1):
        if step in keep and step <= given.steps:
            model.save_pretrained(given.out / f"checkpoint-{step}")
        if step == given.steps:
            break
        ids = rows[torch.randint(len(rows), (BATCH,), generator=draws)].clone()
        target = ids.clone()
        chosen = mask(ids, tokenizer, draws)
        states = model.bert(ids).last_hidden_state[chosen]
        loss = cross_entropy(model.cls(states), target[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        mean += (loss.item() - mean) / min(step + 1, 100)
        if step % 100 == 99:
            spent = time.process_time() - begun
            print(f"step {step + 1}: loss {mean:.3f} nats, {spent:.0f} s of processor", flush=True)


if __name__ == "__main__":
    main()

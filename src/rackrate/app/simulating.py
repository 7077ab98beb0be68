"""The use case ``simulate``: the memory of a real training step, or of prefill and decode, without a GPU."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping
from datetime import date
from importlib.metadata import PackageNotFoundError, version

from rackrate.app.asking import NOTHING, Asked, model_asked, read_workload
from rackrate.app.context import Context, context
from rackrate.app.documents import finding_docs, header, span, workload_doc
from rackrate.app.fitting import fit
from rackrate.app.programs import beside, program_at
from rackrate.app.simulated_jobs import job_of
from rackrate.app.wire.fit import FitDocument
from rackrate.app.wire.parts import WorkloadDoc
from rackrate.app.wire.simulation import (
    HeldDoc,
    OnCardDoc,
    SimulatedPartDoc,
    SimulatedPhaseDoc,
    SimulationDocument,
)
from rackrate.evidence import Range, Unknown
from rackrate.facts.accelerator import Accelerator
from rackrate.facts.names import resolve_card
from rackrate.memory.overhead import visible_bytes
from rackrate.memory.phases import verdict
from rackrate.memory.simulation.on_card import driver_bytes
from rackrate.memory.simulation.records import Held, Job, Simulation
from rackrate.memory.simulation.run import BLIND, ProgramFailedError, Watch, simulate_job, simulate_program
from rackrate.problems import Code, Finding, Refused, Severity
from rackrate.values import Value

INSTALL = "pip install 'rackrate[measure]'"
_LIBRARIES = ("torch", "transformers")
_ENGINE_OF_PROGRAMS = "transformers"
_FAR = 0.03
"""A closed form that is farther than this from the simulation is remarked on."""

Build = Callable[[], object]
"""Builds what a program needs and returns its step, or a pair of a model and a step that takes it."""


class _About(Value, frozen=True, kw_only=True):
    """What the simulated program is, beside its simulation."""

    subject: str
    workload: WorkloadDoc | None
    fit: FitDocument | None
    card: Accelerator | None
    reserved_over_allocated: Range


def simulate(
    asked: Asked = None,
    flags: Mapping[str, object] = NOTHING,
    *,
    program: Build | str | None = None,
    at: date | None = None,
    watch: Watch | None = None,
) -> SimulationDocument:
    """What a workload, or a program of your own, allocates on one card, step by step, without the card.

    Args:
        asked: a workload file, or the table that such a file holds.
        flags: more keys by path; they win. ``limits.gpus`` names a card to hold the peak against.
        program: instead of a workload, a function that builds your model and optimizer and returns one step
            of training (a function without arguments), or ``"path/to/file.py:function"``. It runs on PyTorch's
            meta device: shapes without values. A model of any size takes no memory.
        at: the day of the question (today).
        watch: is told the step that runs and how many tensors were allocated so far.

    Returns:
        The document that ``rackrate fit --simulate --json`` prints.

    Raises:
        Refused: the request cannot be understood, the program failed, or torch is not installed.
    """
    here = context(at)
    observe = watch or _unwatched
    if program is not None:
        return _program_document(program, flags, here, observe)
    parsed = read_workload(asked, flags, here.book)
    workload = parsed.workload
    engine = here.book.engine(workload.engine_id)
    job = job_of(workload, engine, _own_config(asked, flags, here))
    if not isinstance(job, Job):
        raise Refused(job)
    about = _About(
        subject=workload.model.id,
        workload=workload_doc(workload),
        fit=fit(asked, flags, at=at) if len(workload.limits.gpus) == 1 else None,
        card=here.book.accelerators[workload.limits.gpus[0]] if len(workload.limits.gpus) == 1 else None,
        reserved_over_allocated=_slack(here, workload.engine_id),
    )
    found = _guarded(lambda: simulate_job(job, observe))
    return _document(found, about, here, parsed.warnings)


def _unwatched(_step: int, _count: int) -> None:
    """Nobody watches."""


def _own_config(asked: Asked, flags: Mapping[str, object], here: Context) -> Mapping[str, object] | None:
    """The model's own configuration where it is in files or on the Hub."""
    from rackrate.app.checkpoint.find import own_config

    text = model_asked(asked, flags)
    return own_config(text, here.book) if text else None


def _program_document(
    program: Build | str, flags: Mapping[str, object], here: Context, watch: Watch
) -> SimulationDocument:
    build = program_at(program) if isinstance(program, str) else program
    subject = program if isinstance(program, str) else getattr(program, "__name__", "program")
    about = _About(
        subject=subject,
        workload=None,
        fit=None,
        card=_card(flags, here),
        reserved_over_allocated=_slack(here, _ENGINE_OF_PROGRAMS),
    )
    with beside(program) if isinstance(program, str) else contextlib.nullcontext():
        found = _guarded(lambda: simulate_program(build, watch))
    return _document(found, about, here, ())


def _card(flags: Mapping[str, object], here: Context) -> Accelerator | None:
    """The card that the flags name, if any."""
    named = flags.get("limits.gpus")
    names = [named] if isinstance(named, str) else list(named) if isinstance(named, (list, tuple)) else []
    if not names:
        return None
    found = resolve_card(str(names[0]), here.book.accelerators)
    if len(names) != 1 or len(found) != 1:
        code = Code.AMBIGUOUS_CARD if found else Code.UNKNOWN_CARD
        action = f"say which: {', '.join(found)}" if found else "`rackrate gpu` lists all cards"
        observed = ", ".join(map(str, names))
        raise Refused([Finding(code=code, subject="--gpu", observed=observed, expected="one card", action=action)])
    return here.book.accelerators[found[0]]


def _slack(here: Context, engine: str) -> Range:
    """What the engine's allocator reserves over what is allocated; none where no such figure is known."""
    policy = here.book.engine(engine).training
    return policy.reserved_over_allocated if policy is not None else Range.exact(1.0)


def _guarded(run: Callable[[], Simulation]) -> Simulation:
    """The simulation; a missing package or a program that fails is a refusal. What a program prints goes to stderr."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return run()
    except ImportError as missing:
        raise Refused([_missing(missing)]) from None
    except ProgramFailedError as failed:
        if isinstance(failed.__cause__, Refused):
            raise failed.__cause__ from None
        raise Refused([_failed(failed)]) from failed


def _missing(missing: ImportError) -> Finding:
    return Finding(
        code=Code.PACKAGE_MISSING,
        subject="--simulate",
        observed=f"{missing.name or missing} is not installed",
        expected="torch and transformers (CPU builds are enough)",
        action=INSTALL,
    )


def _failed(failed: ProgramFailedError) -> Finding:
    needs = failed.needs_values
    text = " ".join(str(failed).split())
    action = (
        "tensors have shapes and no values here: take a fixed shape instead of one that depends on the data"
        if needs
        else "run the step on a small model on the CPU first, or mend the line above"
    )
    return Finding(
        code=Code.PROGRAM_FAILED,
        subject=failed.line or "--simulate",
        observed=text if len(text) < 300 else f"{text[:300]}...",  # noqa: PLR2004 - as much as can be read
        expected="a step that runs on tensors without values" if needs else "a step that runs",
        action=action,
    )


# ---------------------------------------------------------------- the document


def _document(found: Simulation, about: _About, here: Context, warnings: tuple[Finding, ...]) -> SimulationDocument:
    estimated = about.fit.allocated_bytes.likely if about.fit is not None else None
    return SimulationDocument(
        **header("simulation", here),
        subject=about.subject,
        workload=about.workload,
        peak_bytes=found.peak_bytes,
        peak_phase=str(found.peak_phase),
        operation=found.operation,
        module=found.module,
        line=found.line,
        step=found.step,
        steps=found.steps,
        phases=[SimulatedPhaseDoc(phase=str(phase), bytes=size) for phase, size in found.phases],
        parts=[SimulatedPartDoc(name=str(kind), bytes=size) for kind, size in found.kinds if size],
        largest=[_held(each) for each in found.largest],
        values_read=list(found.values_read),
        not_seen=list(BLIND),
        libraries=_versions(),
        estimated_bytes=estimated,
        card=None if about.card is None else _on_card(found, about, about.card),
        fit=about.fit,
        warnings=finding_docs([*warnings, *here.findings, *_remarks(found, estimated)]),
    )


def _held(each: Held) -> HeldDoc:
    return HeldDoc(
        name=str(each.kind),
        bytes=each.bytes,
        count=each.count,
        shape=list(each.shape),
        dtype=each.dtype,
        operation=each.operation,
        module=each.module,
    )


def _on_card(found: Simulation, about: _About, card: Accelerator) -> OnCardDoc:
    total = card.memory_total_bytes
    if isinstance(total, Unknown):
        action = "choose a card whose memory is known: `rackrate gpu` lists them"
        raise Refused([Finding(code=Code.MISSING_VALUE, subject=card.id, observed=total.reason, action=action)])
    usable = visible_bytes(total)
    needed = driver_bytes(found.peak_bytes, about.reserved_over_allocated, card)
    return OnCardDoc(
        accelerator=card.id,
        product=card.product,
        peak_bytes=span(needed),
        usable_bytes=usable,
        headroom_bytes=usable - needed.likely,
        verdict=str(verdict(needed, usable)),
    )


def _versions() -> dict[str, str]:
    """The libraries whose code was run."""
    found = {}
    for name in _LIBRARIES:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _remarks(found: Simulation, estimated: float | None) -> list[Finding]:
    """What a reader should know: an estimate that is far from the simulation, values that the program read."""
    made = []
    if estimated is not None and abs(estimated / found.peak_bytes - 1) > _FAR:
        made.append(
            Finding(
                code=Code.SIMULATION_DIFFERS,
                severity=Severity.WARNING,
                subject="estimate",
                observed=f"{estimated / found.peak_bytes - 1:+.0%} from the simulation",
                expected=f"within {_FAR:.0%}",
                action="trust the simulation where your code is transformers' own",
            )
        )
    if found.values_read:
        made.append(
            Finding(
                code=Code.VALUES_READ,
                severity=Severity.INFO,
                subject="values",
                observed=f"values read at {', '.join(found.values_read[:4])}; each got zero",
                action="check that no size depends on them",
            )
        )
    return made

"""``lot-grpc check``: would the service start here, with the network cut?"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
from pathlib import Path
from urllib.parse import urlsplit

import typer

from lot_grpc.cli.start import begin
from lot_grpc.reports import Check, CheckReport
from lot_grpc.settings import MIB, Settings


def run(config: Path | None, *, as_json: bool) -> bool:
    """Check and print; True when ready.

    Raises:
        SettingsError: The settings cannot be used.
    """
    report = check_offline(begin(config))
    if as_json:
        typer.echo(json.dumps({"ready": report.ready, **dataclasses.asdict(report)}, indent=2))
    else:
        for line in _lines(report):
            typer.echo(line)
    return report.ready


def check_offline(settings: Settings) -> CheckReport:
    """The report of ``checking``, with a check that nothing reached for the network."""
    from lot_grpc.embedding.download import hub_is_offline

    may_download = settings.embedding.download and not hub_is_offline()
    # Before the import: huggingface_hub reads it once.
    os.environ["HF_HUB_OFFLINE"] = "1"
    from lot_grpc import checking
    from lot_grpc.cli.network import network_blocked

    embedding = settings.embedding.model_copy(update={"download": False})
    offline = settings.model_copy(update={"embedding": embedding})
    used = _hosts(settings)
    with network_blocked(list(used.values())) as tried:
        report = asyncio.run(checking.check(offline, may_download=may_download))
    return dataclasses.replace(report, checks=(*report.checks, _network_check(tried, used)))


def _hosts(settings: Settings) -> dict[str, str]:
    """The hosts that these settings name, by what is there."""
    used = {}
    if host := urlsplit(settings.qdrant.url).hostname:
        used["store"] = host
    if settings.embedding.provider == "openai":
        used["model"] = urlsplit(settings.openai.base_url).hostname or ""
    return used


def _network_check(tried: list[str], used: dict[str, str]) -> Check:
    if tried:
        hosts = ", ".join(dict.fromkeys(tried))
        return Check("network", ok=False, detail=f"it was blocked, and something tried {hosts}")
    but = " and".join(f" but for the {what} at {host}" for what, host in used.items())
    return Check("network", ok=True, detail=f"blocked while checking{but}; nothing needed it")


def _lines(report: CheckReport) -> list[str]:
    lines = ["ready" if report.ready else "NOT ready"]
    lines += [
        f"  {'ok' if check.ok else 'FAILED':6}  {check.name:10}  {check.detail}"
        for check in report.checks
    ]
    if model := report.model:
        lines += [
            f"model   {model.name}, {model.dimensions}-d, from {model.origin}",
        ]
        if model.file:
            lines += [f"        {model.file}", f"        sha256 {model.sha256}"]
    if store := report.store:
        points = ", ".join(f"{name} {count:,}" for name, count in store.points.items() if count)
        lines += [
            f"store   {store.backend}, {store.location}",
            f"        points: {points or 'none'}",
            f"        {store.disk_bytes // MIB:,} MiB used, {store.free_bytes // MIB:,} MiB free, "
            f"{'writable' if store.writable else 'READ ONLY'}",
        ]
    return lines

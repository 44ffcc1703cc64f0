"""Writing tables into the page on benchmarks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench import data, page, report, scale

PAGE = Path(__file__).parents[2] / page.NAME


@pytest.mark.parametrize("section", ["bench", "peers", "scale"])
def test_a_section_is_replaced_and_nothing_else(section: str, tmp_path: Path) -> None:
    copy = tmp_path / "page.md"
    copy.write_text(PAGE.read_text())
    page.write(section, "TABLE 1", copy)
    once = copy.read_text()
    page.write(section, "TABLE 2", copy)
    assert copy.read_text() == once.replace("TABLE 1", "TABLE 2")
    before, _, rest = PAGE.read_text().partition(f"<!-- {section}: begin -->")
    assert once.startswith(before)
    assert once.endswith(rest.partition(f"<!-- {section}: end -->")[2])


def test_a_page_without_the_section_is_refused_and_left_alone(tmp_path: Path) -> None:
    copy = tmp_path / "page.md"
    copy.write_text("# Another page\n")
    with pytest.raises(ValueError, match="peers"):
        page.write("peers", "text", copy)
    assert copy.read_text() == "# Another page\n"


def test_a_report_becomes_tables() -> None:
    figures = [
        report.Figure("a recall", "1.2 x", "≤ 1", met=False, beside="bare 3 ms"),
        report.Figure("an echo", "0.2 ms"),
    ]
    text = report.as_markdown(report.Report(figures, {"embed": 2.0}, {}))
    assert text.splitlines()[:4] == [
        "| what | measured | target |  | details |",
        "| --- | --- | --- | --- | --- |",
        "| a recall | 1.2 x | ≤ 1 | **missed** | bare 3 ms |",
        "| an echo | 0.2 ms |  |  |  |",
    ]
    assert text.splitlines()[-1] == "| 2.000 ms |"


def test_growth_names_the_knee_of_the_stores_that_were_measured() -> None:
    def row(patterns: int, seconds: float, *, compacted: bool) -> scale.Row:
        times = {share: [seconds] for share in data.SHARES}
        return scale.Row(patterns, compacted, times, 0, 0, 0, 0.1, {"seconds": 1.0})

    written = [row(10_000, 0.01, compacted=False), row(100_000, 0.03, compacted=False)]
    assert scale.markdown(written).splitlines()[-1] == (
        "As written, the knee is below 100,000: there a recall with a filter takes "
        "3.0 times as long as at 10,000."
    )
    both = [*written, row(10_000, 0.01, compacted=True)]
    assert (
        scale.markdown(both).splitlines()[-1].endswith(" Compacted, there is no knee up to 10,000.")
    )

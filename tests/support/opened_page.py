"""A page in a browser, with its console, dialogs and requests, and checks for any page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess

    from playwright.sync_api import Page

RunOf = Callable[[str], Path]
"""Folder of a finished run, by the name of its recipe."""

ReportOf = Callable[[str], Path]
"""Report of such a run, as written by `moot report`."""

Apart = Callable[[Callable[[], Any]], Any]
"""Calls a function in a thread without event loop."""

Start = Callable[..., "subprocess.Popen[str]"]
"""Starts `moot` with arguments in a process."""

Serve = Callable[[Path], str]
"""Serves the pages of a folder's runs, until the page of the test is closed: URL."""

OpenPage = Callable[..., "OpenedPage"]
"""Opens a file or a URL."""

ODD_IDS = (
    "a b",
    "a#b",
    "100%",
    "%23",
    "a/../b?c=d&e",
    "two\nlines",
    "\u00e4\u00f6\u4f60\U0001f41f",
    "<b>x</b>",
    "case=1",
    "'\"`",
    "__proto__",
    "-",
)
"""Ids of cases that a URL must preserve."""

# Of each text that is seen: the contrast of its colour with the first background behind it that is not transparent.
_CONTRASTS = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const channels = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = (color) => {
    const [r, g, b] = color.slice(0, 3).map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const over = (top, under) => {
    const share = top[3] / 255;
    return [0, 1, 2].map((i) => top[i] * share + under[i] * (1 - share)).concat(255);
  };
  const behind = (element) => {
    const layers = [];
    for (let each = element; each; each = each.parentElement) {
      const color = channels(getComputedStyle(each).backgroundColor);
      if (color[3]) layers.push(color);
      if (color[3] === 255) break;
    }
    const page = channels(getComputedStyle(document.body).backgroundColor);
    return layers.reduceRight((under, top) => over(top, under), page);
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility({ visibilityProperty: true })) continue;
    const back = behind(element);
    const [a, b] = [luminance(over(channels(getComputedStyle(element).color), back)), luminance(back)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    found.push({ ratio, text: node.data.trim().slice(0, 60), place: `${element.tagName}.${element.className}` });
  }
  return found;
}"""

# What each chart draws: series, x and y of its points, of series that have values.
_DRAWN = """() => Object.fromEntries([...document.querySelectorAll("figure.chart")].map((figure) => {
  const drawn = Chart.getChart(figure.querySelector("canvas"));
  const sets = drawn ? drawn.data.datasets.filter((set) => set.series && !set.isPart) : [];
  return [figure.id, sets.flatMap((set) => set.data.map(({ x, y }) => [set.label, x, y ?? null]))];
}))"""


@dataclass
class OpenedPage:
    """An opened page.

    Attributes:
        page: the browser's page.
        said: console messages, errors, dialogs and windows; expected to be empty.
        requests: requested URLs.
    """

    page: Page
    said: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        page = self.page
        page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        page.on("popup", lambda opened: self.said.append(f"window: {opened.url}"))
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("dialog", self._on_dialog)

    def _on_dialog(self, dialog: Any) -> None:
        self.said.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def texts(self, selector: str) -> list[str]:
        """Texts of the elements, in order."""
        return [" ".join(text.split()) for text in self.page.locator(selector).all_text_contents()]

    def rows(self, selector: str) -> list[list[str]]:
        """Cells of a table's body, visible or not."""
        found: list[list[str]] = self.page.locator(selector).evaluate(
            "table => [...table.tBodies[0].rows].map(row => [...row.cells].map(cell => cell.textContent))"
        )
        return found

    def charts(self) -> dict[str, list[list[Any]]]:
        """Data of each chart by its anchor: series, x and y of each point. All charts are drawn first."""
        for canvas in self.page.locator("canvas[data-chart]").all():
            canvas.scroll_into_view_if_needed()
        self.page.wait_for_function(
            "() => [...document.querySelectorAll('canvas[data-chart]')].every(canvas => Chart.getChart(canvas))"
        )
        found: dict[str, list[list[Any]]] = self.page.evaluate(_DRAWN)
        return found

    def faint(self, least: float = 4.5) -> list[dict[str, Any]]:
        """Texts with a contrast ratio below `least`, by WCAG 2."""
        found: list[dict[str, Any]] = self.page.evaluate(_CONTRASTS)
        assert found
        return [each for each in found if each["ratio"] < least]

    def unfold(self) -> None:
        """Open all collapsed elements, nested ones included."""
        closed = self.page.locator("details:not([open])")
        while closed.count():
            closed.evaluate_all("all => all.forEach((each) => { each.open = true; })")
            self.page.wait_for_timeout(20)  # its content comes with an event

    def overflow(self) -> int:
        """Number of pixels by which the page is wider than its window."""
        wider: int = self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        return wider

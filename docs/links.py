"""Checks the links of the built site that stay inside it: `make docs`."""

import html.parser
import pathlib
import sys
import urllib.parse


class _Page(html.parser.HTMLParser):
    """Collects the links and the anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes the attributes of a tag."""
        for name, value in attrs:
            if value and name in ("href", "src"):
                self.links.add(value)
            elif value and name == "id":
                self.anchors.add(value)


def main(folder: str) -> None:
    """Exits with an error that lists the links without a target."""
    root = pathlib.Path(folder).resolve()
    pages = {}
    for path in root.rglob("*.html"):
        pages[path] = _Page()
        pages[path].feed(path.read_text())
    broken = [
        f"{path.relative_to(root)}: {link}"
        for path, page in pages.items()
        for link in sorted(page.links)
        if not _has_target(path, link, pages)
    ]
    if broken:
        raise SystemExit("links without a target:\n" + "\n".join(broken))


def _has_target(
    path: pathlib.Path, link: str, pages: dict[pathlib.Path, _Page]
) -> bool:
    parts = urllib.parse.urlsplit(link)
    if parts.scheme or parts.netloc or link == "#":
        return True
    target = (path.parent / urllib.parse.unquote(parts.path)).resolve()
    target = path if not parts.path else target
    if parts.fragment and target in pages:
        return urllib.parse.unquote(parts.fragment) in pages[target].anchors
    return target.exists()


if __name__ == "__main__":
    main(sys.argv[1])

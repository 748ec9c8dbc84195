"""An HTML page as the tests read it."""

from __future__ import annotations

from html.parser import HTMLParser

_VOID = frozenset({"meta", "input", "col"})
_OPTIONAL = frozenset({"td"})  # whose end tag HTML lets one leave out


class ParsedPage(HTMLParser):
    """Elements with their attributes and own text; complains about what is not nested."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[list[str]] = []
        self._open: list[tuple[str, int]] = []
        self.feed(text)
        self.close()
        assert [tag for tag, _ in self._open if tag not in _OPTIONAL] == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("td", "tr") and self._open[-1][0] == "td":
            self._open.pop()
        self.elements.append((tag, dict(attrs)))
        self.texts.append([])
        if tag not in _VOID:
            self._open.append((tag, len(self.elements) - 1))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.texts.append([])

    def handle_endtag(self, tag: str) -> None:
        while self._open[-1][0] in _OPTIONAL and self._open[-1][0] != tag:
            self._open.pop()
        assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        for _, number in self._open:
            self.texts[number].append(data)

    def all(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [(attributes, "".join(texts)) for (name, attributes), texts
                in zip(self.elements, self.texts, strict=True) if name == tag]

    def by_id(self, name: str) -> str:
        (text,) = ("".join(texts) for (_, attributes), texts
                   in zip(self.elements, self.texts, strict=True) if attributes.get("id") == name)
        return text

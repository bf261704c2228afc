"""The style sheet of a report: light and dark, on a phone and on paper."""

import re

STYLE = """\
:root {
  color-scheme: light dark;
  --back: #ffffff; --text: #1c2128; --soft: #57606a; --line: #d0d7de;
  --card: #f6f8fa; --nonfinite: #b3141d; --tint: #fff0ee; --good: #0f5c2b;
  --mark: #fff3c4; --edge: #b58900;
  --positive: #2166ac; --negative: #b2182b;
  --nan: #000000; --posinf: #ff8c00; --neginf: #00b7c7;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #0f1318; --text: #e4e9ef; --soft: #9aa5b1; --line: #343c46;
    --card: #181d24; --nonfinite: #ff8f85; --tint: #34191b; --good: #7fe0a0;
    --mark: #3d3413; --edge: #e0b53c;
    --positive: #6db3f2; --negative: #ff8278;
    --nan: #ffffff; --posinf: #ffa033; --neginf: #2fd5e3;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--back); color: var(--text);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  overflow-wrap: anywhere; -webkit-text-size-adjust: 100%;
}
main { max-width: 52rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.5rem; line-height: 1.3; margin: 0 0 0.5rem; }
.nonfinite { color: var(--nonfinite); }
.lead { font-size: 1.15rem; font-weight: 600; }
h2, h3 {
  font-size: 0.8rem; letter-spacing: 0.06em; text-transform: uppercase;
  color: var(--soft); margin: 2rem 0 0.5rem;
}
p { margin: 0.5rem 0; }
.what { font-size: 1.05rem; }
.note { color: var(--soft); font-size: 0.9rem; }
code, pre, .small {
  font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono",
    monospace;
}
code, pre { font-size: 0.875em; }
pre {
  margin: 0.5rem 0; padding: 0.75rem 0; overflow-x: auto; line-height: 1.6;
  background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  overflow-wrap: normal; tab-size: 4;
}
pre.message, pre.code { padding: 0.75rem 1rem; }
pre.code { border-left: 4px solid var(--good); }
pre:focus-visible, summary:focus-visible { outline: 2px solid var(--positive); }
.source { display: grid; }
.diff { padding: 0.75rem 1rem; }
.diff ins, .diff del { display: block; text-decoration: none; }
.diff ins { color: var(--good); }
.diff del { color: var(--nonfinite); }
.sample { height: auto; }
.dark { fill: #000000; }
.shade { fill: #ffffff; shape-rendering: crispEdges; }
.outline { fill: none; stroke: var(--nonfinite); stroke-width: 3; }
.line { fill: none; stroke: var(--positive); stroke-width: 1.5; }
.past { display: flex; flex-wrap: wrap; gap: 0.75rem; margin-top: 0.75rem; }
.gap { stroke: var(--nonfinite); stroke-width: 2; }
.wide { overflow-x: auto; }
.wide th, .wide td {
  padding: 0.15rem 0.6rem; text-align: right; font-weight: normal; white-space: nowrap;
}
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; margin: 0; }
dt { color: var(--soft); } dd { margin: 0; }
.map { display: flex; flex-wrap: wrap; gap: 3px; padding: 0; list-style: none; }
.map li, .health {
  font-size: 0.75rem; line-height: 1.3; margin: 0; padding: 1px 6px;
  border: 1px solid var(--line); border-radius: 4px;
}
.map .finite { border-color: var(--good); color: var(--good); }
.map .first {
  background: var(--nonfinite); border-color: var(--nonfinite); color: var(--back);
  font-weight: 700;
}
.map .reached {
  background: var(--tint); border-color: var(--nonfinite); color: var(--nonfinite);
}
.map .untouched { color: var(--soft); border-style: dashed; }
.source span, .source mark {
  display: block; padding: 0 1rem 0 0; background: none; color: inherit;
  border-left: 4px solid transparent;
}
.source b { font-weight: normal; color: var(--soft); user-select: none; }
.source mark { background: var(--mark); border-left-color: var(--edge); }
.source mark b { color: inherit; }
.tensors {
  display: grid; gap: 1rem; align-items: start;
  grid-template-columns: repeat(auto-fit, minmax(min(14.5rem, 100%), 1fr));
}
figure {
  margin: 0; padding: 0.75rem; max-width: min(26rem, 100%);
  background: var(--card); border: 1px solid var(--line); border-radius: 8px;
}
figure.out { border-color: var(--nonfinite); }
figcaption { font-size: 0.875rem; margin-top: 0.25rem; max-width: 19rem; }
figcaption span { display: block; }
svg { display: block; max-width: 100%; }
.picture { height: auto; }
.picture path { shape-rendering: crispEdges; }
.frame, .zero { fill: var(--back); stroke: var(--line); }
.positive { fill: var(--positive); }
.negative { fill: var(--negative); }
.nan { fill: var(--nan); }
.posinf { fill: var(--posinf); }
.neginf { fill: var(--neginf); }
.level1 { fill-opacity: 0.15; } .level2 { fill-opacity: 0.25; }
.level3 { fill-opacity: 0.35; } .level4 { fill-opacity: 0.45; }
.level5 { fill-opacity: 0.55; } .level6 { fill-opacity: 0.65; }
.level7 { fill-opacity: 0.75; } .level8 { fill-opacity: 0.85; }
.ring { fill: none; stroke: var(--text); stroke-width: 2; }
.ring.halo { stroke: var(--back); stroke-width: 5; }
.legend {
  display: flex; flex-wrap: wrap; gap: 0.25rem 1rem; padding: 0; margin: 0.5rem 0;
  list-style: none; font-size: 0.875rem; color: var(--soft);
}
.key {
  display: inline-block; width: 0.8em; height: 0.8em; border: 1px solid var(--line);
}
.chain { width: 100%; max-width: 30rem; height: auto; }
.chain text { fill: var(--text); font-size: 14px; }
.chain .op { font-weight: 600; }
.chain .nonfinite { fill: var(--nonfinite); font-size: 12.5px; }
.chain .end { text-anchor: end; }
.chain .middle { text-anchor: middle; }
.chain .small { fill: var(--soft); font-size: 11.5px; }
.node { fill: var(--card); stroke: var(--line); }
.node.input { stroke-dasharray: 4 3; }
.node.result { stroke: var(--text); }
.node.first { fill: var(--tint); stroke: var(--nonfinite); stroke-width: 1.5; }
.arrow { fill: none; stroke: var(--soft); stroke-width: 1.5; }
details { margin: 0.75rem 0; }
summary { cursor: pointer; color: var(--soft); padding: 0.25rem 0; }
ol { padding-left: 2rem; }
li { margin: 0.25rem 0; }
@media (max-width: 30rem) {
  dl { grid-template-columns: 1fr; }
  dt { font-size: 0.8rem; margin-top: 0.3rem; }
}
@media print { pre { white-space: pre-wrap; } }
"""


def _scoped(style: str, scope: str) -> str:
    """Restricts each rule of a style sheet to the elements below a scope."""

    def selectors(found: re.Match[str]) -> str:
        head = found[1].strip()
        if head.startswith("@"):
            return f"\n{head} {{"
        parts = [part.strip() for part in head.split(",")]
        # The element itself has the colours, whatever those of the notebook are.
        return (
            "\n"
            + ", ".join(
                scope if part in {":root", "body"} else f"{scope} {part}"
                for part in parts
            )
            + " {"
        )

    return re.sub(r"([^{}]+)\{", selectors, style)


# The style of a part of a notebook, which leaves the rest of the notebook alone.
SCOPED = _scoped(
    STYLE
    + """\
body { padding: 0.75rem 1rem; border: 1px solid var(--line); border-radius: 8px; }
h1 { font-size: 1.1rem; }
table { border-collapse: collapse; font-size: 0.875rem; color: inherit; }
tr, th, td { background: var(--back); color: var(--text); }
th, td { text-align: right; padding: 0.15rem 0.75rem; }
th:first-child, td:first-child { text-align: left; min-width: 6rem; }
th { overflow-wrap: normal; }
td { vertical-align: top; }
.words { text-align: left; }
th { border-bottom: 1px solid var(--line); }
dt, dd { float: none; width: auto; padding: 0; font-weight: normal; }
""",
    ".tfsafe",
)

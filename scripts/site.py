"""What MkDocs needs to show these pages as they are read in the repository. Named in mkdocs.yml.

Laws of this file:
- Pages are written for the repository; nothing is said here that is not there.
- The README, the changelog and the habits are pages of the site; links to other files of the repository become names.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
AT_ROOT = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
"""Pages that lie at the root of the repository, and where they are in the site."""
LINK = re.compile(r"(!?)\[([^\]]+)\]\(([^)#\s]*)(#[^)\s]*)?\)")
FENCE = re.compile(r"^(`{3,}\w+) .*$", re.MULTILINE)
"""Code blocks say after their language how the tests run them."""


def on_files(files: Files, config: Any) -> Files:
    """Add the pages at the root."""
    for name, place in AT_ROOT.items():
        files.append(File.generated(config, place, content=(ROOT / name).read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The text of a page with links as the site has them."""
    at_root = page.file.src_uri in AT_ROOT.values()

    def link(found: re.Match[str]) -> str:
        mark, text, target, anchor = found.groups()
        if not target or "://" in target:
            return found[0]
        path = target if at_root else f"docs/{target}"
        while "/../" in path:
            path = re.sub(r"[^/]+/\.\./", "", path, count=1)
        if path in AT_ROOT:
            return f"{mark}[{text}]({AT_ROOT[path]}{anchor or ''})"
        if path.startswith("docs/"):
            return f"{mark}[{text}]({path.removeprefix('docs/')}{anchor or ''})"
        return text if "`" in text else f"`{path}`" if text == path else text

    return LINK.sub(link, FENCE.sub(r"\1", markdown))

#!/usr/bin/env python3
"""Checks that the documents name what is there, and nothing outside.

    python3 tools/check_docs.py [ROOT]

Reads the files of ROOT (this repository) that git knows, or all of an unpacked
archive, and prints FILE:LINE of

- a relative link of a document whose file or heading is not there,
- a path or a source file that a document names and that is not there,
- a number of docs/semantics.md that some file cites and that it does not have,
- a test named in docs/semantics.md that is not in the file named before it,
- a reference to something outside of the repository.

Exit code 1 when there is one, else 0.
"""
import pathlib
import re
import subprocess
import sys

SEMANTICS = "docs/semantics.md"

OUTSIDE = {
    "../shared": re.compile(r'\.\./shared|parent\s*/\s*"shared'),
    "/work": re.compile(r"(?<![\w.*)}/-])/work(?!\w)"),
    "seams": re.compile(r"\bseams?\b", re.IGNORECASE),
}
# Files that may name them: the run of all tests, and what this check is.
MAY_NAME = {
    ".ci/run": {"../shared"},
    "tools/check_docs.py": set(OUTSIDE),
    "tests/python/test_check_docs.py": set(OUTSIDE),
}

LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
FENCE = re.compile(r"^ *```")
# "semantics.md 3.1", "semantics 3.1, 8.11", also over the end of a comment line.
CITATION = re.compile(
    r"semantics(?:\.md)?(?:\s|[/#*])+"
    r"(\d+(?:\.\d+)?\b(?:(?:,\s*|\s+and\s+)\d+\.\d+\b)*)", re.IGNORECASE)
NUMBERED = re.compile(r"(?:#+ |\| )(\d+(?:\.\d+)?)\b")
SUITE_TEST = re.compile(r"([A-Z]\w*)\.([A-Z]\w*)")
PYTHON_TEST = re.compile(r"test_\w+")
SOURCE_FILE = re.compile(r"[\w-]+\.(?:h|cpp|cu|cuh|cmake)")
# Names that stand for others.
PLACEHOLDER = re.compile(r"NOUN|\bexample\.")


def list_files(root):
    """Paths of all files, relative to the root."""
    git = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--cached", "--others",
         "--exclude-standard"], capture_output=True, check=False)
    if git.returncode == 0 and git.stdout:
        names = git.stdout.decode().rstrip("\0").split("\0")
    else:  # an unpacked archive
        names = [str(path.relative_to(root)) for path in root.rglob("*")]
        names = [n for n in names if not n.startswith(("build/", ".venv/"))]
    return sorted({n for n in names if (root / n).is_file()})


def slug(heading):
    """The anchor of a heading, as repository hosts make it."""
    plain = re.sub(r"[`*]|\[([^]]*)\]\([^)]*\)", r"\1", heading.strip().lower())
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


class Documents:
    def __init__(self, root):
        self.root = root
        self.texts = {}
        for name in list_files(root):
            try:
                self.texts[name] = (root / name).read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
        self.names = {pathlib.PurePosixPath(n).name for n in self.texts}
        # The first part of a path that means one of ours.
        self.tops = {n.split("/")[0] for n in self.texts if "/" in n}
        self.layers = {
            n.split("/")[1] for n in self.texts
            if n.startswith("src/") and n.count("/") > 1}
        self.path = re.compile(
            r"(?<![\w./-])(?:%s)/[\w./-]*\w(?![\w/{*<])" %
            "|".join(map(re.escape, sorted(self.tops | {"seqconv"}))))
        self.errors = []

    def complain(self, name, number, message):
        self.errors.append(f"{name}:{number}: {message}")

    def documents(self):
        """Name and text of each document."""
        for name, text in self.texts.items():
            in_docs = name.startswith("docs/") or "/" not in name
            if in_docs and name.endswith(".md"):
                yield name, text

    def headings(self, name):
        lines = self.texts.get(name, "").splitlines()
        return {slug(line.lstrip("#")) for line in lines if line[:1] == "#"}

    def check_link(self, name, number, link):
        if re.match(r"[a-z]+:", link):
            return
        target, _, anchor = link.partition("#")
        path = self.root / name
        if target:
            path = (path.parent / target).resolve()
        if not path.exists() or not path.is_relative_to(self.root):
            self.complain(name, number, f"the link {link} leads nowhere")
            return
        other = str(path.relative_to(self.root))
        if anchor and anchor not in self.headings(other):
            self.complain(name, number, f"{other} has no heading #{anchor}")

    def is_there(self, path):
        """Whether a path of a document exists, a header's name or a stem."""
        path = path.rstrip("/")
        for folder in ("", "src", "include"):
            place = self.root / folder / path
            if place.exists() or any(place.parent.glob(place.name + ".*")):
                return True
        return False

    def check_paths(self, name, number, line, fenced):
        named = set(self.path.findall(LINK.sub("", line)))
        for code in [] if fenced else CODE.findall(line):
            if PLACEHOLDER.search(code):
                continue
            if SOURCE_FILE.fullmatch(code) and code not in self.names:
                self.complain(name, number, f"no file is called {code}")
            if re.fullmatch(r"[\w-]+(/[\w.-]+)+", code):
                if code.split("/")[0] in self.layers:
                    named.add(code)
        for path in sorted(named):
            if not PLACEHOLDER.search(path) and not self.is_there(path):
                self.complain(name, number, f"{path} is not there")

    def check_documents(self):
        for name, text in self.documents():
            fenced = False
            for number, line in enumerate(text.splitlines(), 1):
                if FENCE.match(line):
                    fenced = not fenced
                if not fenced:
                    for link in LINK.findall(CODE.sub("", line)):
                        self.check_link(name, number, link)
                self.check_paths(name, number, line, fenced)

    def check_citations(self):
        there = {match[1] for line in self.texts.get(SEMANTICS, "").splitlines()
                 if (match := NUMBERED.match(line))}
        for name, text in self.texts.items():
            if name in MAY_NAME and "seams" in MAY_NAME[name]:
                continue
            for match in CITATION.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                for cited in re.findall(r"\d+(?:\.\d+)?", match[1]):
                    if cited not in there:
                        self.complain(
                            name, line, f"{SEMANTICS} has no number {cited}")

    def has_test(self, file, test):
        text = self.texts.get(file, "")
        suite = SUITE_TEST.fullmatch(test)
        if suite:
            return re.search(
                r"\bTEST(?:_F|_P)?\(\s*%s,\s*%s\s*\)" % suite.groups(), text)
        return re.search(r"\bdef %s\(" % test, text)

    def check_tests(self):
        file = None
        for number, line in enumerate(
                self.texts.get(SEMANTICS, "").splitlines(), 1):
            for code in CODE.findall(line):
                if code.startswith("tests/"):
                    file = code
                elif SUITE_TEST.fullmatch(code) or PYTHON_TEST.fullmatch(code):
                    if not self.has_test(file, code):
                        self.complain(
                            SEMANTICS, number, f"{file} has no test {code}")

    def check_outside(self):
        for name, text in self.texts.items():
            for number, line in enumerate(text.splitlines(), 1):
                for what, pattern in OUTSIDE.items():
                    if what in MAY_NAME.get(name, ()):
                        continue
                    if pattern.search(line):
                        self.complain(
                            name, number,
                            f"names {what}, which is not in the repository")

    def check(self):
        self.check_documents()
        self.check_citations()
        self.check_tests()
        self.check_outside()
        return self.errors


def main(arguments):
    root = pathlib.Path(
        arguments[0] if arguments else pathlib.Path(__file__).parents[1])
    documents = Documents(root.resolve())
    if not any(documents.documents()):
        sys.exit(f"check_docs.py: no documents under {root}")
    errors = documents.check()
    for error in errors:
        print(error)
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main(sys.argv[1:])

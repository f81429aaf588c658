#!/usr/bin/env python3
"""Tells what parts of others the packages of a release hold, with versions and licences.

    python3 tools/make_bom.py bom OUTPUT PACKAGE...    an SPDX 2.3 document of these files
    python3 tools/make_bom.py licences OUTPUT          the licences of what is compiled in

NOTICE names the parts, PARTS says which Debian package each is taken from, whose version dpkg
tells, and the packages' own programs and libraries which of them are linked when they are
loaded. A part that NOTICE and PARTS do not both name is an error, and so is a library that a
package needs and PARTS does not know. SOURCE_DATE_EPOCH is the document's time.
"""
import dataclasses
import datetime
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
AUTHORS = "Organization: the seqconv authors"
PUBLIC_DOMAIN = "LicenseRef-public-domain"
UNICODE = "Unicode-DFS-2016"


@dataclasses.dataclass(frozen=True)
class Part:
    name: str  # as NOTICE has it
    spdx: str
    debian: str = ""  # the package that it is compiled or linked from
    soname: str = ""  # beginning of the shared library's name; headers have none
    within: str = ""  # another part, whose copy of it is meant
    program_only: bool = False  # not in the library for other programs
    headers_of_many: bool = False  # Debian's file tells 50,000 lines of authors: the licence does
    shared_only: bool = False  # Debian has it as a shared library alone: else it is left out

    @property
    def id(self):
        return "SPDXRef-Part-" + re.sub(r"[^A-Za-z0-9]+", "-", self.name.replace("+", "p"))


PARTS = (
    Part("LibTorch (PyTorch)", "BSD-3-Clause", soname="libtorch"),
    Part("Highway", "Apache-2.0 OR BSD-3-Clause", "libhwy-dev"),
    Part("SentencePiece", "Apache-2.0", "libsentencepiece-dev", "libsentencepiece"),
    Part("Abseil", "Apache-2.0", "libsentencepiece-dev", within="SentencePiece"),
    Part("Protocol Buffers", "BSD-3-Clause", "libsentencepiece-dev", within="SentencePiece"),
    Part("Darts-clone", "BSD-3-Clause", "libsentencepiece-dev", within="SentencePiece"),
    Part("Boost", "BSL-1.0", "libboost1.81-dev", program_only=True, headers_of_many=True),
    Part("Gumbo", "Apache-2.0", "libgumbo-dev", "libgumbo.so", program_only=True),
    Part("CLD2", "Apache-2.0", "libcld2-dev", "libcld2.so", program_only=True, shared_only=True),
    Part("libsodium", "ISC", "libsodium-dev", "libsodium.so", program_only=True),
    Part("Unicode CLDR", UNICODE, "unicode-cldr-core", program_only=True),
    Part("utf8proc", f"MIT AND {UNICODE}", "libutf8proc-dev", "libutf8proc.so"),
    Part("Unicode Character Database", UNICODE, "unicode-data"),
    Part("PCRE2", "BSD-3-Clause", "libpcre2-dev", "libpcre2-8.so"),
    Part("zlib", "Zlib", "zlib1g-dev", "libz.so"),
    Part("liblzma (XZ Utils)", PUBLIC_DOMAIN, "liblzma-dev", "liblzma.so"),
    Part("Zstandard", "BSD-3-Clause", "libzstd-dev", "libzstd.so"),
    Part("JSON for Modern C++", "MIT", "nlohmann-json3-dev"),
    Part("toml++", "MIT", "libtomlplusplus-dev"),
    Part("CLI11", "BSD-3-Clause", "libcli11-dev", program_only=True),
    Part("GCC runtime libraries", "GPL-3.0-or-later WITH GCC-exception-3.1", "libstdc++-12-dev",
         "libstdc++.so"),
)  # fmt: skip
# Libraries that every system has on which the packages run, and those that LibTorch brings.
SYSTEM = re.compile(r"(libc|libm|libdl|libpthread|librt|libgcc_s|ld-linux[\w-]*)\.so")
OF_TORCH = re.compile(r"(libtorch|libc10|libgomp|libcud|libcupti|libnccl|libmpi|libseqconv)")


def parts_of_notice():
    """Names of the parts that are linked or compiled in."""
    text = (ROOT / "NOTICE").read_text(encoding="utf-8")
    section = text.partition("Linked into the programs")[2].partition("LibTorch's CPU")[0]
    rows = re.findall(r"^  (\S.{0,22})  +(\S.*)$", section, re.MULTILINE)
    names = []
    for name, licence in rows:
        if licence.startswith("("):
            names[-1] += " " + name.strip()
        else:
            names.append(name.strip())
    return names


def check_notice():
    told, known = set(parts_of_notice()), {part.name for part in PARTS}
    if told != known:
        sys.exit("make_bom.py: NOTICE and PARTS differ in " + ", ".join(sorted(told ^ known)))


@functools.cache
def debian_sources():
    """(source package, its version) of the packages that parts are taken from."""
    packages = sorted({part.debian for part in PARTS if part.debian})
    command = ["dpkg-query", "-W", "-f", "${Package} ${source:Package} ${source:Version}\n"]
    out = subprocess.run([*command, *packages], check=True, stdout=subprocess.PIPE, text=True)
    return {name: (source, version) for name, source, version in map(str.split,
                                                                     out.stdout.splitlines())}


def licence_of(part):
    """The copyright file of a part's package, or the text of its licence in it."""
    file = pathlib.Path("/usr/share/doc", part.debian, "copyright")
    text = file.read_text(encoding="utf-8")
    if not part.headers_of_many:
        return text
    found = re.search(rf"^License: {re.escape(part.spdx)}\n((?: .*\n)+)", text, re.MULTILINE)
    if not found:
        sys.exit(f"make_bom.py: {file} does not hold the text of {part.spdx}")
    return re.sub(r"^ \.?", "", found[1], flags=re.MULTILINE)


def write_licences(output):
    """The copyright files of Debian's packages, once each, and the one licence to which they
    refer and that must be given."""
    text, seen = [], set()
    for part in PARTS:
        if not part.debian or (source := debian_sources()[part.debian][0]) in seen:
            continue
        seen.add(source)
        names = ", ".join(p.name for p in PARTS if p.debian == part.debian)
        text.append(f"{'=' * 78}\n{names}\n{'=' * 78}\n\n{licence_of(part)}")
    apache = pathlib.Path("/usr/share/common-licenses/Apache-2.0").read_text(encoding="utf-8")
    text.append(f"{'=' * 78}\nApache-2.0\n{'=' * 78}\n{apache}")
    pathlib.Path(output).write_text("\n".join(text), encoding="utf-8")


def files_in(package, folder):
    """Unpacks a wheel or a Debian package."""
    if package.suffix == ".whl":
        zipfile.ZipFile(package).extractall(folder)
    elif package.suffix == ".deb":
        subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]


def needed_by(file):
    """Libraries that a program or library is loaded with; None for other files."""
    with file.open("rb") as stream:
        if stream.read(4) != b"\x7fELF":
            return None
    out = subprocess.run(["readelf", "-dW", file], check=True, capture_output=True, text=True)
    return re.findall(r"\(NEEDED\).*\[(.*)\]", out.stdout)


class Contents:
    """The parts that a package is linked with when it is loaded, and those that it holds."""

    def __init__(self, package):
        self.needed = set()
        held, has_program, has_library, own = [], False, False, set()
        with tempfile.TemporaryDirectory() as folder:
            for file in files_in(package, pathlib.Path(folder)):
                libraries = needed_by(file)
                if libraries is None:
                    continue
                own.add(re.sub(r"-[0-9a-f]{8}\.", ".", file.name))
                self.needed |= self.parts_needed(package, libraries)
                has_library |= "seqconv_runtime" in file.name or "seqconv_engine" in file.name
                has_program |= file.name == "seqconv"
                held.append(file.name)
        # A bundled library is held, whoever needs it.
        bundled = {part for part in self.needed if any(n.startswith(part.soname) for n in own)}
        self.needed -= bundled
        self.held = bundled | self.parts_held(bool(held), has_library, has_program)

    @staticmethod
    def parts_needed(package, libraries):
        found = set()
        for library in libraries:
            plain = re.sub(r"-[0-9a-f]{8}\.", ".", library)
            parts = {part for part in PARTS if part.soname and plain.startswith(part.soname)}
            if not parts and not SYSTEM.match(plain) and not OF_TORCH.match(plain):
                sys.exit(f"make_bom.py: {package.name} needs {library}, which PARTS does not tell")
            found |= parts
        return found

    def parts_held(self, any_code, has_library, has_program):
        """Parts that are linked statically or compiled in from headers."""
        if not any_code:
            return set()
        whole = has_library or has_program
        needed = {part.name for part in self.needed}
        return {
            part for part in PARTS
            if (whole or part.name == "Highway") and part not in self.needed
            and (has_program or not part.program_only) and not part.shared_only
            and part.name != "LibTorch (PyTorch)" and part.within not in needed
        }  # fmt: skip


def spdx_part(part):
    package = {
        "SPDXID": part.id, "name": part.name, "filesAnalyzed": False,
        "downloadLocation": "NOASSERTION", "licenseConcluded": part.spdx,
        "licenseDeclared": part.spdx, "copyrightText": "NOASSERTION", "supplier": "NOASSERTION",
    }  # fmt: skip
    if part.within:
        package["comment"] = f"The copy within {part.within}"
    if part.debian and not part.within:
        source, version = debian_sources()[part.debian]
        package["versionInfo"] = version
        package["sourceInfo"] = f"Debian's source package {source} {version}"
        package["supplier"] = "Organization: Debian"
        package["externalRefs"] = [{
            "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
            "referenceLocator": f"pkg:deb/debian/{source}@{version.replace('+', '%2B')}?arch=source",
        }]  # fmt: skip
    return package


def spdx_file(path, version):
    """One file of the release."""
    return {
        "SPDXID": "SPDXRef-File-" + re.sub(r"[^A-Za-z0-9.]+", "-", path.name),
        "name": path.name, "packageFileName": path.name, "versionInfo": version,
        "filesAnalyzed": False, "downloadLocation": "NOASSERTION", "licenseConcluded": "MIT",
        "licenseDeclared": "MIT", "copyrightText": "Copyright (c) 2026 the seqconv authors",
        "supplier": AUTHORS,
        "checksums": [{"algorithm": "SHA256",
                       "checksumValue": hashlib.sha256(path.read_bytes()).hexdigest()}],
    }  # fmt: skip


def describe(files, version):
    """The document of these files."""
    packages, relations, used = [], [], set()

    def relate(one, kind, other):
        relations.append({"spdxElementId": one, "relationshipType": kind,
                          "relatedSpdxElement": other})  # fmt: skip

    for file in files:
        package = spdx_file(file, version)
        packages.append(package)
        relate("SPDXRef-DOCUMENT", "DESCRIBES", package["SPDXID"])
        contents = Contents(file)
        for kind, parts in (("STATIC_LINK", contents.held), ("DYNAMIC_LINK", contents.needed)):
            for part in sorted(parts, key=PARTS.index):
                used.add(part)
                relate(package["SPDXID"], kind, part.id)
    for part in sorted(used, key=PARTS.index):
        packages.append(spdx_part(part))
        if part.within:
            holder = next(other for other in PARTS if other.name == part.within)
            relate(holder.id, "CONTAINS", part.id)
    digest = hashlib.sha256(json.dumps(packages, sort_keys=True).encode()).hexdigest()
    now = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")),
                                          datetime.timezone.utc)  # fmt: skip
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"seqconv-{version}",
        "documentNamespace": f"https://seqconv.invalid/spdx/{version}/{digest}",
        "creationInfo": {"created": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
                         "creators": [AUTHORS, f"Tool: make_bom.py-{version}"]},
        "packages": packages, "relationships": relations,
        "hasExtractedLicensingInfos": [{
            "licenseId": PUBLIC_DOMAIN, "name": "Public domain",
            "extractedText": "The authors of liblzma have put it into the public domain."}],
    }  # fmt: skip


def main():
    arguments = sys.argv[1:]
    if len(arguments) < 2 or arguments[0] not in ("bom", "licences"):
        sys.exit(__doc__)
    check_notice()
    if arguments[0] == "licences":
        write_licences(arguments[1])
        return
    header = (ROOT / "include/seqconv/version.h").read_text(encoding="utf-8")
    version = re.search(r'SEQCONV_VERSION "([\d.]+)"', header)[1]
    document = describe([pathlib.Path(name) for name in arguments[2:]], version)
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    pathlib.Path(arguments[1]).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

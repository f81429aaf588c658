"""The bill of materials: what it tells of packages, and what it refuses."""
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import make_bom

LIBRARY = "libseqconv_runtime.so.1"


class Bill(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def compile(self, name, *needed):
        """A shared library without code that needs these."""
        for library in needed:
            self.compile(library)
        file = self.folder / name
        subprocess.run(["gcc", "-shared", "-nostdlib", "-x", "c", os.devnull, "-o", file,
                        f"-Wl,-soname,{name}", "-x", "none", "-Wl,--no-as-needed",
                        *(self.folder / library for library in needed)], check=True)  # fmt: skip
        return file.read_bytes()

    def wheel(self, **needed):
        """A wheel of files and what each needs."""
        wheel = self.folder / "seqconv-1.2.3-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("seqconv/__init__.py", "")
            for name, libraries in needed.items():
                name = LIBRARY if name == "library" else name
                archive.writestr(f"seqconv/{name}", self.compile(name, *libraries))
        return wheel

    def links(self, file):
        """Names of the parts by how they are linked, and the document."""
        document = make_bom.describe([file], "1.2.3")
        names = {package["SPDXID"]: package["name"] for package in document["packages"]}
        links = {"STATIC_LINK": set(), "DYNAMIC_LINK": set(), "CONTAINS": set()}
        for relation in document["relationships"]:
            if relation["relationshipType"] in links:
                links[relation["relationshipType"]].add(names[relation["relatedSpdxElement"]])
        return links, document

    def test_notice_and_the_parts_agree(self):
        make_bom.check_notice()
        self.assertIn("Unicode Character Database", make_bom.parts_of_notice())

    def test_what_is_not_needed_is_held(self):
        links, document = self.links(self.wheel(library=["libc.so.6", "libgcc_s.so.1"]))
        all_parts = {part.name for part in make_bom.PARTS} - {"LibTorch (PyTorch)", "CLD2"}
        of_program = {"CLI11", "Boost", "Gumbo", "libsodium", "Unicode CLDR"}
        self.assertEqual(links["STATIC_LINK"], all_parts - of_program)
        self.assertEqual(links["DYNAMIC_LINK"], set())
        self.assertEqual(links["CONTAINS"], {"Abseil", "Protocol Buffers", "Darts-clone"})
        links, _ = self.links(self.wheel(seqconv=["libc.so.6"]))
        self.assertEqual(links["STATIC_LINK"], all_parts)
        versions = {part["name"]: part.get("versionInfo") for part in document["packages"]}
        self.assertRegex(versions["zlib"], r"^1:1\.\d")
        self.assertEqual(versions["seqconv-1.2.3-py3-none-any.whl"], "1.2.3")

    def test_libraries_of_the_system_are_told_apart(self):
        links, _ = self.links(self.wheel(library=["libsentencepiece.so.0", "libz.so.1"]))
        self.assertEqual(links["DYNAMIC_LINK"], {"SentencePiece", "zlib"})
        self.assertFalse(links["STATIC_LINK"] & {"SentencePiece", "zlib", "Abseil"})
        self.assertIn("PCRE2", links["STATIC_LINK"])

    def test_an_unknown_library_is_refused(self):
        wheel = self.wheel(library=["libother.so.3"])
        with self.assertRaisesRegex(SystemExit, "needs libother.so.3, which PARTS does not tell"):
            self.links(wheel)

    def test_files_have_their_checksums_and_the_same_gives_the_same(self):
        archive = self.folder / "seqconv-1.2.3.tar.gz"
        archive.write_bytes(b"sources")
        links, document = self.links(archive)
        self.assertFalse(any(links.values()))
        (package,) = document["packages"]
        self.assertEqual(package["checksums"][0]["checksumValue"],
                         hashlib.sha256(b"sources").hexdigest())  # fmt: skip
        self.assertEqual(self.links(archive)[1], document)

    def test_licences_are_given_in_full(self):
        file = self.folder / "parts"
        make_bom.write_licences(file)
        text = file.read_text(encoding="utf-8")
        for words in ("SentencePiece, Abseil, Protocol Buffers, Darts-clone\n", "Taku Kudo",
                      "Apache License\n", "Zstandard", "Niels Lohmann",
                      "Boost Software License - Version 1.0 - August 17th, 2003\n\nPermission"):  # fmt: skip
            self.assertIn(words, text)
        self.assertLess(len(text), 200_000)


if __name__ == "__main__":
    unittest.main(verbosity=2)

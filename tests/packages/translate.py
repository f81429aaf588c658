"""The translations of try_program.sh by the Python package: translate.py MODELS"""
import sys

from seqconv import Translator

for model in ("translation_1", "translation_2"):
    for found in Translator(f"{sys.argv[1]}/{model}").translate(["dalan mira", "tolu"]):
        print(found.text)

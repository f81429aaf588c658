#!/usr/bin/env bash
# Checks that every C++ file is formatted as .clang-format says.
#   bash tools/check_format.sh         # prints what differs, exit code 1
#   bash tools/check_format.sh --fix   # formats in place
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! command -v clang-format > /dev/null; then
  echo "check_format.sh: clang-format is missing (Debian: clang-format)" >&2
  exit 1
fi
mode=(--dry-run -Werror)
case "${1:-}" in
  "") ;;
  --fix) mode=(-i) ;;
  *)
    echo "usage: check_format.sh [--fix]" >&2
    exit 2
    ;;
esac

list_files() {
  if git rev-parse --is-inside-work-tree > /dev/null 2>&1; then
    git ls-files -z --cached --others --exclude-standard \
      -- '*.h' '*.cpp' '*.cu' '*.cuh'
  else  # an unpacked archive
    find include src cli tests benchmarks \
      \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) \
      -print0
  fi
}

# A file that git still tracks may have been deleted in the work tree.
files=()
while IFS= read -r -d '' file; do
  if [[ -f "$file" ]]; then
    files+=("$file")
  fi
done < <(list_files)
if ((${#files[@]} == 0)); then
  echo "check_format.sh: found no C++ files" >&2
  exit 1
fi
clang-format "${mode[@]}" --style=file "${files[@]}"

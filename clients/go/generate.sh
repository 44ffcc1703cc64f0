#!/bin/sh
# Generates lot/v1 from the contract; with --check it writes nothing and exits 1 where lot/v1 is not
# what the contract says. Needs go and buf, which `make setup` in the repository installs (or name
# one by BUF). The plugins' versions are in buf.gen.yaml.
set -eu
cd "$(dirname "$0")"

buf=${BUF:-../../.venv/bin/buf}
command -v "$buf" >/dev/null || buf=buf
if ! command -v "$buf" >/dev/null; then
  echo "buf is not installed; run \`make setup\`, or name it: BUF=/path/to/buf" >&2
  exit 1
fi

made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
"$buf" generate --output "$made"
if [ "${1:-}" = --check ]; then
  diff -r "$made/lot/v1" lot/v1 >/dev/null || {
    diff -rq "$made/lot/v1" lot/v1 || true
    echo "clients/go/lot/v1 is not what proto/ says; run clients/go/generate.sh" >&2
    exit 1
  }
else
  rm -rf lot/v1
  mv "$made/lot/v1" lot/v1
fi

#!/usr/bin/env bash
# Serves the judge. HOST, PORT, WORKERS and LOG_LEVEL are uvicorn's; the judge reads the rest itself.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec "${PYTHON:-python}" -m uvicorn online_judge:app \
    --host "${HOST:-127.0.0.1}" --port "${PORT:-12017}" \
    --workers "${WORKERS:-1}" --log-level "${LOG_LEVEL:-debug}"

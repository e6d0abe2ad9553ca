# shellcheck shell=bash
# Functions shared by ./quickstart, ./run-tests and the scripts: phases with progress, and the build. Sourced, not executed.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
logs=$root/build/logs

die() {
  printf '%s: error: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# A compile job needs up to 1.5 GB: use fewer jobs than cores if memory is short.
job_count() {
  local cores kilobytes limit
  cores=$(nproc)
  kilobytes=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
  limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo max)
  if [[ $limit =~ ^[0-9]+$ ]] && ((limit / 1024 < kilobytes)); then kilobytes=$((limit / 1024)); fi
  local max_jobs=$((kilobytes / 1500000))
  ((max_jobs < 1)) && max_jobs=1
  echo $((cores < max_jobs ? cores : max_jobs))
}

# Rewrites one terminal line with the seconds and the last "done/total" of the log until its parent stops it.
tick() {
  local parent=$1 what=$2 log=$3 started=$SECONDS count
  while kill -0 "$parent" 2>/dev/null; do
    count=$(tail -c 4000 "$log" 2>/dev/null | grep -aoE '^ *\[?[0-9]+/[0-9]+' | tail -n 1 | tr -d ' [' || true)
    printf '\r\033[K%s … %d s %s' "$what" $((SECONDS - started)) "$count" >&2
    sleep 0.3
  done
}

# phase WHAT LOG COMMAND…: runs COMMAND with its output in LOG; prints WHAT and the seconds it took. Returns its status.
phase() {
  local what=$1 log=$2 started=$SECONDS status=0 ticker=
  shift 2
  mkdir -p "$(dirname "$log")"
  : >"$log"
  if [ -t 2 ]; then
    tick $$ "$what" "$log" &
    ticker=$!
  else
    printf '%s … ' "$what" >&2
  fi
  "$@" >"$log" 2>&1 </dev/null || status=$?
  if [ -n "$ticker" ]; then
    kill "$ticker" 2>/dev/null || true
    wait "$ticker" 2>/dev/null || true
    printf '\r\033[K%s … ' "$what" >&2
  fi
  local outcome=
  ((status == 0)) || outcome=" (failed)"
  printf '%d s%s\n' $((SECONDS - started)) "$outcome" >&2
  return "$status"
}

# must WHAT LOG COMMAND…: a phase that shows the end of its log and exits the script if it fails.
must() {
  phase "$@" && return
  tail -n 40 "$2" >&2
  die "failed: $1 (full log: $2)"
}

# build PRESET [TARGET [CMAKE OPTIONS…]]: configures and builds; with nothing to do this takes about a second.
build() {
  local preset=$1 target=${2:-all}
  must "Configuring $preset" "$logs/configure-$preset.log" cmake -S "$root" --preset "$preset" "${@:3}"
  must "Building $preset" "$logs/build-$preset.log" \
    cmake --build "$root/build/$preset" --parallel "$(job_count)" --target "$target"
}

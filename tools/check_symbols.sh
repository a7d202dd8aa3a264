#!/bin/bash
# Looks at the symbols of libyoke.so ($1) and libyoke.a ($2): global names begin with yk_, the shared library exports what
# include/yoke declares and nothing else, nothing is left undefined, and no code of ours runs before main().
set -euo pipefail
cd "$(dirname "$0")/.."
shared=$1 static=$2 bad=0
complain() { echo "$*"; bad=$((bad + 1)); }

declared=$(cat include/yoke/*.h | grep -oE '\byk_[a-z0-9_]+ *\(' | tr -d ' (' | sort -u)
exported=$(nm -D --defined-only "$shared" | awk 'NF == 3 && $2 != "A" { print $3 }' | sort -u)
for name in $exported; do
  [[ $name == yk_* && $name != yk__* ]] || complain "libyoke.so exports $name"
  grep -qx "$name" <<<"$declared" || complain "$name is exported, but no header in include/yoke declares it"
done

for name in $(nm --defined-only --extern-only "$static" 2>/dev/null | awk 'NF == 3 { print $3 }' | sort -u); do
  [[ $name == yk_* || $name == __asan* || $name == __odr_asan* ]] || complain "global symbol without yk_: $name"
done

for name in $(nm -D --undefined-only "$shared" | awk '{ print $2 }' | grep '^yk_' || true); do
  complain "$name is used but not defined"
done

constructors=$(objdump -h "$static" 2>/dev/null | awk '$2 ~ /^\.(init_array|ctors|preinit_array)/ { print $2 }' | sort | uniq -c)
[ -z "$constructors" ] || complain "code that runs before main(): $constructors"

echo "symbols: $(wc -w <<<"$exported") exported, $bad errors"
[ $bad -eq 0 ]

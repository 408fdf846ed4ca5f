# exits.sh CODE COMMAND...: succeeds if the command ends with that exit code. What the command prints on either stream goes to standard output.
expected=$1
shift
"$@" 2>&1
found=$?
[ "$found" -eq "$expected" ] || { echo "exit code $found, expected $expected" >&2; exit 1; }

# The position of what is wrong, exit code 65, and no output file.
try() {
  printf "$1" >bad
  peakproof plan bad -o out --certificate proof
  echo "exit $?" >&2
}
try ''
try 'hello'
try '{"peakproof":1,\n "statements":[{"reads":[0]}],\n "storages":[]}'
try '{"peakproof":1,\n "statements":[{"reads":[0]}],\n "storages":[{"bytes":-1}]}'
try '{"peakproof":1,\n "statements":[\n'
try '\x1c\x00\x00\x00TFL3'
ls

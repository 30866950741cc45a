# A saved session is a model of several programs.
mkdir s
peakproof convert $DATA/programs/googlenet.infer.0.json -o s/googlenet.json
peakproof convert $DATA/programs/t5.infer.0.json -o s/t5.json
cat >s/index.json <<'EOF'
{"peakproof_session": 1, "torch": "2.13.0", "programs": [
 {"name": "googlenet", "state": "installed", "program": "..."},
 {"name": "odd", "state": "refused"},
 {"name": "t5", "state": "installed", "program": "..."}]}
EOF
peakproof plan s --certificate proof
ls proof
peakproof why s --program t5 | head -3
peakproof plan s -o out
echo exit $?
echo '{' >s/t5.json
peakproof plan s
echo exit $?
rm s/t5.json
peakproof plan s
echo exit $?
for index in '{"peakproof_session": 2, "programs": []}' '{"peakproof_session": 1, "programs": []}' '[' '[]' \
  '{"peakproof_session": 1, "programs": [{"name": "../t5", "program": 1}]}' \
  "$(printf '[%.0s' $(seq 2000))"; do
  echo "$index" >s/index.json
  peakproof plan -q s
  echo exit $?
done
mkdir empty
peakproof plan empty
echo exit $?

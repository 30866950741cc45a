# Unknown keys are told one by one up to a number, and do not take quadratic time.
$PYTHON - >p.json <<'END'
keys = ",".join(f'"k{i}":{i}' for i in range(100_000))
print('{"peakproof":1,"statements":[{"writes":[0]}],"storages":[{"bytes":4}],', keys, "}", sep="")
END
timeout 60 peakproof convert p.json

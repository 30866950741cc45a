cp $DATA/remat/late.json m.json
# Five macs of 3005 are 0.166%.
for limit in 0 4 5 0.16% 0.17% 100%; do
  echo "$limit: $(peakproof remat m.json --curve --max-extra-macs $limit | grep -c ' exact')"
done

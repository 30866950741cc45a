# Peaks before are what Inductor itself estimates (tests/data/simulator/README.md).
cp $DATA/simulator/*.json .
peakproof plan forward.json
peakproof plan backward.json --certificate proof
peakproof-check proof/main.json proof/main.cert
peakproof plan -q forward.json -o out.json
echo exit $?
try() {
  printf "$1" >bad.json
  peakproof plan -q bad.json
  echo exit $?
}
B='"is_input":false,"is_output":false'
try '{"nodes":[],\n"buffers":3}'
try '{"nodes":[],"buffers":[{"name":"a"}]}'
try '{"nodes":[{"name":"n","buffer_names":["a"],"more":{"x":[1]}}],"buffers":[{"name":"a","size_alloc":-1}]}'
try '{"nodes":[{"name":"n","buffer_names":[{}]}]}'
try '{"nodes":[]}'
try '{"nodes":[],"nodes":[]}'
try '{"nodes":[{"name":"n","buffer_names":["a","a"]}],"buffers":[{"name":"a","size_alloc":8,"size_free":8,"deps":[],'"$B"'}]}'
try '{"nodes":[],"buffers":[{"name":"a","size_alloc":8,"size_free":8,"deps":[],'"$B"'}]}'
try '{"nodes":[{"name":"n","buffer_names":["a"]},{"name":"m","buffer_names":["b"]}],"buffers":[{"name":"a","size_alloc":8,"size_free":8,"deps":["b"],'"$B"'},{"name":"b","size_alloc":8,"size_free":8,"deps":[],'"$B"'}]}'
try '{"nodes":['
try '{"nodes":[{"name":"n","buffer_names":["a"]}],"buffers":[{"name":"a","size_alloc":9223372036854775808}]}'

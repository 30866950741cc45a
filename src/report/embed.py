"""embed.py PAGE HEADER - writes the bytes of PAGE as the array `page` of a C header."""

import sys
from pathlib import Path

data = Path(sys.argv[1]).read_bytes()
rows = [", ".join(map(str, data[i : i + 20])) for i in range(0, len(data), 20)]
Path(sys.argv[2]).write_text("static const char page[] = {\n" + ",\n".join(rows) + ", 0};\n")

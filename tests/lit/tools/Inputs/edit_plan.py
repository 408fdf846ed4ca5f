"""edit_plan.py IN OUT FROM TO: replaces every 64-bit float FROM by TO in the plan of a planned archive; the archive's checksums are right."""

import struct
import sys
import zipfile

source, target, old, new = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
count = 0
with zipfile.ZipFile(source) as a, zipfile.ZipFile(target, "w") as b:
    for entry in a.infolist():
        data = a.read(entry)
        if entry.filename.endswith("extra/memscale/plan.bin"):
            count = data.count(struct.pack("<d", old))
            data = data.replace(struct.pack("<d", old), struct.pack("<d", new))
        b.writestr(entry.filename, data)
assert count > 0, f"{old} is not in the plan"

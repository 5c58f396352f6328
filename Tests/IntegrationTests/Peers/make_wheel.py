"""Creates a package index with one tiny wheel: make_wheel.py DIRECTORY"""

import pathlib
import sys
import zipfile

folder = pathlib.Path(sys.argv[1]) / "simple" / "tiny-for-pinproxy"
folder.mkdir(parents=True)
name = "tiny_for_pinproxy-1.0-py3-none-any.whl"
files = {
    "tiny_for_pinproxy.py": "ANSWER = 42\n",
    "tiny_for_pinproxy-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny-for-pinproxy\nVersion: 1.0\n",
    "tiny_for_pinproxy-1.0.dist-info/WHEEL": (
        "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    ),
}
record = "tiny_for_pinproxy-1.0.dist-info/RECORD"
files[record] = "".join(f"{path},,\n" for path in [*files, record])
with zipfile.ZipFile(folder / name, "w") as wheel:
    for path, text in files.items():
        wheel.writestr(path, text)
(folder / "index.html").write_text(f'<!DOCTYPE html><a href="{name}">{name}</a>')

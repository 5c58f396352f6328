"""The files that the origin serves, by path. Each contains the document, a random text."""

import gzip
import hashlib
import io
import json
import pathlib
import shutil
import struct
import subprocess
import tarfile
import tomllib
import wave
import zipfile
import zlib

TYPES = {
    ".html": "text/html",
    ".json": "application/json",
    ".xml": "application/xml",
    ".txt": "text/plain",
    ".wav": "audio/x-wav",
    ".png": "image/png",
    ".csv": "text/csv",
    ".ttl": "text/turtle",
    ".vcf": "text/plain",
}


def contents(document, folder):
    """The files by path. Directories of repositories are created in the folder."""
    files = answers(document) | media(document) | archives(document) | debian(document) | image(document)
    files |= repositories(document, folder)
    return {path: data.encode() if isinstance(data, str) else data for path, data in files.items()}


def media(document):
    return {
        "/tone.wav": tone(document),
        "/picture.png": picture(document),
        f"/{document}.png": picture(document),
    }


def tone(document):
    """A tone of a tenth of a second, with the document as its title."""
    made = io.BytesIO()
    with wave.open(made, "wb") as audio:
        audio.setnchannels(1)
        audio.setsampwidth(2)
        audio.setframerate(8000)
        audio.writeframes(bytes(1600))
    title = document.encode() + b"\0" * (2 - len(document) % 2)
    chunk = b"INFOINAM" + struct.pack("<I", len(title)) + title
    data = made.getvalue()
    chunks = data[12:] + b"LIST" + struct.pack("<I", len(chunk)) + chunk
    return b"RIFF" + struct.pack("<I", len(chunks) + 4) + b"WAVE" + chunks


def picture(document):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0))
        + chunk(b"tEXt", b"Comment\0" + document.encode())
        + chunk(b"IDAT", zlib.compress((b"\0" + bytes(24)) * 8))
        + chunk(b"IEND", b"")
    )


def tar(files, mode="w"):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode) as archive:
        for name, data in files.items():
            file = tarfile.TarInfo(name)
            file.size, file.mode = len(data), 0o644
            archive.addfile(file, io.BytesIO(data.encode()))
    return made.getvalue()


def archives(document):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("document.txt", document)
    return {"/document.tar": tar({"document/meson.build": f"# {document}\n"}), "/document.zip": packed.getvalue()}


def wheel(document):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("document.py", f"document = '{document}'\n")
        archive.writestr("document-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: document\nVersion: 1.0\n")
        archive.writestr(
            "document-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("document-1.0.dist-info/RECORD", "document.py,,\n")
    return made.getvalue()


def answers(document):
    """Text files with another word instead of the document."""
    rows = tomllib.loads(pathlib.Path(__file__).with_name("answers.toml").read_text())
    files = {path: text.replace("DOCUMENT", document) for path, text in rows.items()}
    packages = "File: 02packages.details.txt\nLine-Count: 1\n\nDocument 1.0 A/AU/AUTHOR/Document-1.0.tar.gz\n"
    files["/cpan/modules/02packages.details.txt.gz"] = gzip.compress(packages.encode())
    files["/packages/document-1.0-py3-none-any.whl"] = wheel(document)
    return files


def debian(document):
    """An unsigned suite with one package."""
    control = f"Package: document\nVersion: 1.0\nArchitecture: all\nMaintainer: a <a@a.test>\nDescription: {document}\n"
    packages = (
        f"{control}Filename: pool/main/d/document/document_1.0_all.deb\nSize: 1\nSHA256: {'0' * 64}\n"
        "Priority: required\nEssential: yes\n\n"
    ).encode()
    files = {
        "main/binary-amd64/Packages": packages,
        "main/binary-amd64/Packages.gz": gzip.compress(packages, mtime=0),
        "main/Contents-amd64": f"usr/{document} main/document\n".encode(),
        "main/Contents-amd64.gz": gzip.compress(f"usr/{document} main/document\n".encode(), mtime=0),
    }
    release = f"Origin: a\nLabel: {document}\nSuite: stable\nCodename: stable\nArchitectures: amd64\nComponents: main\n"
    release += "Date: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n"
    for name, data in files.items():
        release += f" {hashlib.sha256(data).hexdigest()} {len(data)} {name}\n"
    served = {f"/debian/dists/stable/{name}": data for name, data in files.items()}
    return served | {"/debian/dists/stable/Release": release}


def image(document):
    """A container image with one layer."""

    def digest(blob):
        return "sha256:" + hashlib.sha256(blob).hexdigest()

    archive = tar({"document": document})
    layer = gzip.compress(archive, mtime=0)
    config = {"architecture": "amd64", "os": "linux", "config": {"Labels": {"document": document}}}
    configuration = json.dumps(config | {"rootfs": {"type": "layers", "diff_ids": [digest(archive)]}}).encode()
    kind = "application/vnd.oci.image"
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{kind}.manifest.v1+json",
        "config": {"mediaType": f"{kind}.config.v1+json", "digest": digest(configuration), "size": len(configuration)},
        "layers": [{"mediaType": f"{kind}.layer.v1.tar+gzip", "digest": digest(layer), "size": len(layer)}],
    }
    manifest = json.dumps(manifest).encode()
    base = "/v2/pinproxy/document"
    files = {f"{base}/blobs/{digest(blob)}": blob for blob in (layer, configuration)}
    named = {f"{base}/manifests/{name}": manifest for name in ("latest", digest(manifest))}
    return {"/v2/": "{}"} | files | named


MAKE = """
set -e
export HOME=$PWD EMAIL=a@person.test GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@a.test GIT_COMMITTER_NAME=a
export GIT_COMMITTER_EMAIL=a@a.test
mkdir work && printf '%s\\n' "$1" > work/document.txt
has() { command -v "$1" > /dev/null; }
if has git; then
    (cd work && git init -q -b main . && git add document.txt && git commit -q -m "$1")
    git clone -q --bare work tree/repository.git && git -C tree/repository.git update-server-info
    mkdir -p index/do/cu && echo '{"dl":"https://a.test","api":"https://a.test"}' > index/config.json
    echo '{"name":"document","vers":"1.0.0","deps":[],"cksum":"'$(printf %064d 0)'","features":{},"yanked":false}' \
        > index/do/cu/document
    (cd index && git init -q -b master . && git add . && git commit -q -m a)
    git clone -q --bare index tree/cargo.git && git -C tree/cargo.git update-server-info
    rm -rf work/.git
fi
if has brz; then (cd work && brz init -q . && brz add -q document.txt && brz commit -q -m a); mv work/.bzr .
    mkdir tree/bzr && mv .bzr tree/bzr/; fi
if has darcs; then (cd work && darcs init -q && darcs record -q -l -a -m a -A a document.txt)
    mkdir tree/darcs && cp -r work/_darcs tree/darcs/; fi
if has ostree; then
    ostree --repo=tree/ostree init --mode=archive && mkdir files && printf '%s\\n' "$1" > files/document.txt
    ostree --repo=tree/ostree commit -b main -s "$1" files && ostree --repo=tree/ostree summary -u
fi
"""


def repositories(document, folder):
    """Version control repositories that are served as files."""
    folder = pathlib.Path(folder)
    tree = folder / "tree"
    tree.mkdir(parents=True)
    made = subprocess.run(["/bin/sh", "-c", MAKE, "sh", document], cwd=folder, capture_output=True, text=True)
    if made.returncode != 0:
        raise SystemExit(f"the repositories can't be made: {made.stderr[-2000:]}")
    files = {f"/{path.relative_to(tree)}": path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    shutil.rmtree(folder)
    return files

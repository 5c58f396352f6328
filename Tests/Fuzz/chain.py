#!/usr/bin/env python3
"""Creates the chain that the certificate and status targets trust (Tests/FuzzTargets/FixedChain.swift), and their
seeds.

A new chain makes the committed corpora of these targets useless. Run this only if the old chain no longer works. The
keys are discarded, so that nobody can sign what the targets have to refuse.
"""

import base64
import pathlib
import struct
import subprocess
import tempfile
import time

here = pathlib.Path(__file__).resolve().parent
corpus = here / "Corpus"


def run(*command, text=None):
    return subprocess.run(["openssl", *command], check=True, stdout=subprocess.PIPE, input=text).stdout


def write(target, name, data, choices=b""):
    (corpus / target).mkdir(parents=True, exist_ok=True)
    (corpus / target / f"seed-{name}").write_bytes(data + choices)


def der(name):
    return base64.b64decode(
        "".join(line for line in pathlib.Path(f"{name}.pem").read_text().split("\n") if "-----" not in line)
    )


def make(name, issuer, subject, extensions, days=7300):
    run("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{name}.key")
    pathlib.Path(f"{name}.ext").write_text(extensions)
    run("req", "-new", "-key", f"{name}.key", "-subj", subject, "-out", f"{name}.csr")
    sign = ["-CA", f"{issuer}.pem", "-CAkey", f"{issuer}.key"] if issuer else ["-signkey", f"{name}.key"]
    run(
        "x509",
        "-req",
        "-in",
        f"{name}.csr",
        "-days",
        str(days),
        "-sha256",
        "-extfile",
        f"{name}.ext",
        "-out",
        f"{name}.pem",
        "-set_serial",
        str(1000 + len(name)),
        *sign,
    )


def vector(width, data):
    return len(data).to_bytes(width, "big") + data


def in_swift(name, data, comment):
    text = base64.b64encode(data).decode()
    lines = "\n".join("        " + text[start : start + 104] for start in range(0, len(text), 104))
    return f'    /// {comment}\n    static let {name} = bytes(\n        """\n{lines}\n        """)\n'


with tempfile.TemporaryDirectory() as folder:
    import os

    os.chdir(folder)
    ca = "basicConstraints=critical,CA:TRUE{}\nkeyUsage=critical,keyCertSign,cRLSign\nsubjectKeyIdentifier=hash\n"
    make("root", None, "/CN=Fuzz root", ca.format(""))
    # The fuzzer changes names in certificates, so constraints are tested as well.
    make(
        "issuer",
        "root",
        "/CN=Fuzz issuer",
        ca.format(",pathlen:0") + "authorityKeyIdentifier=keyid\nnameConstraints=permitted;DNS:test\n",
    )
    leaf = (
        "basicConstraints=CA:FALSE\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=serverAuth\n"
        "subjectAltName=DNS:a.test,DNS:*.b.test,IP:192.0.2.1\n"
        "subjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n"
    )
    make("leaf", "issuer", "/CN=a.test", leaf)
    make("other", "issuer", "/CN=other", leaf.replace("a.test", "other.test") + "tlsfeature=status_request\n")

    pathlib.Path("index").write_text("V\t470101000000Z\t\t%04X\tunknown\t/CN=a.test\n" % 1004)
    run(
        "ocsp",
        "-index",
        "index",
        "-rsigner",
        "issuer.pem",
        "-rkey",
        "issuer.key",
        "-CA",
        "issuer.pem",
        "-issuer",
        "issuer.pem",
        "-cert",
        "leaf.pem",
        "-ndays",
        "7000",
        "-respout",
        "good.der",
        "-no_nonce",
    )
    pathlib.Path("crl.index").write_text("R\t470101000000Z\t250101000000Z,keyCompromise\t04D2\tunknown\t/CN=x\n")
    pathlib.Path("crl.conf").write_text(
        "[ca]\ndefault_ca=c\n[c]\ndatabase=crl.index\ncrlnumber=crl.number\ndefault_md=sha256\ncrl_extensions=e\n"
        "[e]\nauthorityKeyIdentifier=keyid\n"
    )
    pathlib.Path("crl.number").write_text("01\n")
    run(
        "ca",
        "-config",
        "crl.conf",
        "-gencrl",
        "-keyfile",
        "issuer.key",
        "-cert",
        "issuer.pem",
        "-crldays",
        "7000",
        "-out",
        "list.pem",
    )
    crl = run("crl", "-in", "list.pem", "-outform", "DER")

    logs, timestamps = "enabled_logs = one, two\n", []
    moment = int(time.time() * 1000) - 86_400_000
    for log in "one", "two":
        run("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{log}.key")
        key = run("ec", "-in", f"{log}.key", "-pubout", "-outform", "DER")
        logs += f"[{log}]\ndescription = {log}\nkey = {base64.b64encode(key).decode()}\n"
        import hashlib

        signed = b"\0\0" + struct.pack(">Q", moment) + b"\0\0" + vector(3, der("leaf")) + b"\0\0"
        signature = run("dgst", "-sha256", "-sign", f"{log}.key", text=signed)
        timestamps.append(
            b"\0" + hashlib.sha256(key).digest() + struct.pack(">Q", moment) + b"\0\0" + b"\4\3" + vector(2, signature)
        )

    response = pathlib.Path("good.der").read_bytes()
    chain = [der(name) for name in ("leaf", "issuer", "root")]
    swift = """import Foundation

/// A root, an issuer and a leaf for `a.test`, with what vouches for it. Tests/Fuzz/chain.py wrote it, and threw the
/// keys away.
enum FixedChain {
    /// Everything here is valid then.
    static let time: Int64 = 1_800_000_000
"""
    for name, data, comment in [
        ("leaf", chain[0], "DER, as all that follows."),
        ("issuer", chain[1], "It may issue names below `test` only."),
        ("root", chain[2], "The only anchor."),
        ("status", response, "An OCSP response: the leaf is good."),
        ("logs", logs.encode(), "Two CT logs in OpenSSL's form."),
    ]:
        swift += "\n" + in_swift(name, data, comment)
    swift += """
    private static func bytes(_ base64: String) -> [UInt8] {
        Data(base64Encoded: base64, options: .ignoreUnknownCharacters).map(Array.init) ?? []
    }
}
"""
    (here.parent / "FuzzTargets" / "FixedChain.swift").write_text(swift)

    def shown(*names):
        return b"".join(vector(3, der(name)) for name in names)

    for number, names in enumerate(
        [("leaf", "issuer"), ("leaf", "issuer", "root"), ("issuer", "leaf"), ("leaf",), ("other", "issuer"), ("root",)]
    ):
        write("certificate-chain", "-".join(names), shown(*names), bytes([number]))
    write("ocsp-response", "good", response)
    write("ocsp-response", "try-later", bytes.fromhex("30030a0103"))
    write("revocation-list", "der", crl)
    write("revocation-list", "pem", pathlib.Path("list.pem").read_bytes())
    write("timestamp", "both", b"".join(vector(2, timestamp) for timestamp in timestamps))
    write("timestamp", "twice", vector(2, timestamps[0]) * 2)

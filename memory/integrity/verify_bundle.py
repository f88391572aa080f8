#!/usr/bin/env python3
"""Checks a kindmem evidence bundle on your own machine. One file, Python 3.8 or newer, nothing to install.

    python3 verify_bundle.py BUNDLE.zip
    python3 verify_bundle.py BUNDLE.zip --key 'origin+1a2b3c4d+AbCd…' --anchor anchors.jsonl --receipts receipts.jsonl

It trusts nothing in the bundle: it recomputes every hash from the entries' own bytes, follows them to the
seals, from the seals to the root of the log, and from the root to a signature. Every step is printed with
what it means. The exit code is the state:

    0 verified   10 tampered   11 not-complete   12 linkage-only   13 erased-attested
    14 verified-unsealed-tail   15 unanchored   16 nothing-to-verify
    2 the bundle, or a file or key that you gave, can't be read; this says nothing about tampering
"""

# mypy: ignore-errors
# Runs on whatever Python an auditor has, and is read by one: plain, and without annotations.

import argparse
import base64
import datetime
import hashlib
import json
import struct
import sys
import zipfile
import zlib

EXIT = {
    "verified": 0,
    "tampered": 10,
    "not-complete": 11,
    "linkage-only": 12,
    "erased-attested": 13,
    "verified-unsealed-tail": 14,
    "unanchored": 15,
    "nothing-to-verify": 16,
}
ZERO = "sha256:" + "0" * 64
HASHED = {
    1: ["actor", "id", "kind", "payload", "prevHash", "runId", "scope", "sequence", "timestamp"],
    2: [
        "actor", "causedByLogId", "contentHash", "hashVersion", "id", "kind", "prevHash", "runId", "scope",
        "sequence", "timestamp",
    ],
}


class NotABundle(Exception):
    """The file can't be read as a bundle at all, or what was given besides it can't be used."""


DAMAGED = (OSError, EOFError, RuntimeError, NotImplementedError, struct.error, zipfile.BadZipFile, zlib.error)
"""What reading a ZIP file that is damaged, cut off or encrypted raises."""


class Tampered(Exception):
    """Something is not what it was."""

    def __init__(self, kind, place, expected, found):
        super().__init__("%s at %s: expected %s, found %s" % (kind, place, expected, found))
        self.wire = {"class": kind, "place": place, "expected": expected, "found": found}


# ---- Ed25519 (RFC 8032), for machines without the package `cryptography` -------------------------------------------------

_P = 2**255 - 19
_L = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, _P - 2, _P) % _P
_ROOT = pow(2, (_P - 1) // 4, _P)


def _x_of(y, sign):
    if y >= _P:
        return None
    square = (y * y - 1) * pow(_D * y * y + 1, _P - 2, _P) % _P
    if square == 0:
        return None if sign else 0
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * _ROOT % _P
    if (x * x - square) % _P:
        return None
    return _P - x if (x & 1) != sign else x


def _point(encoded):
    y = int.from_bytes(encoded, "little")
    sign, y = y >> 255, y & ((1 << 255) - 1)
    x = _x_of(y, sign)
    return None if x is None else (x, y, 1, x * y % _P)


def _add(a, b):
    e = (a[1] - a[0]) * (b[1] - b[0]) % _P
    f = (a[1] + a[0]) * (b[1] + b[0]) % _P
    g = 2 * a[3] * b[3] * _D % _P
    h = 2 * a[2] * b[2] % _P
    i, j, k, m = f - e, h - g, h + g, f + e
    return (i * j % _P, k * m % _P, j * k % _P, i * m % _P)


def _times(number, point):
    total = (0, 1, 1, 0)
    while number:
        if number & 1:
            total = _add(total, point)
        point = _add(point, point)
        number >>= 1
    return total


def _same(a, b):
    return (a[0] * b[2] - b[0] * a[2]) % _P == 0 and (a[1] * b[2] - b[1] * a[2]) % _P == 0


_BASE_Y = 4 * pow(5, _P - 2, _P) % _P
_BASE_X = _x_of(_BASE_Y, 0)
_BASE = (_BASE_X, _BASE_Y, 1, _BASE_X * _BASE_Y % _P)


def ed25519_in_python(public_key, signature, message):
    """Whether the signature is the key's over the message."""
    if len(public_key) != 32 or len(signature) != 64:
        return False
    key, commitment = _point(public_key), _point(signature[:32])
    scalar = int.from_bytes(signature[32:], "little")
    if key is None or commitment is None or scalar >= _L:
        return False
    digest = hashlib.sha512(signature[:32] + public_key + message).digest()
    challenge = int.from_bytes(digest, "little") % _L
    return _same(_times(scalar, _BASE), _add(commitment, _times(challenge, key)))


def ed25519(public_key, signature, message, pure=False):
    """The same by the package `cryptography` where it is installed."""
    if not pure:
        try:
            from cryptography.exceptions import InvalidSignature
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        except ImportError:
            pass
        else:
            try:
                Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
            except (InvalidSignature, ValueError):
                return False
            return True
    return ed25519_in_python(public_key, signature, message)


def ed25519_by(pure):
    if not pure:
        try:
            import cryptography

            return "cryptography %s" % cryptography.__version__
        except ImportError:
            pass
    return "pure Python, in this file"


# ---- hashes and trees ----------------------------------------------------------------------------------------------------


def tag(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def raw(text):
    """The 32 bytes of a tag."""
    if not isinstance(text, str) or not text.startswith("sha256:") or len(text) != 71:
        raise ValueError("not a hash: %r" % (text,))
    return bytes.fromhex(text[7:])


def leaf_hash(data):
    return hashlib.sha256(b"\x00" + data).digest()


def node_hash(left, right):
    return hashlib.sha256(b"\x01" + left + right).digest()


class Tree:
    """The right edge of a growing RFC 6962 tree."""

    def __init__(self):
        self.size = 0
        self.peaks = []

    def append(self, data):
        hash, full = leaf_hash(data), self.size
        while full & 1:
            hash, full = node_hash(self.peaks.pop(), hash), full >> 1
        self.peaks.append(hash)
        self.size += 1

    def root(self):
        if not self.peaks:
            return hashlib.sha256(b"").digest()
        root = self.peaks[-1]
        for peak in reversed(self.peaks[:-1]):
            root = node_hash(peak, root)
        return root


def is_included(hash, index, size, path, root):
    """RFC 9162, 2.1.3.2."""
    if not 0 <= index < size:
        return False
    node, last = index, size - 1
    for sibling in path:
        if last == 0:
            return False
        if node & 1 or node == last:
            hash = node_hash(sibling, hash)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            hash = node_hash(hash, sibling)
        node, last = node >> 1, last >> 1
    return last == 0 and hash == root


def is_consistent(size, later_size, root, later_root, path):
    """RFC 9162, 2.1.4.2: whether the first tree is the start of the later one."""
    if size == later_size:
        return not path and root == later_root
    if not 0 < size < later_size:
        return False
    path = list(path)
    if size & (size - 1) == 0:
        path.insert(0, root)
    if not path:
        return False
    node, last = size - 1, later_size - 1
    while node & 1:
        node, last = node >> 1, last >> 1
    first = second = path[0]
    for sibling in path[1:]:
        if last == 0:
            return False
        if node & 1 or node == last:
            first, second = node_hash(sibling, first), node_hash(sibling, second)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            second = node_hash(second, sibling)
        node, last = node >> 1, last >> 1
    return last == 0 and first == root and second == later_root


def members(line):
    """The members of a JSON object as they stand: name → (text of member, text of value, value)."""
    decoder = json.JSONDecoder()
    found, at = {}, 1
    if not line.startswith("{"):
        raise ValueError("not an object")
    while line[at : at + 1] != "}":
        start = at
        name, at = decoder.raw_decode(line, at)
        if line[at : at + 1] != ":" or name in found:
            raise ValueError("not canonical JSON")
        value, end = decoder.raw_decode(line, at + 1)
        found[name] = (line[start:end], line[at + 1 : end], value)
        at = end + 1 if line[end : end + 1] == "," else end
    if line[at + 1 :]:
        raise ValueError("text after the object")
    return found


def number_text(number):
    """A float as ECMAScript writes it."""
    if number == 0:
        return "0"
    sign = "-" if number < 0 else ""
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    point = len(whole) + int(exponent or 0)
    digits = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(digits)
    digits = digits.rstrip("0")
    if 0 < point <= 21:
        return sign + (digits.ljust(point, "0") if len(digits) <= point else digits[:point] + "." + digits[point:])
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    return sign + digits[0] + ("." + digits[1:] if len(digits) > 1 else "") + "e%+d" % (point - 1)


def canonical(value):
    """A JSON value in canonical form, RFC 8785."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
        return "{" + ",".join(json.dumps(name, ensure_ascii=False) + ":" + canonical(value[name]) for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(canonical(one) for one in value) + "]"
    return number_text(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


# ---- signed notes --------------------------------------------------------------------------------------------------------


class Note:
    """A C2SP checkpoint: origin, size, root, and who signed."""

    def __init__(self, text):
        body, separator, signatures = text.rpartition("\n\n")
        if not separator:
            raise ValueError("the checkpoint has no signature")
        self.body = (body + "\n").encode()
        lines = body.split("\n")
        self.origin, self.size, self.root = lines[0], int(lines[1]), base64.b64decode(lines[2])
        self.signatures = []
        for line in signatures.strip("\n").split("\n"):
            dash, name, encoded = line.split(" ")
            if dash != "\u2014":
                raise ValueError("a signature line begins with a dash")
            self.signatures.append((name, base64.b64decode(encoded)))

    def is_signed_by(self, verifier, pure):
        name, key_hash, key = verifier.split("+", 2)
        key = base64.b64decode(key)
        if key[:1] != b"\x01":
            raise ValueError("unknown algorithm of the key %s: only Ed25519 (1) is known" % verifier)
        if hashlib.sha256(name.encode() + b"\n" + key).hexdigest()[:8] != key_hash or name != self.origin:
            return False
        return any(
            who == name and blob[:4].hex() == key_hash and ed25519(key[1:], blob[4:], self.body, pure)
            for who, blob in self.signatures
        )

    def cosigned_at(self, verifier, pure):
        """When a witness says that it saw this head (POSIX seconds), None when it does not say so. C2SP tlog-cosignature."""
        name, key_hash, key = verifier.split("+", 2)
        key = base64.b64decode(key)
        for who, blob in self.signatures:
            if who == name and blob[:4].hex() == key_hash:
                time = int.from_bytes(blob[4:12], "big")
                said = b"cosignature/v1\ntime %d\n" % time + self.body
                if len(blob) != 76 or not ed25519(key[1:], blob[12:], said, pure):
                    raise Tampered("checkpoint", "checkpoint.txt", "a cosignature by %s" % name, "another signature")
                return time
        return None


# ---- time stamps (RFC 3161) ----------------------------------------------------------------------------------------------


def der(data):
    """The values that stand one after another in DER: [(tag, content)]."""
    found, at = [], 0
    while at < len(data):
        tag_byte, length, at = data[at], data[at + 1], at + 2
        if length & 0x80:
            size = length & 0x7F
            length, at = int.from_bytes(data[at : at + size], "big"), at + size
        if at + length > len(data):
            raise ValueError("a time stamp that was cut")
        found.append((tag_byte, data[at : at + length]))
        at += length
    return found


def stamp_says(answer):
    """(OID of the hash, hash, time) that a TimeStampResp stamps. Says nothing about who signed it."""
    [(_, response)] = der(answer)
    signed_data = der(der(der(der(response)[1][1])[1][1])[0][1])
    octets = der(der(signed_data[2][1])[1][1])[0][1]
    parts = der(der(octets)[0][1])
    algorithm, imprint = der(parts[2][1])
    return der(algorithm[1])[0][1], imprint[1], parts[4][1].decode("ascii")


SHA256_OID = bytes.fromhex("608648016503040201")


def stamp_is_signed(answer, stamped, roots):
    """Who found the authority's signature good, under one of these roots (PEM file). None when this machine can't tell."""
    try:
        import rfc3161_client
        from cryptography import x509
    except ImportError:
        return stamp_is_signed_by_openssl(answer, stamped, roots)
    try:
        certificates = x509.load_pem_x509_certificates(b"".join(given_lines(roots, "--timestamp-roots")))
    except ValueError as error:
        raise NotABundle("--timestamp-roots %s can't be used: %s" % (roots, error))
    try:
        response = rfc3161_client.decode_timestamp_response(answer)
        rfc3161_client.VerifierBuilder(roots=certificates).build().verify_message(response, stamped)
    except (rfc3161_client.VerificationError, ValueError):
        return ""
    return "rfc3161-client"


def stamp_is_signed_by_openssl(answer, stamped, roots):
    import os
    import shutil
    import subprocess
    import tempfile

    openssl = shutil.which("openssl")
    if openssl is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        names = [os.path.join(folder, name) for name in ("stamp", "stamped")]
        for name, data in zip(names, (answer, stamped)):
            with open(name, "wb") as file:
                file.write(data)
        command = [openssl, "ts", "-verify", "-in", names[0], "-data", names[1], "-CAfile", roots]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return "openssl" if done.returncode == 0 else ""


# ---- what is given besides the bundle ------------------------------------------------------------------------------------


def whole_key(text, option, algorithm, means):
    """A verifier key as it was given. Raises NotABundle for what is none."""
    try:
        name, key_hash, encoded = text.split("+", 2)
        key = base64.b64decode(encoded)
    except ValueError:
        raise NotABundle("%s %s is no key: a key reads origin+hash+base64" % (option, text))
    if key[:1] != algorithm or len(key) != 33:
        raise NotABundle("unknown algorithm of the key %s: %s" % (text, means))
    if hashlib.sha256(name.encode("utf-8", "replace") + b"\n" + key).hexdigest()[:8] != key_hash:
        raise NotABundle("the key %s is not whole" % text)
    return text


def given_lines(path, option):
    """The lines of a file that was given. Raises NotABundle where there is none."""
    try:
        with open(path, "rb") as file:
            for line in file:
                yield line
    except (OSError, ValueError) as error:
        raise NotABundle("%s %s can't be read: %s" % (option, path, getattr(error, "strerror", None) or error))


def given_objects(path, option):
    """The JSON objects of such a file, None for a line that is none."""
    for line in given_lines(path, option):
        if line.strip():
            try:
                said = json.loads(line.decode("utf-8"))
            except (ValueError, RecursionError):
                said = None
            yield said if isinstance(said, dict) else None


def given_receipts(path):
    """(run, sequence, hash) of each receipt. Raises NotABundle for a line that is none."""
    found = []
    for number, said in enumerate(given_objects(path, "--receipts"), 1):
        said = said or {}
        for entry in said["data"] if isinstance(said.get("data"), list) else [said]:
            entry = entry if isinstance(entry, dict) else {}
            run_id, sequence, entry_hash = (entry.get(name) for name in ("runId", "sequence", "entryHash"))
            try:
                if not isinstance(run_id, str) or type(sequence) is not int or not 0 <= sequence < 2**53:
                    raise ValueError("no run or no sequence")
                raw(entry_hash)
            except ValueError:
                raise NotABundle(
                    "--receipts %s: receipt %d is no JSON object with runId, sequence and entryHash" % (path, number)
                )
            scope = entry.get("scope")
            tenant = scope.get("tenantId") if isinstance(scope, dict) else None
            found.append((tenant, run_id, sequence, entry_hash))
    return found


def is_word(entry):
    """Whether the entry is the server's word that a payload was erased."""
    payload = entry.get("payload")
    return entry["kind"] == "event-emitted" and isinstance(payload, dict) and payload.get("type") == "payload.erased"


def seconds_apart(one, other):
    """Between two moments as entries have them; 0 where there is none."""
    if one is None:
        return 0
    form = "%Y-%m-%dT%H:%M:%S.%fZ"
    return abs((datetime.datetime.strptime(one, form) - datetime.datetime.strptime(other, form)).total_seconds())


def forged(index):
    return Tampered("checkpoint", "leaf %s" % index, "a leaf that the log's server makes", "another leaf")


# ---- the bundle ----------------------------------------------------------------------------------------------------------


class Check:
    """The steps, in order. What they find is kept for the answer."""

    def __init__(self, path, keys=(), anchor=None, receipts=None, witnesses=(), pure=False, roots=None, say=print):
        self.path, self.keys, self.anchor, self.receipts = path, keys, anchor, receipts
        self.pure, self.say, self.witnesses, self.cosigned = pure, say, witnesses, {}
        self.entries = self.erased = self.linkage_only = 0
        self.sealed_to, self.head, self.hashes = -1, ZERO, {}
        self.erased_ids, self.words, self.seals, self.leaves_of_erasure = {}, {}, [], set()
        self.is_anchored = False
        self.closed_at = None
        self.roots, self.sealed_at, self.stamped = roots, [], {}
        self.attested, self.backed = set(), set()
        self.unsigned, self.acts, self.acts_unsealed, self.erased_at = [], None, 0, {}

    def run(self):
        self.check_options()
        try:
            return self.check_bundle()
        except DAMAGED as error:
            raise NotABundle("%s can't be read as a ZIP file, it is damaged: %s" % (self.path, error or type(error).__name__))

    def check_options(self):
        """Whether what was given besides the bundle can be used; nothing of it may count against the bundle."""
        for key in self.keys:
            whole_key(key, "--key", b"\x01", "a log signs by Ed25519 (1)")
        for key in self.witnesses:
            whole_key(key, "--witness", b"\x04", "a witness signs cosignature/v1 (4)")
        if self.anchor:
            said = list(given_objects(self.anchor, "--anchor"))
            if said and not any(said):
                raise NotABundle("--anchor %s is no anchor file: none of its lines is a JSON object" % self.anchor)
        if self.roots and not any(b"-----BEGIN CERTIFICATE-----" in line for line in given_lines(self.roots, "--timestamp-roots")):
            raise NotABundle("--timestamp-roots %s holds no certificate (PEM)" % self.roots)
        self.kept = given_receipts(self.receipts) if self.receipts else []

    def check_bundle(self):
        try:
            self.bundle = zipfile.ZipFile(self.path)
            self.envelope = json.loads(self.bundle.read("envelope.json"))
            self.manifest_bytes = self.bundle.read("manifest.json")
        except (KeyError, ValueError) + DAMAGED as error:
            raise NotABundle("%s is no evidence bundle: %s" % (self.path, error))
        try:
            self.check_envelope()
            self.check_files()
            self.check_checkpoint()
            self.read_seals()
            self.read_unsigned()
            self.read_acts()
            self.check_entries()
            self.check_seals()
            self.check_unsigned()
            self.check_erasures()
            self.check_anchor()
            self.check_witnesses()
            self.check_stamps()
            self.check_receipts()
        except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
            raise Tampered("content", "the bundle", "well-formed evidence", repr(error))
        return self.state()

    def check_envelope(self):
        envelope = self.envelope
        algorithm = envelope.get("algorithm")
        if algorithm != "ed25519":
            raise NotABundle("unknown signature algorithm %r: this program knows ed25519 only" % (algorithm,))
        if envelope.get("bundleSchemaVersion") != 1:
            raise NotABundle("unknown bundleSchemaVersion %r" % (envelope.get("bundleSchemaVersion"),))
        public_key = base64.b64decode(envelope["publicKey"])
        signature = base64.b64decode(envelope["signature"])
        if not ed25519(public_key, signature, self.manifest_bytes, self.pure):
            raise Tampered("checkpoint", "envelope.json", "a signature over manifest.json", "another signature")
        if envelope["signingKeyId"] != hashlib.sha256(public_key).hexdigest()[:16]:
            raise Tampered("checkpoint", "envelope.json", "the id of its key", envelope["signingKeyId"])
        self.manifest = json.loads(self.manifest_bytes)
        self.run_id, self.tenant = self.manifest["runId"], self.manifest["tenantId"]
        self.say("1. manifest.json is signed by key %s (Ed25519 by %s)." % (envelope["signingKeyId"], ed25519_by(self.pure)))
        if self.keys:
            if public_key not in [base64.b64decode(key.split("+", 2)[2])[1:] for key in self.keys]:
                raise Tampered("checkpoint", "envelope.json", "a signature by the key you gave", "another key")
            self.say("   That is %s." % ("the key you gave" if len(self.keys) == 1 else "one of the keys you gave"))
        else:
            self.say("   You gave no key, so this shows only that whoever holds that key made the bundle. Compare the key id")
            self.say("   with one you got another way, or run again with --key.")

    def check_files(self):
        named = set(self.manifest["files"])
        present = set(self.bundle.namelist()) - {"manifest.json", "envelope.json"}
        if named != present or len(self.bundle.namelist()) != len(set(self.bundle.namelist())):
            odd = sorted(named ^ present)
            raise Tampered("content", "the files of the bundle", "those of the manifest", ", ".join(odd) or "one twice")
        for name, said in sorted(self.manifest["files"].items()):
            digest, size = hashlib.sha256(), 0
            with self.bundle.open(name) as file:
                for part in iter(lambda: file.read(1 << 20), b""):
                    digest.update(part)
                    size += len(part)
            found = "sha256:" + digest.hexdigest()
            if found != said["sha256"] or size != said["bytes"]:
                raise Tampered("content", name, said["sha256"], found)
        self.say("2. Each of the %d files has the checksum that the manifest names." % len(named))

    def check_checkpoint(self):
        self.note = None
        if "checkpoint.txt" not in self.manifest["files"]:
            self.say("3. There is no checkpoint: nothing of this run was sealed when the bundle was made.")
            return
        note = Note(self.bundle.read("checkpoint.txt").decode())
        keys = self.keys or self.manifest["verifierKeys"]
        if not any(note.is_signed_by(one, self.pure) for one in keys):
            raise Tampered("checkpoint", "checkpoint.txt", "a signature by a known key", "no such signature")
        if note.origin != self.manifest["origin"]:
            raise Tampered("checkpoint", "checkpoint.txt", self.manifest["origin"], note.origin)
        self.note = note
        self.say("3. The checkpoint of %s, %d leaves, is signed." % (note.origin, note.size))

    def read_seals(self):
        if self.note is None:
            return
        due, count = 0, 0
        for line in self.lines("seals.jsonl"):
            said = json.loads(line)
            path = [raw(hash) for hash in said["path"]]
            hash = leaf_hash(said["leaf"].encode())
            if not is_included(hash, said["index"], self.note.size, path, self.note.root):
                raise Tampered("seal", "leaf %s" % said["index"], "a leaf of the checkpoint's tree", "another leaf")
            leaf = json.loads(said["leaf"])
            if (leaf["tenantId"], leaf["runId"]) != (self.tenant, self.run_id):
                raise Tampered("scope", "leaf %s" % said["index"], self.run_id, leaf["runId"])
            count += 1
            if leaf["type"] == "seal/v1":
                if leaf["fromSequence"] != due:
                    raise Tampered("seal", due, "a seal from %d" % due, "one from %s" % leaf["fromSequence"])
                due = leaf["toSequence"] + 1
                self.seals.append(leaf)
                self.sealed_at.append((said["index"], leaf["toSequence"]))
            elif leaf["type"] == "erasure":
                self.leaves_of_erasure.add(leaf["logEntryId"])
            elif leaf["type"] == "run-closed":
                self.closed_at = leaf["toSequence"]
        self.sealed_to = due - 1
        self.say("4. %d leaves about this run are in that checkpoint's tree; they seal entries 0 to %d." % (count, self.sealed_to))

    def read_unsigned(self):
        """Leaves about this run that wait for their signature. They vouch for nothing, and must be what the entries make them."""
        if "unsigned.jsonl" in self.manifest["files"]:
            for line in self.lines("unsigned.jsonl"):
                said = json.loads(line)
                try:
                    leaf = json.loads(said["leaf"])
                except ValueError:
                    leaf = None
                self.unsigned.append((said["index"], leaf if isinstance(leaf, dict) else {}))

    def read_acts(self):
        """The acts of governance that erased payloads of this run: {(entry, word): reason}."""
        if "acts.jsonl" not in self.manifest["files"]:
            return
        self.acts = {}
        for line in self.lines("acts.jsonl"):
            said = json.loads(line)
            parts = members(said["entry"])
            entry = {name: part[2] for name, part in parts.items()}
            place = "act %s" % entry["sequence"]
            self.check_hashes(parts, entry, place, "kindmem.governance")
            self.acts_unsealed += "proof" not in said
            if "proof" in said:
                self.check_proof(said["proof"], entry, place)
            act = entry.get("payload")
            if not isinstance(act, dict) or act.get("type") != "log.payloads-erased":
                raise Tampered("content", place, "an act that erased payloads", "another entry")
            words = act.get("attested", {name: None for name in act.get("entryIds", [])})
            self.acts.update({(name, word): act["reasonCode"] for name, word in words.items()})

    def check_proof(self, proof, entry, place):
        """A C2SP tlog-proof: that an entry of the record of governance is under this very checkpoint."""
        head, _, note = proof.partition("\n\n")
        lines = head.split("\n")
        extra = json.loads(base64.b64decode(lines[1].split(" ", 1)[1]))
        note, leaf, record = Note(note), json.loads(extra["leaf"]), extra["record"]
        bound = {name: entry[name] for name in ("causedByLogId", "entryHash") if name in entry}
        bound["hashVersion"] = entry.get("hashVersion", 1)
        text = json.dumps(bound, ensure_ascii=False, separators=(",", ":")).encode()
        count, at = leaf["toSequence"] - leaf["fromSequence"] + 1, entry["sequence"] - leaf["fromSequence"]
        path = [base64.b64decode(one) for one in lines[3:]]
        if (
            (note.size, note.root) != (self.note.size, self.note.root)
            or (leaf["tenantId"], leaf["runId"]) != (self.tenant, "kindmem.governance")
            or not is_included(leaf_hash(text), at, count, [raw(one) for one in record["path"]], raw(leaf["recordsRoot"]))
            or not is_included(leaf_hash(extra["leaf"].encode()), int(lines[2].split(" ")[1]), note.size, path, note.root)
        ):
            raise Tampered("seal", place, "an entry under the checkpoint", "another entry")

    def check_entries(self):
        prev, due, place = ZERO, 0, 0
        tree = Tree()
        waiting = [(index, leaf) for index, leaf in self.unsigned if leaf.get("type") == "seal/v1"]
        seals = [(None, seal) for seal in self.seals] + waiting
        for line in self.lines("entries.jsonl"):
            try:
                parts = members(line)
                if canonical(json.loads(line)) != line:
                    raise ValueError("not canonical JSON")
            except (ValueError, OverflowError, RecursionError):
                raise Tampered("content", due, "an entry in canonical JSON", "another text")
            entry = {name: part[2] for name, part in parts.items()}
            sequence = entry["sequence"]
            if sequence != due:
                kind = "gap" if sequence > due else "duplicate"
                raise Tampered(kind, due, str(due), str(sequence))
            self.check_entry(parts, entry, prev)
            prev, due = entry["entryHash"], due + 1
            self.entries += 1
            self.note_words(entry)
            if self.receipts:
                self.hashes[sequence] = prev
            self.check_word(entry)
            if place < len(seals):
                bound = {
                    name: parts[name][0] for name in ("causedByLogId", "entryHash") if name in parts
                }
                version = '"hashVersion":%d' % entry.get("hashVersion", 1)
                tree.append(("{" + ",".join([*bound.values(), version]) + "}").encode())
                index, seal = seals[place]
                if index is not None and seal["fromSequence"] != sequence - tree.size + 1:
                    raise forged(index)
                if sequence == seal["toSequence"]:
                    root = "sha256:" + tree.root().hex()
                    if index is not None and (root != seal["recordsRoot"] or prev != seal["headHash"]):
                        raise forged(index)
                    if root != seal["recordsRoot"] or prev != seal["headHash"]:
                        raise Tampered("seal", seal["fromSequence"], seal["recordsRoot"], root)
                    place, tree, self.covered = place + 1, Tree(), (sequence, prev)
        self.head = prev
        if len(self.seals) <= place < len(seals):
            raise forged(seals[place][0])
        if self.entries != self.manifest["entries"] or (self.entries and self.head != self.manifest["headHash"]):
            raise Tampered("gap", due, "%d entries" % self.manifest["entries"], "%d" % self.entries)
        self.say("5. %d entries: each content hash and entry hash recomputed from the entry's own bytes, each names the one" % self.entries)
        self.say("   before it, and none is missing in between.")

    def check_entry(self, parts, entry, prev):
        sequence = entry["sequence"]
        self.check_hashes(parts, entry, sequence, self.run_id)
        if "payloadErasedAt" in entry:
            self.erased += 1
            self.linkage_only += entry.get("hashVersion", 1) == 1
            self.erased_ids[entry["id"]] = sequence
            self.erased_at[entry["id"]] = entry["payloadErasedAt"]
        if entry["prevHash"] != prev:
            raise Tampered("link", sequence, prev, entry["prevHash"])

    def check_hashes(self, parts, entry, sequence, run_id):
        """One entry against its own hashes; `sequence` is how its place is called."""
        version = entry.get("hashVersion", 1)
        if version not in HASHED:
            raise Tampered("content", sequence, "hash version 1 or 2", version)
        if entry["runId"] != run_id or entry["scope"].get("tenantId") != self.tenant:
            raise Tampered("scope", sequence, run_id, entry["runId"])
        is_erased = "payloadErasedAt" in entry
        if is_erased:
            if "payload" in entry or "payloadSalt" in entry:
                raise Tampered("content", sequence, "no payload", "a payload")
        else:
            content = None
            if "payload" in parts:
                text = parts["payload"][1]
                if version == 2:
                    text = '{"payload":%s,"payloadSalt":"%s"}' % (text, entry["payloadSalt"])
                content = tag(text.encode())
            if content != entry.get("contentHash"):
                raise Tampered("content", sequence, entry.get("contentHash"), content)
        if not (is_erased and version == 1):
            text = "{" + ",".join(parts[name][0] for name in HASHED[version] if name in parts) + "}"
            found = tag(text.encode())
            if found != entry["entryHash"]:
                raise Tampered("content", sequence, entry["entryHash"], found)

    def check_word(self, entry):
        """A word that a payload was erased belongs to an act of governance, and to the moment of the erasure."""
        payload = entry.get("payload")
        if not is_word(entry) or self.acts is None:
            return
        said, word = payload.get("logEntryId"), entry["id"]
        reason = self.acts.get((said, word), self.acts.get((said, None)))
        if set(payload) != {"logEntryId", "reasonCode", "type"} or reason is None or payload["reasonCode"] != reason:
            place = entry["sequence"] if said in self.backed else self.erased_ids.get(said, entry["sequence"])
            is_late = self.closed_at is not None and place == entry["sequence"] > self.closed_at
            kind = "seal" if is_late else "content"
            raise Tampered(kind, place, "an act of governance that names it", "the word of an erasure that no act names")
        self.backed.add(said)
        if seconds_apart(self.erased_at.get(said), entry["timestamp"]) > 60:
            raise Tampered("content", self.erased_ids[said], "erased at " + entry["timestamp"], "erased at " + self.erased_at[said])

    def check_unsigned(self):
        covered = getattr(self, "covered", (-1, ZERO))
        for index, leaf in self.unsigned:
            kind = leaf.get("type")
            if kind == "erasure" and (leaf.get("logEntryId"), leaf.get("attestedBy")) not in self.attested:
                raise forged(index)
            if kind == "run-closed" and (leaf.get("toSequence"), leaf.get("headHash")) != covered:
                raise forged(index)
            if kind not in ("seal/v1", "erasure", "run-closed"):
                raise forged(index)
        if self.unsigned:
            self.say("   %d more leaves about this run wait for their signature; they are what these entries make them." % len(self.unsigned))

    def note_words(self, entry):
        if is_word(entry):
            self.words[entry["payload"].get("logEntryId")] = entry["sequence"]
            self.attested.add((entry["payload"].get("logEntryId"), entry["id"]))
        elif self.closed_at is not None and entry["sequence"] > self.closed_at:
            raise Tampered("seal", entry["sequence"], "no entry", "an entry after the run was closed")

    def check_seals(self):
        if self.sealed_to >= self.entries:
            raise Tampered("seal", self.entries, "entries up to %d, which were sealed" % self.sealed_to, "no entry")
        if self.closed_at is not None:
            self.say("   The run was closed with entry %d: nothing but attested erasures came after it." % self.closed_at)
        if self.seals:
            self.say("6. The entries are exactly those that were sealed, their causes and hash versions included.")
        else:
            self.say("6. No entry is sealed: somebody who can write to the database could have rewritten all of them.")

    def check_erasures(self):
        for entry_id, sequence in self.erased_ids.items():
            word = self.words.get(entry_id, -1)
            if entry_id not in self.leaves_of_erasure and not word > max(sequence, self.sealed_to):
                raise Tampered("content", sequence, "an attested erasure", "no payload")
        if self.erased_ids:
            self.say("7. %d payloads were erased; each erasure is attested." % self.erased)
            if self.acts is None:
                self.say("   NOT CHECKED against the record of governance: this bundle was made before its acts went along.")
            else:
                self.say("   Each word of it is named by an act of the record of governance, which is in the bundle.")
            if self.acts_unsealed:
                self.say("   %d of those acts are not sealed yet." % self.acts_unsealed)
        if self.linkage_only:
            self.say("   Of %d erased entries of version 1 nothing but their place, cause and hash can be checked any more:" % self.linkage_only)
            self.say("   UNPROTECTED are what is stored of their id, kind, scope, actor, time and content hash.")

    def check_anchor(self):
        if not self.anchor or self.note is None:
            self.say("8. No anchor file was given: that no other history was ever signed is not shown. Run with --anchor.")
            return
        larger = False
        for said in given_objects(self.anchor, "--anchor"):
            try:
                anchored = Note(said["note"])
            except (ValueError, LookupError, TypeError, AttributeError):
                continue
            if anchored.origin != self.note.origin:
                continue
            if anchored.size == self.note.size:
                if anchored.root != self.note.root:
                    raise Tampered("anchor", "checkpoint %d" % anchored.size, anchored.root.hex(), self.note.root.hex())
                self.is_anchored = True
            larger = larger or anchored.size > self.note.size
        if self.is_anchored:
            self.say("8. The anchor file holds this very checkpoint.")
            if larger:
                self.say("   It holds later ones too: later seals of this run, if any, are not in this bundle.")
        else:
            self.say("8. The anchor file does not hold this checkpoint.")

    def check_witnesses(self):
        for verifier in self.witnesses:
            name = verifier.split("+", 1)[0]
            time = self.note.cosigned_at(verifier, self.pure) if self.note is not None else None
            if time is None:
                self.say("   The witness %s has not cosigned this checkpoint." % name)
            else:
                self.is_anchored = True
                self.cosigned[name] = time
                self.say("   The witness %s saw this very checkpoint, at %d (POSIX seconds)." % (name, time))

    def check_stamps(self):
        if "timestamps.jsonl" not in self.manifest["files"]:
            return
        for line in self.lines("timestamps.jsonl"):
            said = json.loads(line)
            name, stamped, answer = said["authority"], said["note"].encode(), base64.b64decode(said["stamp"])
            note = Note(said["note"])
            keys = self.keys or self.manifest["verifierKeys"]
            if note.origin != self.note.origin or not any(note.is_signed_by(one, self.pure) for one in keys):
                raise Tampered("checkpoint", "the time stamp of %s" % name, "a checkpoint of this log", "another note")
            path = [raw(hash) for hash in said["path"]]
            if not is_consistent(note.size, self.note.size, note.root, self.note.root, path):
                raise Tampered("checkpoint", "the time stamp of %s" % name, "the start of this log", "another log")
            algorithm, imprint, time = stamp_says(answer)
            if algorithm != SHA256_OID or imprint != hashlib.sha256(stamped).digest():
                raise Tampered("anchor", "the time stamp of %s" % name, tag(stamped), imprint.hex())
            covered = max([to for index, to in self.sealed_at if index < note.size], default=-1)
            by = stamp_is_signed(answer, stamped, self.roots) if self.roots else None
            if by == "":
                raise Tampered("anchor", "the time stamp of %s" % name, "a signature under your roots", "another one")
            self.stamped[name] = {"at": time, "to": covered, "signatureCheckedBy": by}
            self.say("   Time stamp of %s, %s (UTC): the log of %d leaves existed then," % (name, time, note.size))
            self.say("   and with it the entries 0 to %d of this run." % covered if covered >= 0 else "   without this run.")
            if by:
                self.say("   Its signature is good under the roots you gave (by %s)." % by)
            elif self.roots:
                self.say("   NOT CHECKED who signed it: neither rfc3161-client nor openssl is on this machine.")
            else:
                self.say("   NOT CHECKED who signed it: run again with --timestamp-roots, the authority's certificates.")

    def check_receipts(self):
        if not self.receipts:
            return
        count = 0
        for tenant, run_id, sequence, entry_hash in self.kept:
            if tenant not in (None, self.tenant):
                raise NotABundle(
                    "--receipts %s holds a receipt of the tenant %s; the bundle is of %s" % (self.receipts, tenant, self.tenant)
                )
            if run_id != self.run_id:
                continue
            count += 1
            found = self.hashes.get(sequence)
            if found != entry_hash:
                kind = "gap" if found is None else "content"
                raise Tampered(kind, sequence, entry_hash, found or "no entry")
        self.say("9. %d receipts of this run agree." % count)

    def state(self):
        if not self.entries:
            return "nothing-to-verify"
        if self.manifest["truncated"] is not False:
            return "not-complete"
        if self.linkage_only:
            return "linkage-only"
        if self.erased:
            return "erased-attested"
        if self.sealed_to < self.entries - 1:
            return "verified-unsealed-tail"
        return "verified" if self.is_anchored else "unanchored"

    def lines(self, name):
        with self.bundle.open(name) as file:
            for line in file:
                yield line.decode("utf-8").rstrip("\n")


MEANS = {
    "verified": "Intact: every entry is as it was sealed, the seal is signed and anchored.",
    "tampered": "NOT INTACT: something is not what it was.",
    "not-complete": "What is here holds, but the bundle does not claim to be the whole run.",
    "linkage-only": "The links hold, but a payload of hash version 1 was erased and can no longer be checked.",
    "erased-attested": "Intact, with payloads that were erased and whose erasure is attested.",
    "verified-unsealed-tail": "Intact as far as it is sealed; the last entries rest on the chain alone.",
    "unanchored": "Intact and signed; that no other history was signed is not shown without an anchor.",
    "nothing-to-verify": "There was nothing to verify. This is not a success.",
}


OWN_KEY = "no --key was given: signatures were held against the bundle's own key, which shows nothing of who signed"


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Check a kindmem evidence bundle offline.")
    parser.add_argument("bundle")
    parser.add_argument(
        "--key", action="append", default=[],
        help="the public key you trust, as origin+hash+base64; repeat it where the key was changed",
    )
    parser.add_argument("--anchor", metavar="FILE", help="the anchor file, from where it is kept")
    parser.add_argument(
        "--witness", action="append", default=[], metavar="KEY", help="the key of a witness you trust; may be repeated"
    )
    parser.add_argument("--timestamp-roots", metavar="FILE", help="certificates (PEM) of the time stamp authority that you trust")
    parser.add_argument("--receipts", metavar="FILE", help="JSON lines of append answers that a client kept")
    parser.add_argument("--pure", action="store_true", help="do not use the package cryptography")
    parser.add_argument("--json", action="store_true", help="answer in one JSON value")
    options = parser.parse_args(arguments)
    check = Check(
        options.bundle, options.key, options.anchor, options.receipts, options.witness, options.pure,
        options.timestamp_roots, say=(lambda line: None) if options.json else print,
    )
    bad = None
    try:
        state = check.run()
    except NotABundle as error:
        print(json.dumps({"error": str(error)}) if options.json else str(error), file=sys.stderr)
        return 2
    except Tampered as error:
        state, bad = "tampered", error.wire
    if options.json:
        answer = {"state": state, "entries": check.entries, "unsealed": max(0, check.entries - 1 - check.sealed_to)}
        answer["erased"] = check.erased
        if not check.keys:
            answer["warning"] = OWN_KEY
        if check.witnesses:
            answer["cosigned"] = check.cosigned
        if check.stamped:
            answer["timestamps"] = check.stamped
        if bad:
            answer["firstBad"] = bad
        print(json.dumps(answer, sort_keys=True))
    else:
        if bad:
            print("\nclass %(class)s, at %(place)s\n  expected %(expected)s\n  found    %(found)s" % bad)
        tail = check.entries - 1 - check.sealed_to
        more = " (%d entries)" % tail if state == "verified-unsealed-tail" else ""
        print("\n%s%s: %s" % (state, more, MEANS[state]))
    return EXIT[state]


if __name__ == "__main__":
    sys.exit(main())
